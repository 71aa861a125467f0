//! Frames (RFC 9000, section 19; RFC 9221; multipath draft, section 4;
//! draft-ietf-quic-reliable-stream-reset-09, section 4).

mod ack;
mod decode;
mod encode;
pub mod types;

pub use ack::{Ack, AckRanges, write_ack};
pub use decode::{FrameError, FrameIter};
pub use encode::{
    crypto_header_size, stream_header_size, stream_header_size_to_end, write_crypto_header,
    write_stream_header, write_stream_header_to_end,
};

use swiftwater_units::{Dir, PathId, StreamId};

use crate::connection_id::{ConnectionId, ResetToken};
use crate::error::ErrorCode;

/// Most streams of a kind that can ever be opened (RFC 9000, section 19.11).
pub const MAX_STREAMS: u64 = 1 << 60;

const STREAM_FIN: u64 = 0x01;
const STREAM_LEN: u64 = 0x02;
const STREAM_OFF: u64 = 0x04;

/// A frame, borrowing what it carries from the packet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// `length` bytes of padding in a row (each is a frame of its own on the wire).
    Padding {
        /// Consecutive padding bytes.
        length: usize,
    },
    /// Asks for an acknowledgement.
    Ping,
    /// Acknowledges packets of the space it travels in, or (`PATH_ACK`) of `Ack::path`'s.
    Ack(Ack<'a>),
    /// The sender will send no more on the stream.
    ResetStream(ResetStream),
    /// The sender will send no more on the stream than its first bytes.
    ResetStreamAt(ResetStreamAt),
    /// The sender will read no more from the stream.
    StopSending(StopSending),
    /// Handshake bytes.
    Crypto(Crypto<'a>),
    /// A token for a later connection.
    NewToken {
        /// The token, not empty.
        token: &'a [u8],
    },
    /// Stream bytes.
    Stream(Stream<'a>),
    /// New limit on the bytes of all streams.
    MaxData {
        /// Total bytes.
        limit: u64,
    },
    /// New limit on the bytes of one stream.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Total bytes.
        limit: u64,
    },
    /// New limit on the number of streams.
    MaxStreams {
        /// Which kind.
        dir: Dir,
        /// Total streams, at most 2^60.
        count: u64,
    },
    /// The sender has more data than the connection's limit.
    DataBlocked {
        /// The limit that blocks.
        limit: u64,
    },
    /// The sender has more data than the stream's limit.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that blocks.
        limit: u64,
    },
    /// The sender wants more streams than the limit.
    StreamsBlocked {
        /// Which kind.
        dir: Dir,
        /// The limit that blocks.
        limit: u64,
    },
    /// A connection ID for the peer to use (`PATH_NEW_CONNECTION_ID` if `path` is set).
    NewConnectionId(NewConnectionId),
    /// The sender will use a connection ID no more.
    RetireConnectionId {
        /// The path of a `PATH_RETIRE_CONNECTION_ID`.
        path: Option<PathId>,
        /// Its sequence number.
        sequence: u64,
    },
    /// Asks for an echo.
    PathChallenge {
        /// What to echo.
        data: [u8; 8],
    },
    /// The echo.
    PathResponse {
        /// What was asked for.
        data: [u8; 8],
    },
    /// The sender closes the connection.
    ConnectionClose(ConnectionClose<'a>),
    /// The server has confirmed the handshake.
    HandshakeDone,
    /// The sender's wish for how often it is acknowledged.
    AckFrequency(AckFrequency),
    /// The sender wants an acknowledgement at once (draft-ietf-quic-ack-frequency, section 5).
    ImmediateAck,
    /// An unreliable datagram (RFC 9221).
    Datagram {
        /// The payload.
        data: &'a [u8],
    },
    /// The path will be used no more.
    PathAbandon {
        /// The path.
        path: PathId,
        /// Why.
        error: ErrorCode,
    },
    /// Advice on the use of a path (`PATH_STATUS_AVAILABLE`, `PATH_STATUS_BACKUP`).
    PathStatus {
        /// The path.
        path: PathId,
        /// Rises with each change.
        sequence: u64,
        /// True for backup.
        backup: bool,
    },
    /// New limit on path identifiers.
    MaxPathId {
        /// The largest identifier allowed.
        max: PathId,
    },
    /// The sender wants more paths.
    PathsBlocked {
        /// The limit that blocks.
        max: PathId,
    },
    /// The sender has no connection ID for a path.
    PathCidsBlocked {
        /// The path.
        path: PathId,
        /// The sequence number expected next.
        next_sequence: u64,
    },
}

/// `RESET_STREAM` (RFC 9000, section 19.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's reason.
    pub error: u64,
    /// Final size of the stream, bytes.
    pub final_size: u64,
}

/// `RESET_STREAM_AT` (draft-ietf-quic-reliable-stream-reset-09, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResetStreamAt {
    /// The stream.
    pub id: StreamId,
    /// The application's reason.
    pub error: u64,
    /// Final size of the stream, bytes.
    pub final_size: u64,
    /// Bytes that are delivered in spite of the reset; at most `final_size`.
    pub reliable_size: u64,
}

/// `STOP_SENDING` (RFC 9000, section 19.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// The application's reason.
    pub error: u64,
}

/// `CRYPTO` (RFC 9000, section 19.6). `offset + data.len()` is below 2^62.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Crypto<'a> {
    /// Where the bytes start.
    pub offset: u64,
    /// The bytes.
    pub data: &'a [u8],
}

/// `STREAM` (RFC 9000, section 19.8). `offset + data.len()` is below 2^62.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Where the bytes start.
    pub offset: u64,
    /// True if the stream ends with these bytes.
    pub fin: bool,
    /// The bytes.
    pub data: &'a [u8],
}

/// `NEW_CONNECTION_ID` or `PATH_NEW_CONNECTION_ID` (RFC 9000, section 19.15).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewConnectionId {
    /// The path of a `PATH_NEW_CONNECTION_ID`.
    pub path: Option<PathId>,
    /// Its sequence number.
    pub sequence: u64,
    /// Every smaller sequence number is to be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// 1 to 20 bytes.
    pub cid: ConnectionId,
    /// The token that resets connections with this ID.
    pub reset_token: ResetToken,
}

/// `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckFrequency {
    /// Rises with each frame; those that come out of order are ignored.
    pub sequence: u64,
    /// Ack-eliciting packets that may wait for an acknowledgement; one more makes it due. 1 is what
    /// RFC 9000 does, 0 asks for an acknowledgement of each packet.
    pub ack_eliciting_threshold: u64,
    /// Longest delay of an acknowledgement, microseconds.
    pub max_ack_delay: u64,
    /// Distance in packet numbers at which a missing packet makes an acknowledgement due; 1 is what
    /// RFC 9000 does, 0 means that none does.
    pub reordering_threshold: u64,
}

/// `CONNECTION_CLOSE` (RFC 9000, section 19.19).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionClose<'a> {
    /// Type 0x1c: the transport's reason.
    Transport {
        /// The error.
        error: ErrorCode,
        /// The frame type that caused it, 0 if unknown.
        frame_type: u64,
        /// For people; any bytes.
        reason: &'a [u8],
    },
    /// Type 0x1d: the application's reason.
    Application {
        /// The application's code.
        error: u64,
        /// For people; any bytes.
        reason: &'a [u8],
    },
}
