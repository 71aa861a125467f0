//! Errors in a peer's sections and instructions, and their error codes.

use thiserror::Error;

/// Connection error of QPACK (RFC 9204, section 6).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum QpackError {
    /// A field section cannot be decoded.
    #[error("field section: {0}")]
    DecompressionFailed(QpackFault),
    /// The peer's encoder stream is invalid.
    #[error("encoder stream: {0}")]
    EncoderStream(QpackFault),
    /// The peer's decoder stream, or its settings for its decoder, are invalid.
    #[error("decoder stream: {0}")]
    DecoderStream(QpackFault),
    /// The peer causes decoder instructions but gives no flow control credit to send them (RFC
    /// 9204, section 7.3).
    #[error("too many decoder instructions wait to be sent")]
    ExcessiveLoad,
}

impl QpackError {
    /// The HTTP/3 error code: `QPACK_DECOMPRESSION_FAILED`, `QPACK_ENCODER_STREAM_ERROR`,
    /// `QPACK_DECODER_STREAM_ERROR` (RFC 9204, section 8.3) or `H3_EXCESSIVE_LOAD` (RFC 9114, section 8.1).
    pub const fn code(&self) -> u64 {
        match self {
            Self::DecompressionFailed(_) => 0x0200,
            Self::EncoderStream(_) => 0x0201,
            Self::DecoderStream(_) => 0x0202,
            Self::ExcessiveLoad => 0x0107,
        }
    }
}

/// The cause.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum QpackFault {
    /// A section ends inside a field.
    #[error("the bytes end inside a field line")]
    Truncated,
    /// An integer above 2^62 - 1, or in more bytes than such integers need (RFC 9204, sections 4.1.1 and
    /// 7.4).
    #[error("an integer is above 2^62 - 1 or too long")]
    IntegerTooLarge,
    /// A Huffman string with the end-of-string symbol, or with wrong padding (RFC 7541, section 5.2).
    #[error("a Huffman string is malformed")]
    Huffman,
    /// No such entry in the static table (RFC 9204, section 3.1).
    #[error("the static table has no entry {0}")]
    StaticIndex(u64),
    /// A reference to an entry that was evicted or never existed, or is not below the Required Insert Count
    /// (RFC 9204, section 2.2.3).
    #[error("an index does not refer to an entry of the dynamic table")]
    DynamicIndex,
    /// A Required Insert Count that no encoder can produce (RFC 9204, section 4.5.1.1).
    #[error("the required insert count is impossible")]
    RequiredInsertCount,
    /// A negative Base (RFC 9204, section 4.5.1.2).
    #[error("the base is negative")]
    NegativeBase,
    /// More streams are blocked than allowed (RFC 9204, section 2.1.2).
    #[error("more streams are blocked than allowed")]
    TooManyBlocked,
    /// Too many sections are queued behind a blocked one on its stream.
    #[error("too many sections wait on one blocked stream")]
    TooManyHeld,
    /// A capacity above the maximum (RFC 9204, section 4.3.1).
    #[error("table capacity {0} is above the maximum")]
    Capacity(u64),
    /// An entry larger than the table's capacity (RFC 9204, section 3.2.2).
    #[error("an entry is larger than the table")]
    EntryTooLarge,
    /// A Section Acknowledgment for a stream without an unacknowledged section (RFC 9204, section 4.4.1).
    #[error("stream {0} has no section to acknowledge")]
    NothingToAcknowledge(u64),
    /// An increment of zero, or beyond what was sent (RFC 9204, section 4.4.3).
    #[error("an insert count increment of {0} is impossible")]
    Increment(u64),
    /// The maximum capacity differs from the one that early data was encoded with (RFC 9204, section
    /// 3.2.3).
    #[error("the maximum table capacity changed to {0}")]
    CapacityChanged(u64),
}
