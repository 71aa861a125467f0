//! A client's request on a stream: its first 8 bytes, big-endian.

/// Asks for the checksum of the upload.
const CHECKSUM: u64 = 1 << 61;

/// Added to a number of bytes to be sent back at once.
const ECHO: u64 = 1 << 62;

/// The requested answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// So many bytes of payload after the upload's end (below 2^61).
    Payload(u64),
    /// The upload's checksum in 8 bytes, after its end.
    Checksum,
    /// So many bytes of payload as soon as the same number was received; the stream stays open.
    Echo(u64),
}

impl Wanted {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// As a client sends it.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let value = match self {
            Self::Payload(bytes) => bytes,
            Self::Checksum => CHECKSUM,
            Self::Echo(bytes) => ECHO + bytes,
        };
        value.to_be_bytes()
    }

    /// As a server reads it.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        match u64::from_be_bytes(bytes) {
            value if value >= ECHO => Self::Echo(value - ECHO),
            value if value >= CHECKSUM => Self::Checksum,
            value => Self::Payload(value),
        }
    }
}
