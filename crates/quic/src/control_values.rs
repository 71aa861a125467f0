//! Control values: what names them, what they are, and the frames that carry them (RFC 9000, section 19).

use std::ops::RangeInclusive;

use swiftwater_units::{Dir, PathId, StreamId};
use swiftwater_wire::frame;
use swiftwater_wire::{ConnectionId, ErrorCode, Frame, ResetToken};

use crate::policy::FeedbackPayload;

/// Names a value. Values are sent in the order in which they were queued, oldest first. The order of keys
/// places the limits side by side ([`ControlKey::LIMITS`]), and the retirements, so that each is a range of
/// a sorted map; values that are repeated at the same time are queued in it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ControlKey {
    /// `HANDSHAKE_DONE`.
    HandshakeDone,
    /// `RETIRE_CONNECTION_ID` of this sequence number.
    RetireConnectionId(PathId, u64),
    /// `NEW_CONNECTION_ID` of this sequence number.
    NewConnectionId(PathId, u64),
    /// `MAX_DATA`.
    MaxData,
    /// `MAX_STREAM_DATA`.
    MaxStreamData(StreamId),
    /// `MAX_STREAMS`.
    MaxStreams(Dir),
    /// `RESET_STREAM` or `RESET_STREAM_AT`.
    ResetStream(StreamId),
    /// `STOP_SENDING`.
    StopSending(StreamId),
    /// `DATA_BLOCKED`.
    DataBlocked,
    /// `STREAM_DATA_BLOCKED`.
    StreamDataBlocked(StreamId),
    /// `STREAMS_BLOCKED`.
    StreamsBlocked(Dir),
    /// `NEW_TOKEN`.
    NewToken,
    /// `ACK_FREQUENCY`.
    AckFrequency,
    /// `FEEDBACK` of this kind that elicits an acknowledgement.
    Feedback(frame::FeedbackKind),
    /// `PATH_ABANDON`.
    PathAbandon(PathId),
    /// `PATH_STATUS_AVAILABLE` or `PATH_STATUS_BACKUP`.
    PathStatus(PathId),
    /// `MAX_PATH_ID`.
    MaxPathId,
    /// `PATHS_BLOCKED`.
    PathsBlocked,
    /// `PATH_CIDS_BLOCKED`.
    PathCidsBlocked(PathId),
}

impl ControlKey {
    /// The limits that this end gives the peer: `MaxData`, `MaxStreamData` and `MaxStreams`.
    pub(crate) const LIMITS: RangeInclusive<Self> = Self::MaxData..=Self::MaxStreams(Dir::Uni);
}

/// A value for a [`ControlKey`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ControlValue {
    /// For the keys whose frame has no field beyond the key.
    Unit,
    /// A limit, for the `Max…` and `…Blocked` keys of streams; the next sequence number, for
    /// `PathCidsBlocked`.
    Limit(u64),
    /// For `ResetStream`.
    Reset {
        /// The application's code.
        error: u64,
        /// Final size, bytes.
        final_size: u64,
    },
    /// For `ResetStream`, as `RESET_STREAM_AT`.
    ResetAt {
        /// The application's code.
        error: u64,
        /// Final size, bytes.
        final_size: u64,
        /// Bytes that are delivered in spite of it.
        reliable_size: u64,
    },
    /// The application's code, for `StopSending`; the error code, for `PathAbandon`.
    Code(u64),
    /// For `PathStatus`.
    Status {
        /// Number among those of its path.
        sequence: u64,
        /// Backup, or else available.
        backup: bool,
    },
    /// The largest identifier, for `MaxPathId` and `PathsBlocked`.
    PathLimit(PathId),
    /// For `NewConnectionId`.
    ConnectionId {
        /// The connection ID.
        cid: ConnectionId,
        /// Its reset token.
        reset_token: ResetToken,
        /// `retire_prior_to`.
        retire_prior_to: u64,
    },
    /// For `NewToken`.
    Token(Vec<u8>),
    /// For `AckFrequency`.
    Frequency(frame::AckFrequency),
    /// For `Feedback`.
    Feedback {
        /// Number among those of its kind.
        sequence: u64,
        /// Its payload.
        payload: Box<FeedbackPayload>,
    },
}

