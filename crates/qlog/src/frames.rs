//! Frames of packets (QUIC events draft, section 8.13).
//!
//! The draft's frames are maps that may hold more than it lists (`$QuicFrame`); additions are defined
//! in `schema/swiftwater.cddl`. `length` next to `raw` is for qlog 0.3.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::RangeInclusive;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use swiftwater_quic::observe::{Payload, Purpose, SentFrame};
use swiftwater_quic::wire::{Frame as Wire, frame};
use swiftwater_units::{Dir, StreamId};

use crate::close::transport_error;
use crate::text::{Hex, shortened};

/// Most frames of one packet that are written; more occur only in packets of very small frames.
pub(crate) const MAX_FRAMES: usize = 128;

/// Limits on ACK ranges of one packet, and on bytes of its free texts.
const MAX_RANGES: usize = 512;

/// The draft's `RawInfo`, without the bytes themselves.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Raw {
    pub(crate) length: u64,
}

impl Raw {
    /// A size without the bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            length: size as u64,
        }
    }
}

/// The frames of a packet, as an array.
pub(crate) struct Frames<'a> {
    pub(crate) payload: Payload<'a>,
    /// The sender's state that is needed to interpret them.
    pub(crate) sent: &'a [SentFrame],
    /// Exponent of the ACK delays, whose unit is that power of 2 in microseconds.
    pub(crate) ack_delay_exponent: u8,
}

impl Frames<'_> {
    /// Number of frames that are not written.
    pub(crate) fn omitted(&self) -> usize {
        self.payload.frames().skip(MAX_FRAMES).count()
    }
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut purposes = self.sent.iter().filter_map(|frame| match frame {
            SentFrame::Stream { purpose, .. } => Some(*purpose),
            _ => None,
        });
        let ranges = Cell::new(MAX_RANGES);
        let mut seq = serializer.serialize_seq(None)?;
        for wire in self.payload.frames().take(MAX_FRAMES) {
            let purpose = match wire {
                Wire::Stream(_) => purposes.next(),
                _ => None,
            };
            seq.serialize_element(&self.frame(&wire, purpose, &ranges))?;
        }
        seq.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame<'a> {
    Padding {
        raw: Raw,
    },
    Ping,
    Ack(Ack<'a>),
    ResetStream {
        stream_id: u64,
        error: &'static str,
        error_code: u64,
        final_size: u64,
    },
    ResetStreamAt {
        stream_id: u64,
        error: &'static str,
        error_code: u64,
        final_size: u64,
        reliable_size: u64,
    },
    StopSending {
        stream_id: u64,
        error: &'static str,
        error_code: u64,
    },
    Crypto {
        offset: u64,
        length: u64,
        raw: Raw,
    },
    NewToken {
        token: Token,
    },
    Stream {
        stream_id: u64,
        offset: u64,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        fin: bool,
        length: u64,
        raw: Raw,
        #[serde(skip_serializing_if = "Option::is_none")]
        purpose: Option<&'static str>,
    },
    MaxData {
        maximum: u64,
    },
    MaxStreamData {
        stream_id: u64,
        maximum: u64,
    },
    MaxStreams {
        stream_type: &'static str,
        maximum: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        stream_id: u64,
        limit: u64,
    },
    StreamsBlocked {
        stream_type: &'static str,
        limit: u64,
    },
    NewConnectionId {
        sequence_number: u64,
        retire_prior_to: u64,
        connection_id: Hex<'a>,
    },
    RetireConnectionId {
        sequence_number: u64,
    },
    PathChallenge {
        data: Hex<'a>,
    },
    PathResponse {
        data: Hex<'a>,
    },
    /// Frames of RFC 10069; the drafts of qlog have no types for them.
    PathAck {
        path_id: u32,
        #[serde(flatten)]
        ack: Ack<'a>,
    },
    PathAbandon {
        path_id: u32,
        error_code: u64,
    },
    PathStatusAvailable {
        path_id: u32,
        path_status_sequence_number: u64,
    },
    PathStatusBackup {
        path_id: u32,
        path_status_sequence_number: u64,
    },
    PathNewConnectionId {
        path_id: u32,
        sequence_number: u64,
        retire_prior_to: u64,
        connection_id: Hex<'a>,
    },
    PathRetireConnectionId {
        path_id: u32,
        sequence_number: u64,
    },
    MaxPathId {
        maximum_path_id: u32,
    },
    PathsBlocked {
        maximum_path_id: u32,
    },
    PathCidsBlocked {
        path_id: u32,
        next_sequence_number: u64,
    },
    ConnectionClose {
        error_space: &'static str,
        error: Cow<'static, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<u64>,
        #[serde(skip_serializing_if = "String::is_empty")]
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_frame_type: Option<u64>,
    },
    HandshakeDone,
    Datagram {
        length: u64,
        raw: Raw,
    },
    /// draft-ietf-quic-ack-frequency; the drafts of qlog have no type for it.
    AckFrequency {
        sequence_number: u64,
        ack_eliciting_threshold: u64,
        max_ack_delay: f64,
        reordering_threshold: u64,
    },
    ImmediateAck,
    Unknown {
        frame_type_bytes: u64,
    },
}

