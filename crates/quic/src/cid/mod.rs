//! Generation of the connection IDs that an endpoint issues (RFC 9000, section 5.1).
//!
//! They must reveal nothing to peers and observers, while load balancers and the workers of a server may
//! have to read a host or a worker from them. A [`ConnectionIdGenerator`] decides what they hold. Which
//! connection an ID is associated with is the endpoint's to decide.

mod quic_lb;
mod source;
mod worker;

use std::fmt;
use std::sync::Arc;

use rand_core::Rng;
use swiftwater_wire::{ConnectionId, MAX_CID_LEN};

use crate::crypto::EndpointKey;

pub use quic_lb::{QuicLbCids, QuicLbCodec, QuicLbError, QuicLbFormat, QuicLbId};
pub(crate) use source::CidSource;
pub use worker::Worker;

/// Length of the random destination of a client's first Initial; 8 at least (RFC 9000, section
/// 7.2).
pub(crate) const FIRST_DST_CID_LEN: usize = 8;

/// Makes the connection IDs of an endpoint, or of all workers and hosts that share an address.
pub trait ConnectionIdGenerator: Send + Sync + fmt::Debug {
    /// Length of every ID, 0 to 20 bytes: the endpoint finds IDs in short headers by it.
    fn cid_len(&self) -> usize;

    /// A new ID for a connection of worker `worker`. Two calls should hardly ever return the same
    /// ID, and an observer should not be able to link two IDs of a connection.
    fn generate(&self, worker: u8, rng: &mut dyn Rng) -> ConnectionId;

    /// How many workers the IDs distinguish; 1 if none.
    fn max_workers(&self) -> u8 {
        1
    }

    /// The worker that an ID of [`ConnectionIdGenerator::cid_len`] bytes names. An ID that was not generated
    /// here may seem to name one too.
    fn worker_of(&self, _cid: &ConnectionId) -> Option<u8> {
        None
    }

    /// True if this ID, of [`ConnectionIdGenerator::cid_len`] bytes, belongs to another host. No
    /// stateless reset is sent for it: if both hosts had the same key, an attacker that gets packets of an
    /// active connection to the wrong host could end it (RFC 9000, section 21.11).
    fn is_elsewhere(&self, _cid: &ConnectionId) -> bool {
        false
    }

    /// False if IDs show an observer which host they belong to. Further IDs, which are for clients
    /// that move unrecognised, are then not offered.
    fn is_unlinkable(&self) -> bool {
        true
    }
}

/// Random IDs, which hold nothing.
#[derive(Clone, Copy, Debug)]
pub struct RandomCids {
    len: usize,
}

impl RandomCids {
    /// IDs of `len` bytes; more than 20 count as 20. Zero only for clients.
    pub const fn new(len: usize) -> Self {
        Self {
            len: if len > MAX_CID_LEN { MAX_CID_LEN } else { len },
        }
    }
}

impl ConnectionIdGenerator for RandomCids {
    fn cid_len(&self) -> usize {
        self.len
    }

    fn generate(&self, _worker: u8, rng: &mut dyn Rng) -> ConnectionId {
        random_cid(rng, self.len)
    }
}

/// IDs from which the holders of the endpoint's key read a worker, and which look random to all others.
///
/// The last byte is the worker's index, masked with a keyed function of the bytes before it, which
/// are random.
#[derive(Clone, Debug)]
pub struct WorkerCids {
    len: usize,
    key: Arc<dyn EndpointKey>,
}

impl WorkerCids {
    /// IDs of `len` bytes, 8 to 20; other lengths count as the nearest. Processes that share an
    /// address must share the key.
    pub fn new(len: usize, key: Arc<dyn EndpointKey>) -> Self {
        Self {
            len: len.clamp(8, MAX_CID_LEN),
            key,
        }
    }

    /// What hides the worker behind the random part of an ID.
    fn mask(&self, random: &[u8]) -> u8 {
        let mut input = [0; 16];
        let n = random.len().min(15);
        input[..n].copy_from_slice(&random[..n]);
        input[15] = random.len() as u8;
        self.key.mask(&input)[0]
    }
}

impl ConnectionIdGenerator for WorkerCids {
    fn cid_len(&self) -> usize {
        self.len
    }

    fn generate(&self, worker: u8, rng: &mut dyn Rng) -> ConnectionId {
        let mut bytes = [0; MAX_CID_LEN];
        let (random, rest) = bytes.split_at_mut(self.len - 1);
        rng.fill_bytes(random);
        rest[0] = worker ^ self.mask(random);
        ConnectionId::new(&bytes[..self.len]).unwrap_or_default()
    }

    fn max_workers(&self) -> u8 {
        u8::MAX
    }

    fn worker_of(&self, cid: &ConnectionId) -> Option<u8> {
        let (masked, random) = cid.as_bytes().split_last()?;
        (cid.len() == self.len).then(|| masked ^ self.mask(random))
    }
}

/// A connection ID of `len` unpredictable bytes, 20 at most.
pub(crate) fn random_cid(rng: &mut dyn Rng, len: usize) -> ConnectionId {
    let mut bytes = [0; MAX_CID_LEN];
    let len = len.min(MAX_CID_LEN);
    rng.fill_bytes(&mut bytes[..len]);
    ConnectionId::new(&bytes[..len]).unwrap_or_default()
}
