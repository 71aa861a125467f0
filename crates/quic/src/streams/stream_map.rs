//! Maps by stream.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use swiftwater_units::StreamId;

/// A map by stream, for what is looked up several times in the life of each. Its order means nothing.
pub type StreamMap<T> = HashMap<StreamId, T, BuildHasherDefault<StreamHasher>>;

/// Hashes stream identifiers, at the cost of a multiplication. They are dense, and multiplying by an odd number
/// keeps their low bits distinct, so a peer gains nothing from choosing them.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamHasher(u64);

impl Hasher for StreamHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