#[derive(Serialize)]
struct Token {
    r#type: &'static str,
    raw: Raw,
}

#[expect(clippy::struct_field_names, reason = "the draft's names")]
#[derive(Serialize)]
struct Ack<'a> {
    ack_delay: f64,
    acked_ranges: Ranges<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ect1: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ect0: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ce: Option<u64>,
    /// Number of omitted ranges, the lowest ones, if any.
    #[serde(skip_serializing_if = "is_zero")]
    ranges_omitted: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The highest ranges of an ACK, highest first.
struct Ranges<'a> {
    ack: frame::Ack<'a>,
    most: usize,
}

impl Serialize for Ranges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.ack.ranges().take(self.most).map(Range))
    }
}

/// `[n]` or `[first, last]`.
struct Range(RangeInclusive<u64>);

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (first, last) = (*self.0.start(), *self.0.end());
        let many = (first != last).then_some(last);
        serializer.collect_seq(std::iter::once(first).chain(many))
    }
}

impl Frames<'_> {
    fn frame<'f>(
        &self,
        wire: &Wire<'f>,
        purpose: Option<Purpose>,
        ranges: &Cell<usize>,
    ) -> Frame<'f> {
        match *wire {
            Wire::Padding { length } => Frame::Padding {
                raw: Raw::new(length),
            },
            Wire::Ping => Frame::Ping,
            Wire::Ack(ref ack) => {
                let fields = self.ack(ack.clone(), ranges);
                match ack.path {
                    None => Frame::Ack(fields),
                    Some(path) => Frame::PathAck {
                        path_id: path.get(),
                        ack: fields,
                    },
                }
            }
            Wire::Crypto(crypto) => Frame::Crypto {
                offset: crypto.offset,
                length: crypto.data.len() as u64,
                raw: Raw::new(crypto.data.len()),
            },
            Wire::NewToken { token } => Frame::NewToken {
                token: Token {
                    r#type: "resumption",
                    raw: Raw::new(token.len()),
                },
            },
            Wire::Stream(ref stream) => stream_frame(stream, purpose),
            Wire::NewConnectionId(new) if new.path.is_none() => Frame::NewConnectionId {
                sequence_number: new.sequence,
                retire_prior_to: new.retire_prior_to,
                connection_id: Hex::owned(new.cid.as_bytes()),
            },
            Wire::RetireConnectionId {
                path: None,
                sequence,
            } => Frame::RetireConnectionId {
                sequence_number: sequence,
            },
            Wire::PathChallenge { data } => Frame::PathChallenge {
                data: Hex::owned(&data),
            },
            Wire::PathResponse { data } => Frame::PathResponse {
                data: Hex::owned(&data),
            },
            Wire::ConnectionClose(close) => connection_close(&close, ranges),
            Wire::HandshakeDone => Frame::HandshakeDone,
            Wire::Datagram { data } => Frame::Datagram {
                length: data.len() as u64,
                raw: Raw::new(data.len()),
            },
            Wire::AckFrequency(frame) => Frame::AckFrequency {
                sequence_number: frame.sequence,
                ack_eliciting_threshold: frame.ack_eliciting_threshold,
                max_ack_delay: frame.max_ack_delay as f64 / 1e3,
                reordering_threshold: frame.reordering_threshold,
            },
            Wire::ImmediateAck => Frame::ImmediateAck,
            ref other => {
                let known = stream_limits(other).or_else(|| paths(other));
                known.unwrap_or(Frame::Unknown {
                    frame_type_bytes: other.frame_type(),
                })
            }
        }
    }

    fn ack<'f>(&self, ack: frame::Ack<'f>, ranges: &Cell<usize>) -> Ack<'f> {
        let count = ack.ranges().count();
        let most = count.min(ranges.get());
        ranges.set(ranges.get() - most);
        let counts = ack.ecn;
        let ecn = |nth: usize| counts.map(|counts| counts[nth]);
        let unit = f64::from(1_u32 << self.ack_delay_exponent.min(20)) / 1e3;
        Ack {
            ack_delay: ack.delay as f64 * unit,
            acked_ranges: Ranges { ack, most },
            ect0: ecn(0),
            ect1: ecn(1),
            ce: ecn(2),
            ranges_omitted: count - most,
        }
    }
}

