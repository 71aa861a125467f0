//! QUIC-LB: connection IDs from which a load balancer reads the server
//! (draft-ietf-quic-load-balancers-21).
//!
//! [`QuicLbCodec`] is what load balancer and servers agree on; [`QuicLbCids`] is one server's
//! generator. Retry services and the load balancer's tables for unroutable IDs are not here.

use std::fmt;
use std::sync::Arc;

use rand_core::Rng;
use swiftwater_wire::{ConnectionId, MAX_CID_LEN};
use thiserror::Error;

use super::ConnectionIdGenerator;
use crate::crypto::BlockCipher;

/// Longest server ID and nonce together, bytes (section 5.2 of the draft).
const MAX_BLOCK: usize = MAX_CID_LEN - 1;
/// Shortest nonce, bytes.
const MIN_NONCE: usize = 4;
/// Shortest nonce that may name a worker, bytes: 7 stay random, as in the IDs of [`WorkerCids`](crate::WorkerCids).
const MIN_WORKER_NONCE: usize = 8;
/// With this many bytes of server ID and nonce one pass of the cipher does (section 5.4.1).
const SINGLE_PASS: usize = 16;
/// The codepoint of servers without a configuration (section 3.1).
const NO_CONFIG: u8 = 7;
/// Half of the longest block, rounded up.
const MAX_HALF: usize = MAX_BLOCK.div_ceil(2);

/// What load balancer and servers agree on, apart from the key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuicLbFormat {
    /// Names the configuration in the first octet, 0 to 6.
    pub config_rotation: u8,
    /// Bytes of a server ID, 1 to 15.
    pub server_id_len: usize,
    /// Bytes of the nonce, 4 to 18; server ID and nonce together at most 19. Nonces are random, so
    /// that few bytes mean IDs that occur twice and have to be issued anew: take 8 or more where many
    /// connections live. Several workers need 8 or more.
    pub nonce_len: usize,
    /// The first octet holds the length of the rest; otherwise it is random.
    pub encode_len: bool,
}

impl Default for QuicLbFormat {
    /// Configuration 0, one byte of server ID and 15 of nonce, which is one pass of the cipher.
    fn default() -> Self {
        Self {
            config_rotation: 0,
            server_id_len: 1,
            nonce_len: 15,
            encode_len: true,
        }
    }
}

/// A QUIC-LB configuration makes no sense.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum QuicLbError {
    /// The draft has configurations 0 to 6.
    #[error("QUIC-LB configurations are numbered 0 to 6, not {0}")]
    ConfigRotation(u8),
    /// Server ID or nonce too short or too long.
    #[error(
        "QUIC-LB needs a server ID of 1 to 15 bytes and a nonce of 4 to 18, together at most 19, \
         not {server_id} and {nonce}"
    )]
    Lengths {
        /// Bytes of the server ID.
        server_id: usize,
        /// Bytes of the nonce.
        nonce: usize,
    },
    /// A server ID of another length than agreed.
    #[error("the server ID has {have} bytes, the configuration requires {want}")]
    ServerId {
        /// Its length.
        have: usize,
        /// The length agreed on.
        want: usize,
    },
}

/// What a connection ID contains.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct QuicLbId {
    block: [u8; MAX_BLOCK],
    server_id_len: usize,
    len: usize,
}

impl QuicLbId {
    /// The server.
    pub fn server_id(&self) -> &[u8] {
        &self.block[..self.server_id_len]
    }

    /// What makes the ID unique, the worker included.
    pub fn nonce(&self) -> &[u8] {
        &self.block[self.server_id_len..self.len]
    }
}

impl fmt::Debug for QuicLbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbId")
            .field("server_id", &self.server_id())
            .field("nonce", &self.nonce())
            .finish()
    }
}

/// Encodes and decodes connection IDs; all a load balancer needs.
#[derive(Clone, Debug)]
pub struct QuicLbCodec {
    format: QuicLbFormat,
    cipher: Option<Arc<dyn BlockCipher>>,
}

