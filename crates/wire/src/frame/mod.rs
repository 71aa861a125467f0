//! Frames (RFC 9000, section 19; RFC 9221; draft-ietf-quic-multipath-21, section 4, and
//! -10, section 7;
//! draft-ietf-quic-reliable-stream-reset-09, section 4).

mod ack;
mod decode;
mod encode;
mod feedback;
mod multipath;
pub mod types;

pub use ack::{Ack, AckRanges, write_ack};
pub use decode::{FrameError, FrameIter};
pub use encode::{
    crypto_header_size, stream_header_size, write_crypto_header, write_stream_header,
};
pub use feedback::{Feedback, FeedbackKind, MAX_FEEDBACK_SIZE};

use swiftwater_units::{Dir, PathId, StreamId};

use crate::connection_id::{ConnectionId, ResetToken};
use crate::error::ErrorCode;

/// Most streams of a kind that can ever be opened (RFC 9000, section 19.11).
pub const MAX_STREAMS: u64 = 1 << 60;

const STREAM_FIN: u64 = 0x01;
const STREAM_LEN: u64 = 0x02;
const STREAM_OFF: u64 = 0x04;

/// A frame, borrowing its content from the packet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// `length` consecutive bytes of padding (each is a separate frame on the wire).
    Padding {
        /// Consecutive padding bytes.
        length: usize,
    },
    /// PING: elicits an acknowledgement.
    Ping,
    /// Acknowledges packets of the packet number space of its own packet, or (`PATH_ACK`) of
    /// `Ack::path`'s.
    Ack(Ack<'a>),
    /// The sender will send no more on the stream.
    ResetStream(ResetStream),
    /// The sender will send no more on the stream, except its first bytes.
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
        /// The limit at which it is blocked.
        limit: u64,
    },
    /// The sender has more data than the stream's limit.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit at which it is blocked.
        limit: u64,
    },
    /// The sender needs more streams than the limit.
    StreamsBlocked {
        /// Which kind.
        dir: Dir,
        /// The limit at which it is blocked.
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
    /// PATH_CHALLENGE: requests a PATH_RESPONSE.
    PathChallenge {
        /// The data to return.
        data: [u8; 8],
    },
    /// PATH_RESPONSE: returns the data of a PATH_CHALLENGE.
    PathResponse {
        /// The data of the challenge.
        data: [u8; 8],
    },
    /// The sender closes the connection.
    ConnectionClose(ConnectionClose<'a>),
    /// The server has confirmed the handshake.
    HandshakeDone,
    /// The sender's request for a frequency of acknowledgements.
    AckFrequency(AckFrequency),
    /// The sender requests an acknowledgement at once (draft-ietf-quic-ack-frequency, section 5).
    ImmediateAck,
    /// An unreliable datagram (RFC 9221).
    Datagram {
        /// The payload.
        data: &'a [u8],
    },
    /// The path is abandoned.
    PathAbandon {
        /// The path.
        path: PathId,
        /// The error code.
        error: ErrorCode,
        /// The reason phrase, any bytes; only draft 10 has it, and it is not written otherwise.
        reason: &'a [u8],
    },
    /// Status of a path (`PATH_STATUS_AVAILABLE`, `PATH_STATUS_BACKUP`).
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
    /// The sender needs more paths than the limit.
    PathsBlocked {
        /// The limit at which it is blocked.
        max: PathId,
    },
    /// The sender has no connection ID for a path.
    PathCidsBlocked {
        /// The path.
        path: PathId,
        /// The sequence number expected next.
        next_sequence: u64,
    },
    /// A message between policies.
    Feedback(Feedback<'a>),
}

/// `RESET_STREAM` (RFC 9000, section 19.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub error: u64,
    /// Final size of the stream, bytes.
    pub final_size: u64,
}

/// `RESET_STREAM_AT` (draft-ietf-quic-reliable-stream-reset-09, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResetStreamAt {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
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
    /// The application's error code.
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
    /// Every smaller sequence number must be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// 1 to 20 bytes.
    pub cid: ConnectionId,
    /// The stateless reset token for this ID.
    pub reset_token: ResetToken,
}

/// `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckFrequency {
    /// Increases with each frame; frames out of order are ignored.
    pub sequence: u64,
    /// Ack-eliciting packets that may remain unacknowledged; one more elicits an acknowledgement. 1
    /// is the rule of RFC 9000, 0 requests an acknowledgement of each packet.
    pub ack_eliciting_threshold: u64,
    /// Longest delay of an acknowledgement, microseconds.
    pub max_ack_delay: u64,
    /// Distance in packet numbers at which a missing packet elicits an acknowledgement; 1 is the
    /// rule of RFC 9000, with 0 none does.
    pub reordering_threshold: u64,
}

/// `CONNECTION_CLOSE` (RFC 9000, section 19.19).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionClose<'a> {
    /// Type 0x1c: an error of the transport.
    Transport {
        /// The error.
        error: ErrorCode,
        /// The frame type that caused it, 0 if unknown.
        frame_type: u64,
        /// The reason phrase; any bytes.
        reason: &'a [u8],
    },
    /// Type 0x1d: an error of the application.
    Application {
        /// The application's code.
        error: u64,
        /// The reason phrase; any bytes.
        reason: &'a [u8],
    },
}
