//! Identifiers of packet number spaces (RFC 9000, section 12.3).

use swiftwater_units::PathId;

use crate::crypto::EncryptionLevel;

/// A packet number space: one for Initial packets, one for Handshake packets, and one for the
/// application data of each path (0-RTT and 1-RTT packets).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SpaceId {
    Initial,
    Handshake,
    Data(PathId),
}

impl SpaceId {
    /// The space that packets of `level` on `path` are numbered in.
    pub(crate) fn of(level: EncryptionLevel, path: PathId) -> Self {
        match level {
            EncryptionLevel::Initial => Self::Initial,
            EncryptionLevel::Handshake => Self::Handshake,
            EncryptionLevel::ZeroRtt | EncryptionLevel::OneRtt => Self::Data(path),
        }
    }

    /// The encryption level whose packets are acknowledged in this space.
    pub(crate) fn level(self) -> EncryptionLevel {
        match self {
            Self::Initial => EncryptionLevel::Initial,
            Self::Handshake => EncryptionLevel::Handshake,
            Self::Data(_) => EncryptionLevel::OneRtt,
        }
    }

    /// True for the application data of a path.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Self::Data(_))
    }
}
