//! Connection identifiers and stateless-reset tokens.

use std::fmt;

/// Longest connection ID of QUIC v1, bytes (RFC 9000, section 17.2).
pub const MAX_CID_LEN: usize = 20;

/// A connection ID of 0 to 20 bytes (RFC 9000, section 5.1).
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CID_LEN],
}

impl ConnectionId {
    /// The zero-length connection ID.
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: [0; MAX_CID_LEN],
    };

    /// A connection ID with these bytes, or `None` if there are more than [`MAX_CID_LEN`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut cid = Self::EMPTY;
        cid.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        cid.len = bytes.len() as u8;
        Some(cid)
    }

    /// The bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Length in bytes, 0 to 20.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True for the zero-length connection ID.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cid:{self}")
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A stateless-reset token (RFC 9000, section 10.3). Compared in constant time; never printed.
#[derive(Clone, Copy)]
pub struct ResetToken(pub [u8; 16]);

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .fold(0, |diff, (a, b)| diff | (a ^ b))
            == 0
    }
}

impl Eq for ResetToken {}

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}