/// The frame that carries `value` for `key` in a packet on the path `sent_on`.
pub(crate) fn frame_of(key: ControlKey, value: &ControlValue, sent_on: PathId) -> Frame<'_> {
    match (key, value) {
        (ControlKey::HandshakeDone, _) => Frame::HandshakeDone,
        (ControlKey::RetireConnectionId(path, sequence), _) => Frame::RetireConnectionId {
            path: named(path, sent_on),
            sequence,
        },
        (
            ControlKey::NewConnectionId(path, sequence),
            &ControlValue::ConnectionId {
                cid,
                reset_token,
                retire_prior_to,
            },
        ) => Frame::NewConnectionId(frame::NewConnectionId {
            path: named(path, sent_on),
            sequence,
            retire_prior_to,
            cid,
            reset_token,
        }),
        (ControlKey::PathCidsBlocked(path), &ControlValue::Limit(next_sequence)) => {
            Frame::PathCidsBlocked {
                path,
                next_sequence,
            }
        }
        (key, &ControlValue::Limit(limit)) => limit_frame(key, limit),
        (ControlKey::PathAbandon(path), &ControlValue::Code(code)) => Frame::PathAbandon {
            path,
            error: ErrorCode(code),
            reason: &[],
        },
        (ControlKey::PathStatus(path), &ControlValue::Status { sequence, backup }) => {
            Frame::PathStatus {
                path,
                sequence,
                backup,
            }
        }
        (ControlKey::MaxPathId, &ControlValue::PathLimit(max)) => Frame::MaxPathId { max },
        (ControlKey::PathsBlocked, &ControlValue::PathLimit(max)) => Frame::PathsBlocked { max },
        (ControlKey::ResetStream(id), value) => reset_frame(id, value),
        (ControlKey::StopSending(id), &ControlValue::Code(error)) => {
            Frame::StopSending(frame::StopSending { id, error })
        }
        (ControlKey::NewToken, ControlValue::Token(token)) => Frame::NewToken { token },
        (ControlKey::AckFrequency, &ControlValue::Frequency(requested)) => {
            Frame::AckFrequency(requested)
        }
        (ControlKey::Feedback(kind), ControlValue::Feedback { sequence, payload }) => {
            Frame::Feedback(frame::Feedback {
                kind,
                sequence: *sequence,
                payload: payload.as_bytes(),
                ack_eliciting: true,
            })
        }
        (key, value) => unreachable!("{value:?} is no value for {key:?}"),
    }
}

/// The frames of flow control and stream limits.
fn limit_frame(key: ControlKey, limit: u64) -> Frame<'static> {
    match key {
        ControlKey::MaxData => Frame::MaxData { limit },
        ControlKey::MaxStreamData(id) => Frame::MaxStreamData { id, limit },
        ControlKey::MaxStreams(dir) => Frame::MaxStreams { dir, count: limit },
        ControlKey::DataBlocked => Frame::DataBlocked { limit },
        ControlKey::StreamDataBlocked(id) => Frame::StreamDataBlocked { id, limit },
        ControlKey::StreamsBlocked(dir) => Frame::StreamsBlocked { dir, limit },
        key => unreachable!("{key:?} has no limit"),
    }
}

/// The frames that end the sending of a stream.
fn reset_frame(id: StreamId, value: &ControlValue) -> Frame<'static> {
    match *value {
        ControlValue::Reset { error, final_size } => Frame::ResetStream(frame::ResetStream {
            id,
            error,
            final_size,
        }),
        ControlValue::ResetAt {
            error,
            final_size,
            reliable_size,
        } => Frame::ResetStreamAt(frame::ResetStreamAt {
            id,
            error,
            final_size,
            reliable_size,
        }),
        ref value => unreachable!("{value:?} resets no stream"),
    }
}

/// The path that a frame about connection IDs names. On path 0 the frames of RFC 9000 are used for that path; on
/// others they are not, because there are peers that take them to be about the path of the packet.
fn named(path: PathId, sent_on: PathId) -> Option<PathId> {
    (path != PathId::ZERO || sent_on != PathId::ZERO).then_some(path)
}
