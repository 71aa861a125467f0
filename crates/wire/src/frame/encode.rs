//! Encodes frames into a packet's payload, and computes the exact size of each.

use swiftwater_units::{Dir, StreamId};

use super::{ConnectionClose, Frame, NewConnectionId};
use super::{STREAM_FIN, STREAM_LEN, STREAM_OFF, types};
use crate::coding::Writer;
use crate::multipath_version::MultipathVersion;
use crate::varint::VarInt;

/// Bytes of the shortest encoding of `n`.
pub(super) const fn varint_size(n: u64) -> usize {
    VarInt::saturating(n).size()
}

/// Bytes of `n` as a varint and `n` bytes after it.
const fn prefixed_size(n: usize) -> usize {
    varint_size(n as u64) + n
}

/// Bytes before the data of a `STREAM` frame that states its length.
pub const fn stream_header_size(id: StreamId, offset: u64, len: usize) -> usize {
    let offset_size = if offset == 0 { 0 } else { varint_size(offset) };
    1 + varint_size(id.get()) + offset_size + varint_size(len as u64)
}

/// Writes a `STREAM` frame without its `len` bytes of data, which must follow directly. `offset +
/// len` must be below 2^62.
pub fn write_stream_header(w: &mut Writer<'_>, id: StreamId, offset: u64, len: usize, fin: bool) {
    w.varint(stream_type(offset, fin));
    w.varint(id.get());
    if offset != 0 {
        w.varint(offset);
    }
    w.varint(len as u64);
}

/// The type of a `STREAM` frame that states its length.
const fn stream_type(offset: u64, fin: bool) -> u64 {
    let off = if offset == 0 { 0 } else { STREAM_OFF };
    let fin = if fin { STREAM_FIN } else { 0 };
    types::STREAM | STREAM_LEN | off | fin
}

/// Bytes before the data of a `CRYPTO` frame.
pub const fn crypto_header_size(offset: u64, len: usize) -> usize {
    1 + varint_size(offset) + varint_size(len as u64)
}

/// Writes a `CRYPTO` frame without its `len` bytes of data, which must follow directly. `offset +
/// len` must be below 2^62.
pub fn write_crypto_header(w: &mut Writer<'_>, offset: u64, len: usize) {
    put(w, &[types::CRYPTO, offset, len as u64]);
}

fn put(w: &mut Writer<'_>, fields: &[u64]) {
    for &field in fields {
        w.varint(field);
    }
}

fn sum(fields: &[u64]) -> usize {
    fields.iter().map(|&field| varint_size(field)).sum()
}

/// The rest of a frame after its leading varints.
pub(super) enum Tail<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Prefixed(&'a [u8]),
    NewCid(&'a NewConnectionId),
}

impl Tail<'_> {
    fn size(&self) -> usize {
        match self {
            Tail::Nothing => 0,
            Tail::Bytes(bytes) => bytes.len(),
            Tail::Prefixed(bytes) => prefixed_size(bytes.len()),
            Tail::NewCid(new) => 1 + new.cid.len() + new.reset_token.0.len(),
        }
    }

    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Tail::Nothing => {}
            Tail::Bytes(bytes) => w.bytes(bytes),
            Tail::Prefixed(bytes) => w.length_prefixed(bytes),
            Tail::NewCid(new) => {
                w.u8(new.cid.len() as u8);
                w.bytes(new.cid.as_bytes());
                w.bytes(&new.reset_token.0);
            }
        }
    }
}