fn stream_frame(stream: &frame::Stream<'_>, purpose: Option<Purpose>) -> Frame<'static> {
    Frame::Stream {
        stream_id: stream.id.get(),
        offset: stream.offset,
        fin: stream.fin,
        length: stream.data.len() as u64,
        raw: Raw::new(stream.data.len()),
        purpose: purpose.and_then(|purpose| match purpose {
            Purpose::New => None,
            Purpose::Retransmission => Some("retransmission"),
            Purpose::Replica => Some("replica"),
        }),
    }
}

/// Frames of stream resets and flow control.
fn stream_limits(wire: &Wire<'_>) -> Option<Frame<'static>> {
    let error = "unknown";
    let stream_id = StreamId::get;
    Some(match *wire {
        Wire::ResetStream(reset) => Frame::ResetStream {
            stream_id: stream_id(reset.id),
            error,
            error_code: reset.error,
            final_size: reset.final_size,
        },
        Wire::ResetStreamAt(reset) => Frame::ResetStreamAt {
            stream_id: stream_id(reset.id),
            error,
            error_code: reset.error,
            final_size: reset.final_size,
            reliable_size: reset.reliable_size,
        },
        Wire::StopSending(stop) => Frame::StopSending {
            stream_id: stream_id(stop.id),
            error,
            error_code: stop.error,
        },
        Wire::MaxData { limit } => Frame::MaxData { maximum: limit },
        Wire::MaxStreamData { id, limit } => Frame::MaxStreamData {
            stream_id: stream_id(id),
            maximum: limit,
        },
        Wire::MaxStreams { dir, count } => Frame::MaxStreams {
            stream_type: stream_type(dir),
            maximum: count,
        },
        Wire::DataBlocked { limit } => Frame::DataBlocked { limit },
        Wire::StreamDataBlocked { id, limit } => Frame::StreamDataBlocked {
            stream_id: stream_id(id),
            limit,
        },
        Wire::StreamsBlocked { dir, limit } => Frame::StreamsBlocked {
            stream_type: stream_type(dir),
            limit,
        },
        _ => return None,
    })
}

/// Frames about paths, `PATH_ACK` apart.
fn paths(wire: &Wire<'_>) -> Option<Frame<'static>> {
    Some(match *wire {
        Wire::PathAbandon { path, error, .. } => Frame::PathAbandon {
            path_id: path.get(),
            error_code: error.0,
        },
        Wire::PathStatus {
            path,
            sequence,
            backup: false,
        } => Frame::PathStatusAvailable {
            path_id: path.get(),
            path_status_sequence_number: sequence,
        },
        Wire::PathStatus { path, sequence, .. } => Frame::PathStatusBackup {
            path_id: path.get(),
            path_status_sequence_number: sequence,
        },
        Wire::NewConnectionId(new) => Frame::PathNewConnectionId {
            path_id: new.path?.get(),
            sequence_number: new.sequence,
            retire_prior_to: new.retire_prior_to,
            connection_id: Hex::owned(new.cid.as_bytes()),
        },
        Wire::RetireConnectionId { path, sequence } => Frame::PathRetireConnectionId {
            path_id: path?.get(),
            sequence_number: sequence,
        },
        Wire::MaxPathId { max } => Frame::MaxPathId {
            maximum_path_id: max.get(),
        },
        Wire::PathsBlocked { max } => Frame::PathsBlocked {
            maximum_path_id: max.get(),
        },
        Wire::PathCidsBlocked {
            path,
            next_sequence,
        } => Frame::PathCidsBlocked {
            path_id: path.get(),
            next_sequence_number: next_sequence,
        },
        _ => return None,
    })
}

fn connection_close(close: &frame::ConnectionClose<'_>, room: &Cell<usize>) -> Frame<'static> {
    // A packet may be full of such frames; together they are limited like ranges.
    let text = |reason: &[u8]| {
        let reason = &reason[..reason.len().min(room.get())];
        room.set(room.get() - reason.len());
        shortened(&String::from_utf8_lossy(reason)).to_owned()
    };
    match *close {
        frame::ConnectionClose::Transport {
            error,
            frame_type,
            reason,
        } => {
            let name = transport_error(error);
            Frame::ConnectionClose {
                error_space: "transport",
                error_code: (name == "unknown").then_some(error.0),
                error: name,
                reason: text(reason),
                trigger_frame_type: (frame_type != 0).then_some(frame_type),
            }
        }
        frame::ConnectionClose::Application { error, reason } => Frame::ConnectionClose {
            error_space: "application",
            error: "unknown".into(),
            error_code: Some(error),
            reason: text(reason),
            trigger_frame_type: None,
        },
    }
}

/// The draft's value for a stream direction.
pub(crate) fn stream_type(dir: Dir) -> &'static str {
    match dir {
        Dir::Bi => "bidirectional",
        Dir::Uni => "unidirectional",
    }
}
