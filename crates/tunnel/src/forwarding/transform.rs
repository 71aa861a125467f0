//! Packet transforms (draft-ietf-masque-quic-proxy, section 6.3): applied to forwarded packets between client and proxy,
//! after a connection ID became a virtual one and before it becomes a connection ID again. The virtual ID stays as it is.

use std::fmt;

use swiftwater_net::quic::crypto::BlockCipher;
use swiftwater_tls::{Aes128Block, Aes128Counter, random_secret};

/// Bytes after the connection ID that are the initial counter block.
const IV: usize = 16;

/// The bit of the first byte that must be 0: the header is a short one (RFC 8999, section 5.2).
const HEADER_FORM: u8 = 0x80;

/// A packet transform that this crate has.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Transform {
    /// Encryption without integrity: an observer of both sides of the proxy can't compare packets. Their sizes and times
    /// remain, and who can change packets is not stopped (section 6.3.2).
    Scramble,
    /// None: an observer of both sides sees which packets are the same (section 6.3.1).
    Identity,
}

impl Transform {
    /// All, the preferred one first.
    pub const ALL: [Self; 2] = [Self::Scramble, Self::Identity];

    /// Its registered name; that of the scramble transform is the one of the drafts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scramble => "scramble-dt",
            Self::Identity => "identity",
        }
    }

    /// The transform with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|all| all.name() == name)
    }
}

/// A key of the scramble transform: the one that its sender encrypts with. Never printed.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct ScrambleKey([u8; 32]);

impl ScrambleKey {
    /// This key, which must be unpredictable.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// A new one.
    pub fn random() -> Self {
        Self(random_secret())
    }

    /// The bytes in the field.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The keys of counter mode and of the block (section 6.3.2, step 1).
    fn halves(&self) -> ([u8; 16], [u8; 16]) {
        let (mut first, mut second) = ([0; 16], [0; 16]);
        first.copy_from_slice(&self.0[..16]);
        second.copy_from_slice(&self.0[16..]);
        (first, second)
    }
}

impl fmt::Debug for ScrambleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScrambleKey(..)")
    }
}

/// The transform of the packets of one direction, with its key.
#[derive(Debug)]
pub enum PacketTransform {
    /// See [`Transform::Scramble`].
    Scramble(Box<Scrambler>),
    /// See [`Transform::Identity`].
    Identity,
}

/// The ciphers of the scramble transform.
#[derive(Debug)]
pub struct Scrambler {
    counter: Aes128Counter,
    block: Aes128Block,
}

impl PacketTransform {
    /// The scramble transform with the key of the sender.
    pub fn scramble(key: &ScrambleKey) -> Self {
        let (counter, block) = key.halves();
        Self::Scramble(Box::new(Scrambler {
            counter: Aes128Counter::new(counter),
            block: Aes128Block::new(block),
        }))
    }

    /// Whether a packet of `len` bytes is long enough: every QUIC packet of versions 1 and 2 is.
    pub fn takes(&self, len: usize, cid_len: usize) -> bool {
        match self {
            Self::Identity => len > cid_len,
            Self::Scramble(_) => len > cid_len + IV,
        }
    }

    /// Encodes a packet in place, whose virtual connection ID has `cid_len` bytes; false, and the packet is as it was, if
    /// it is too short to be a QUIC packet that the transform takes.
    pub fn encode(&self, packet: &mut [u8], cid_len: usize) -> bool {
        match self {
            Self::Identity => packet.len() > cid_len,
            Self::Scramble(scrambler) => {
                let Some((iv, mut content)) = split(packet, cid_len) else {
                    return false;
                };
                scrambler.counter.apply(iv, content.join());
                let mut block = iv;
                scrambler.block.encrypt_block(&mut block);
                content.restore(&block);
                true
            }
        }
    }

    /// Decodes a packet in place: the inverse of [`PacketTransform::encode`].
    pub fn decode(&self, packet: &mut [u8], cid_len: usize) -> bool {
        match self {
            Self::Identity => packet.len() > cid_len,
            Self::Scramble(scrambler) => {
                let Some((mut iv, mut content)) = split(packet, cid_len) else {
                    return false;
                };
                scrambler.block.decrypt_block(&mut iv);
                scrambler.counter.apply(iv, content.join());
                content.restore(&iv);
                true
            }
        }
    }
}

/// The first byte of a packet and what follows the counter block: encrypted together, as if one came after the other.
struct Content<'a> {
    first: &'a mut u8,
    /// The counter block, and what follows it.
    rest: &'a mut [u8],
}

fn split(packet: &mut [u8], cid_len: usize) -> Option<([u8; IV], Content<'_>)> {
    let (first, rest) = packet.split_first_mut()?;
    let rest = rest.get_mut(cid_len..)?;
    let iv = *rest.first_chunk()?;
    Some((iv, Content { first, rest }))
}

impl Content<'_> {
    /// Both in one piece: the first byte lies in the last one of the counter block for now.
    fn join(&mut self) -> &mut [u8] {
        self.rest[IV - 1] = *self.first;
        &mut self.rest[IV - 1..]
    }

    /// Puts the first byte back where it belongs, and the counter block into its place.
    fn restore(self, block: &[u8; IV]) {
        *self.first = self.rest[IV - 1] & !HEADER_FORM;
        self.rest[..IV].copy_from_slice(block);
    }
}