impl QuicLbCodec {
    /// IDs of this form, encrypted with AES-128 or another `cipher`. Without a cipher any observer
    /// can read the server ID.
    pub fn new(
        format: QuicLbFormat,
        cipher: Option<Arc<dyn BlockCipher>>,
    ) -> Result<Self, QuicLbError> {
        let QuicLbFormat {
            config_rotation,
            server_id_len: server_id,
            nonce_len: nonce,
            ..
        } = format;
        if config_rotation >= NO_CONFIG {
            return Err(QuicLbError::ConfigRotation(config_rotation));
        }
        let in_range = (1..=15).contains(&server_id)
            && (MIN_NONCE..=MAX_BLOCK).contains(&nonce)
            && server_id + nonce <= MAX_BLOCK;
        if !in_range {
            return Err(QuicLbError::Lengths { server_id, nonce });
        }
        Ok(Self { format, cipher })
    }

    /// Length of the IDs, bytes.
    pub fn cid_len(&self) -> usize {
        1 + self.block_len()
    }

    fn block_len(&self) -> usize {
        self.format.server_id_len + self.format.nonce_len
    }

    /// The ID of `server_id` and `nonce`. `random` fills the rest of the first octet if that doesn't
    /// hold the length. `None` if a length differs from what was agreed.
    pub fn encode(&self, server_id: &[u8], nonce: &[u8], random: u8) -> Option<ConnectionId> {
        let QuicLbFormat {
            server_id_len,
            nonce_len,
            ..
        } = self.format;
        if server_id.len() != server_id_len || nonce.len() != nonce_len {
            return None;
        }
        let mut bytes = [0; MAX_CID_LEN];
        let len = self.block_len();
        let low = if self.format.encode_len {
            len as u8
        } else {
            random & 0x1f
        };
        bytes[0] = self.format.config_rotation << 5 | low;
        let block = &mut bytes[1..=len];
        block[..server_id_len].copy_from_slice(server_id);
        block[server_id_len..].copy_from_slice(nonce);
        if let Some(cipher) = &self.cipher {
            encrypt(&**cipher, block);
        }
        ConnectionId::new(&bytes[..=len])
    }

    /// Reads the ID at the start of `bytes`, which may go on behind it as in a short header. `None`
    /// if it can't be one of this configuration. There is no checksum: bytes that were not encoded
    /// yield a server ID too, which may exist.
    pub fn decode(&self, bytes: &[u8]) -> Option<QuicLbId> {
        let len = self.block_len();
        let (&first, rest) = bytes.split_first()?;
        let fits = first >> 5 == self.format.config_rotation
            && (!self.format.encode_len || usize::from(first & 0x1f) == len);
        let mut block = [0; MAX_BLOCK];
        block[..len].copy_from_slice(rest.get(..len).filter(|_| fits)?);
        if let Some(cipher) = &self.cipher {
            decrypt(&**cipher, &mut block[..len]);
        }
        Some(QuicLbId {
            block,
            server_id_len: self.format.server_id_len,
            len,
        })
    }
}

/// The connection IDs of one server behind a QUIC-LB load balancer. If they are encrypted and the nonce has 8
/// bytes or more, its first byte is the worker.
#[derive(Clone, Debug)]
pub struct QuicLbCids {
    codec: QuicLbCodec,
    server_id: Vec<u8>,
}

impl QuicLbCids {
    /// IDs that lead to `server_id`.
    pub fn new(codec: QuicLbCodec, server_id: &[u8]) -> Result<Self, QuicLbError> {
        let want = codec.format.server_id_len;
        if server_id.len() != want {
            return Err(QuicLbError::ServerId {
                have: server_id.len(),
                want,
            });
        }
        Ok(Self {
            codec,
            server_id: server_id.to_vec(),
        })
    }

    /// True if the IDs name workers. Without a cipher the worker would be readable, which the draft forbids
    /// of a nonce; in a short nonce it would leave too few random bytes for distinct IDs.
    fn names_workers(&self) -> bool {
        self.codec.cipher.is_some() && self.codec.format.nonce_len >= MIN_WORKER_NONCE
    }
}

