//! One seed for a whole run, split so that adding a host or link doesn't change the random numbers
//! of the others.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Purpose of a derived seed. The numbers are part of a seed's meaning: never reuse one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Link = 1,
    Endpoint = 2,
    EndpointKey = 3,
    Application = 4,
    Flow = 5,
}

/// The seed of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    /// The generator of the `index`-th user of a purpose.
    pub(crate) fn rng(self, purpose: Purpose, index: u64) -> ChaCha20Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        key[16..24].copy_from_slice(&index.to_le_bytes());
        key[24..].copy_from_slice(b"sim seed");
        ChaCha20Rng::from_seed(key)
    }

    /// 32 derived bytes.
    pub(crate) fn bytes(self, purpose: Purpose, index: u64) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.rng(purpose, index).fill_bytes(&mut bytes);
        bytes
    }

    /// A derived number.
    pub(crate) fn number(self, purpose: Purpose, index: u64) -> u64 {
        self.rng(purpose, index).next_u64()
    }
}