impl Frame<'_> {
    /// Appends the frame as RFC 9000 and RFC 10069 write it. `STREAM` and `DATAGRAM` include their length, so
    /// any frame may follow. The space must have been checked with [`Frame::size`].
    pub fn encode(&self, w: &mut Writer<'_>) {
        self.encode_in(MultipathVersion::Rfc10069, w);
    }

    /// Like [`Frame::encode`], with the frames of `version` of the multipath extension. The space must have
    /// been checked with [`Frame::size_in`].
    pub fn encode_in(&self, version: MultipathVersion, w: &mut Writer<'_>) {
        match self {
            Frame::Padding { length } => w.reserve(*length).fill(0),
            Frame::Ack(ack) => ack.encode(version, w),
            _ => self.with_layout(version, |fields, tail| {
                put(w, fields);
                tail.encode(w);
            }),
        }
    }

    /// Bytes that [`Frame::encode`] writes.
    pub fn size(&self) -> usize {
        self.size_in(MultipathVersion::Rfc10069)
    }

    /// Bytes that [`Frame::encode_in`] writes.
    pub fn size_in(&self, version: MultipathVersion) -> usize {
        match self {
            Frame::Padding { length } => *length,
            Frame::Ack(ack) => ack.size(version),
            _ => self.with_layout(version, |fields, tail| sum(fields) + tail.size()),
        }
    }

    /// The type that [`Frame::encode`] writes.
    pub fn frame_type(&self) -> u64 {
        self.frame_type_in(MultipathVersion::Rfc10069)
    }

    /// The type that [`Frame::encode_in`] writes.
    pub fn frame_type_in(&self, version: MultipathVersion) -> u64 {
        match self {
            Frame::Padding { .. } => types::PADDING,
            Frame::Ack(ack) => ack.frame_type(version),
            _ => self.with_layout(version, |fields, _| fields[0]),
        }
    }

    /// Whether the frame makes its packet ack-eliciting: all but `PADDING`, `ACK`, `PATH_ACK`,
    /// `CONNECTION_CLOSE` (RFC 9002, section 2) and one of the two types of `FEEDBACK` do.
    pub const fn is_ack_eliciting(&self) -> bool {
        match self {
            Frame::Padding { .. } | Frame::Ack(_) | Frame::ConnectionClose(_) => false,
            Frame::Feedback(feedback) => feedback.ack_eliciting,
            _ => true,
        }
    }

    /// Every frame except padding and acknowledgements consists of its type, some varints and a
    /// tail; sizes and bytes are both derived from this table, so they cannot differ.
    fn with_layout<T>(
        &self,
        version: MultipathVersion,
        f: impl FnOnce(&[u64], Tail<'_>) -> T,
    ) -> T {
        use Tail::{Bytes, Nothing, Prefixed};
        match *self {
            Frame::Padding { .. } | Frame::Ack(_) => {
                unreachable!("padding and acknowledgements have other layouts")
            }
            Frame::Ping => f(&[types::PING], Nothing),
            Frame::ResetStream(_)
            | Frame::ResetStreamAt(_)
            | Frame::StopSending(_)
            | Frame::AckFrequency(_) => self.with_request_fields(|fields| f(fields, Nothing)),
            Frame::Crypto(ref crypto) => f(&[types::CRYPTO, crypto.offset], Prefixed(crypto.data)),
            Frame::NewToken { token } => f(&[types::NEW_TOKEN], Prefixed(token)),
            Frame::Stream(ref stream) => {
                let frame_type = stream_type(stream.offset, stream.fin);
                let fields = [frame_type, stream.id.get(), stream.offset];
                let used = if stream.offset == 0 { 2 } else { 3 };
                f(&fields[..used], Prefixed(stream.data))
            }
            Frame::PathChallenge { ref data } => f(&[types::PATH_CHALLENGE], Bytes(data)),
            Frame::PathResponse { ref data } => f(&[types::PATH_RESPONSE], Bytes(data)),
            Frame::ConnectionClose(ref close) => close.with_layout(f),
            Frame::HandshakeDone => f(&[types::HANDSHAKE_DONE], Nothing),
            Frame::ImmediateAck => f(&[types::IMMEDIATE_ACK], Nothing),
            Frame::Datagram { data } => f(&[types::DATAGRAM_LEN], Prefixed(data)),
            Frame::Feedback(ref feedback) => {
                let frame_type = if feedback.ack_eliciting {
                    types::FEEDBACK
                } else {
                    types::FEEDBACK_NOT_ELICITING
                };
                let kind = u64::from(feedback.kind.get());
                let fields = [frame_type, kind, feedback.sequence];
                f(&fields, Prefixed(feedback.payload))
            }
            Frame::NewConnectionId(ref new) => new.with_layout(version, f),
            Frame::MaxData { .. }
            | Frame::MaxStreamData { .. }
            | Frame::MaxStreams { .. }
            | Frame::DataBlocked { .. }
            | Frame::StreamDataBlocked { .. }
            | Frame::StreamsBlocked { .. } => self.with_limit_fields(|fields| f(fields, Nothing)),
            Frame::RetireConnectionId { .. }
            | Frame::PathAbandon { .. }
            | Frame::PathStatus { .. }
            | Frame::MaxPathId { .. }
            | Frame::PathsBlocked { .. }
            | Frame::PathCidsBlocked { .. } => self.with_path_layout(version, f),
        }
    }

    /// The rows of [`Frame::with_layout`] for what one end asks of the other.
    fn with_request_fields<T>(&self, f: impl FnOnce(&[u64]) -> T) -> T {
        match self {
            Frame::ResetStream(reset) => f(&[
                types::RESET_STREAM,
                reset.id.get(),
                reset.error,
                reset.final_size,
            ]),
            Frame::ResetStreamAt(reset) => f(&[
                types::RESET_STREAM_AT,
                reset.id.get(),
                reset.error,
                reset.final_size,
                reset.reliable_size,
            ]),
            Frame::StopSending(stop) => f(&[types::STOP_SENDING, stop.id.get(), stop.error]),
            Frame::AckFrequency(frame) => f(&[
                types::ACK_FREQUENCY,
                frame.sequence,
                frame.ack_eliciting_threshold,
                frame.max_ack_delay,
                frame.reordering_threshold,
            ]),
            _ => unreachable!("with_layout sends only requests here"),
        }
    }

    /// The rows of [`Frame::with_layout`] for flow control.
    fn with_limit_fields<T>(&self, f: impl FnOnce(&[u64]) -> T) -> T {
        match *self {
            Frame::MaxData { limit } => f(&[types::MAX_DATA, limit]),
            Frame::MaxStreamData { id, limit } => f(&[types::MAX_STREAM_DATA, id.get(), limit]),
            Frame::MaxStreams {
                dir: Dir::Bi,
                count,
            } => f(&[types::MAX_STREAMS_BIDI, count]),
            Frame::MaxStreams {
                dir: Dir::Uni,
                count,
            } => f(&[types::MAX_STREAMS_UNI, count]),
            Frame::DataBlocked { limit } => f(&[types::DATA_BLOCKED, limit]),
            Frame::StreamDataBlocked { id, limit } => {
                f(&[types::STREAM_DATA_BLOCKED, id.get(), limit])
            }
            Frame::StreamsBlocked {
                dir: Dir::Bi,
                limit,
            } => f(&[types::STREAMS_BLOCKED_BIDI, limit]),
            Frame::StreamsBlocked {
                dir: Dir::Uni,
                limit,
            } => f(&[types::STREAMS_BLOCKED_UNI, limit]),
            _ => unreachable!("with_layout sends only flow-control frames here"),
        }
    }
}

impl ConnectionClose<'_> {
    /// See [`Frame::with_layout`].
    fn with_layout<T>(&self, f: impl FnOnce(&[u64], Tail<'_>) -> T) -> T {
        match *self {
            ConnectionClose::Transport {
                error,
                frame_type,
                reason,
            } => {
                let fields = [types::CONNECTION_CLOSE, error.0, frame_type];
                f(&fields, Tail::Prefixed(reason))
            }
            ConnectionClose::Application { error, reason } => {
                let fields = [types::CONNECTION_CLOSE_APP, error];
                f(&fields, Tail::Prefixed(reason))
            }
        }
    }
}