impl ConnectionIdGenerator for QuicLbCids {
    fn cid_len(&self) -> usize {
        self.codec.cid_len()
    }

    fn generate(&self, worker: u8, rng: &mut dyn Rng) -> ConnectionId {
        let mut nonce = [0; MAX_BLOCK];
        let nonce = &mut nonce[..self.codec.format.nonce_len];
        rng.fill_bytes(nonce);
        if self.names_workers() {
            nonce[0] = worker;
        }
        let random = rng.next_u32() as u8;
        self.codec
            .encode(&self.server_id, nonce, random)
            .unwrap_or_default()
    }

    fn max_workers(&self) -> u8 {
        if self.names_workers() { u8::MAX } else { 1 }
    }

    fn worker_of(&self, cid: &ConnectionId) -> Option<u8> {
        let id = self.codec.decode(cid.as_bytes())?;
        (self.names_workers() && id.server_id() == self.server_id)
            .then(|| id.nonce().first().copied())
            .flatten()
    }

    fn is_elsewhere(&self, cid: &ConnectionId) -> bool {
        let decoded = self.codec.decode(cid.as_bytes());
        decoded.is_some_and(|id| id.server_id() != self.server_id)
    }

    fn is_unlinkable(&self) -> bool {
        self.codec.cipher.is_some()
    }
}

fn encrypt(cipher: &dyn BlockCipher, block: &mut [u8]) {
    if let Ok(block) = <&mut [u8; SINGLE_PASS]>::try_from(&mut *block) {
        return cipher.encrypt_block(block);
    }
    let mut halves = Halves::split(block);
    for pass in 1..=4 {
        halves.round(cipher, pass);
    }
    halves.join(block);
}

fn decrypt(cipher: &dyn BlockCipher, block: &mut [u8]) {
    if let Ok(block) = <&mut [u8; SINGLE_PASS]>::try_from(&mut *block) {
        return cipher.decrypt_block(block);
    }
    let mut halves = Halves::split(block);
    for pass in (1..=4).rev() {
        halves.round(cipher, pass);
    }
    halves.join(block);
}

/// The two sides of the four-round Feistel network (section 5.4.2). Of an odd number of bytes each
/// has half of the byte in the middle.
struct Halves {
    left: [u8; MAX_HALF],
    right: [u8; MAX_HALF],
    /// Bytes of a side.
    half: usize,
    /// Bytes of both.
    len: usize,
}

impl Halves {
    fn split(block: &[u8]) -> Self {
        let len = block.len();
        let half = len.div_ceil(2);
        let mut halves = Self {
            left: [0; MAX_HALF],
            right: [0; MAX_HALF],
            half,
            len,
        };
        halves.left[..half].copy_from_slice(&block[..half]);
        halves.right[..half].copy_from_slice(&block[len - half..]);
        halves.clear_shared();
        halves
    }

    fn join(&self, block: &mut [u8]) {
        let half = self.half;
        block[..half].copy_from_slice(&self.left[..half]);
        block[half..].copy_from_slice(&self.right[half * 2 - self.len..half]);
        if self.len % 2 == 1 {
            block[half - 1] |= self.right[0];
        }
    }

    /// Mixes one side into the other: the left into the right in odd passes.
    fn round(&mut self, cipher: &dyn BlockCipher, pass: u8) {
        let (from, into) = if pass % 2 == 1 {
            (&self.left, &mut self.right)
        } else {
            (&self.right, &mut self.left)
        };
        let mut input = [0; 16];
        input[..self.half].copy_from_slice(&from[..self.half]);
        input[14] = self.len as u8;
        input[15] = pass;
        cipher.encrypt_block(&mut input);
        for (byte, mask) in into[..self.half].iter_mut().zip(input) {
            *byte ^= mask;
        }
        self.clear_shared();
    }

    /// Clears the half of the middle byte that belongs to the other side.
    fn clear_shared(&mut self) {
        if self.len % 2 == 1 {
            self.left[self.half - 1] &= 0xf0;
            self.right[0] &= 0x0f;
        }
    }
}
