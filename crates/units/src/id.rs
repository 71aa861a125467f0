//! Identifiers of QUIC: roles, paths, packet numbers, streams.

use std::fmt;
use std::ops::Not;

/// The role of an endpoint in a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Side {
    /// The endpoint that opened the connection.
    Client,
    /// The endpoint that accepted it.
    Server,
}

impl Side {
    /// True for [`Side::Client`].
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// True for [`Side::Server`].
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

impl Not for Side {
    type Output = Self;
    /// The other role.
    fn not(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Whether one or both ends may send on a stream (RFC 9000, section 2.1).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Dir {
    /// Both ends send.
    Bi,
    /// Only the end that opened the stream sends.
    Uni,
}

impl Dir {
    /// Both directions, in the order of their wire codes.
    pub const ALL: [Self; 2] = [Self::Bi, Self::Uni];
}

/// A path of a multipath connection (draft-ietf-quic-multipath-21, section 3); the path of the
/// handshake is path 0. A path is its identifier, not its addresses.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PathId(u32);

impl PathId {
    /// The path of the handshake.
    pub const ZERO: Self = Self(0);

    /// The path with this identifier.
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The identifier on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

/// A packet number in one packet number space, 0 to 2^62 - 1 (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PacketNumber(u64);

impl PacketNumber {
    /// The first packet number of a packet number space.
    pub const ZERO: Self = Self(0);
    /// The last permitted packet number.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// The packet number `n`; values above [`PacketNumber::MAX`] are clamped.
    pub const fn new(n: u64) -> Self {
        if n > Self::MAX.0 { Self::MAX } else { Self(n) }
    }

    /// The plain number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next packet number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A stream of a connection (RFC 9000, section 2.1): the two low bits encode initiator and
/// direction, the rest counts streams of that type.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(u64);

impl StreamId {
    /// The stream number `index` (0 is the first) of its type.
    pub const fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        Self((index << 2) | ((dir as u64) << 1) | initiator as u64)
    }

    /// The stream with this identifier on the wire.
    pub const fn from_wire(id: u64) -> Self {
        Self(id)
    }

    /// The identifier on the wire.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The initiator of the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// The directions of the stream.
    pub const fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// Number of earlier streams of the same type.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.initiator() {
            Side::Client => "client",
            Side::Server => "server",
        };
        let dir = match self.dir() {
            Dir::Bi => "bi",
            Dir::Uni => "uni",
        };
        write!(f, "{who} {dir} stream {}", self.index())
    }
}
