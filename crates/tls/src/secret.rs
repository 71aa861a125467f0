//! A TLS secret in a fixed-size buffer.

use std::ops::Deref;

use zeroize::Zeroizing;

/// The longest secret: an output of SHA-384.
const MAX_LEN: usize = 48;

/// As long as the hash of the cipher suite, initially empty; zeroized when dropped.
pub(crate) struct Secret {
    bytes: Zeroizing<[u8; MAX_LEN]>,
    len: u8,
}

impl Secret {
    /// `bytes`, or nothing if they are longer than any secret.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self::made(bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// `len` bytes that `fill` writes, or nothing if that is longer than any secret.
    pub(crate) fn made(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut secret = Self::default();
        if let Some(room) = secret.bytes.get_mut(..len) {
            fill(room);
            secret.len = len as u8;
        }
        secret
    }
}

impl Default for Secret {
    fn default() -> Self {
        Self {
            bytes: Zeroizing::new([0; MAX_LEN]),
            len: 0,
        }
    }
}

impl Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}
