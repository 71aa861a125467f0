//! What state is kept by: networks and origins.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One attachment to the Internet, numbered by the caller: equal numbers mean the same network.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
pub struct NetworkId(
    /// The number.
    pub u64,
);

/// An origin in a form from which it can't be read: 64 bits of a SHA-256 hash. Who has a list of origins
/// can still test each of them against it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct OriginHash(
    /// The hash.
    pub u64,
);

impl NetworkId {
    /// The number of a network that is known by this text, such as the addresses of the host.
    pub fn of(network: &str) -> Self {
        Self(hash(b"swiftwater-select network\0", network))
    }
}

impl OriginHash {
    /// The hash of an origin, written as `scheme://host:port`.
    pub fn of(origin: &str) -> Self {
        Self(hash(b"swiftwater-select origin\0", origin))
    }
}

fn hash(purpose: &[u8], text: &str) -> u64 {
    let digest = Sha256::new()
        .chain_update(purpose)
        .chain_update(text.as_bytes())
        .finalize();
    let first = digest.iter().take(8);
    first.fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

impl fmt::Display for NetworkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for OriginHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
