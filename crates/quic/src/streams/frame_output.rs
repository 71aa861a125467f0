//! STREAM frames in packets: retransmissions, new data, and copies that a re-injector asks for.

use std::ops::Range;

use swiftwater_units::{Instant, PathId, StreamId};
use swiftwater_wire::frame;

use super::path_affinity::StreamsOfPath;
use super::send_buffer::Piece;
use super::send_room::is_reserve_low;
use super::stream_scheduler::{Permitted, ScheduledStream, Transmission};
use super::{Priority, Streams};
use crate::frame_writer::{Carried, FrameWriter};
use crate::observe::Purpose;

/// A frame isn't cut shorter than this many bytes of data to fill up a packet. With the longest
/// header it fits in 32 bytes.
const MIN_PART: usize = 12;

/// The shortest STREAM frame: type and stream ID.
const MIN_FRAME: usize = 2;

/// Room, bytes, that new data are put into beside a retransmission that doesn't fit. With less, new
/// data would be cut into frames that are mostly header.
const MIN_ROOM_BESIDE_RETRANSMISSION: usize = 64;

/// The stream data that are sent next, as schedulers see them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StreamDemand {
    pub(crate) stream: StreamId,
    pub(crate) priority: Priority,
    /// When the receiver has no use for them any more.
    pub(crate) deadline: Option<Instant>,
    /// Some of them belong to the first video frame.
    pub(crate) first_frame: bool,
}

impl Streams {
    /// True if streams have something to send, on whichever path.
    pub(crate) fn can_send(&self) -> bool {
        let (outgoing, has_credit) = (&self.outgoing, self.outgoing.credit() > 0);
        outgoing.scheduler.has_any(has_credit)
            || (outgoing.assigned()).any(|of| of.scheduler.has_any(has_credit))
    }

    /// True if [`Streams::fill`] has something to write on `path`.
    pub(crate) fn can_send_on(&self, path: PathId) -> bool {
        let (outgoing, has_credit) = (&self.outgoing, self.outgoing.credit() > 0);
        let may_send = |of: &StreamsOfPath| of.may_use(path) && of.scheduler.has_any(has_credit);
        outgoing.scheduler.has_any(has_credit) || outgoing.assigned().any(may_send)
    }

    /// Urgency of the stream that sends next on `path`, 0 to 7; `None` if none can send.
    pub(crate) fn next_urgency(&self, path: PathId) -> Option<u8> {
        let next = self.outgoing.next(Permitted::ALL, Some(path))?;
        Some(next.urgency())
    }

    /// The range for any path that is sent next, with its hints; `None` if none can be sent.
    pub(crate) fn next_demand(&self) -> Option<StreamDemand> {
        let next = self.outgoing.next(Permitted::ALL, None)?;
        let stream = self.slab.get(next.key)?.id;
        let piece = self.next_piece(next.transmission, next.key)?;
        let hints = self.hints_of(stream, piece.offset..piece.offset + piece.len as u64);
        Some(StreamDemand {
            stream,
            priority: hints.priority.unwrap_or_default(),
            deadline: hints.deadline,
            first_frame: hints.first_frame,
        })
    }

    /// Stream bytes that could be sent now: lost ones, and new ones that the peer's limits permit.
    /// A FIN without data counts nothing.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.outgoing.totals.lost + self.outgoing.totals.unsent.min(self.outgoing.credit())
    }

    /// Those of [`Streams::pending_bytes`] that are new, without `excluded` of the bytes that were never sent.
    pub(crate) fn pending_new_bytes(&self, excluded: u64) -> u64 {
        (self.outgoing.totals.unsent - excluded).min(self.outgoing.credit())
    }

    /// Those of [`Streams::pending_bytes`] that were lost.
    pub(crate) fn pending_retransmission_bytes(&self) -> u64 {
        self.outgoing.totals.lost
    }

    /// Writes STREAM frames of a packet on `path` until room, data or credit ends. An empty packet of any
    /// permitted size always has room for one.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>, path: PathId) {
        let mut permitted = Permitted::ALL;
        while let Some(next) = self.outgoing.next(permitted, Some(path)) {
            if self.fill_once(writer, next) {
                if writer.remaining() < MIN_FRAME {
                    break;
                }
                continue;
            }
            if next.transmission == Transmission::New
                || writer.remaining() < MIN_ROOM_BESIDE_RETRANSMISSION
            {
                break;
            }
            // The retransmission goes into the next packet, and new data into the rest of this one.
            permitted = Permitted::NEW_DATA;
        }
        self.note_connection_blocked();
    }

    /// Writes STREAM frames with lost bytes, as long as these are first in the order of sending, until
    /// room or they end.
    pub(crate) fn fill_retransmissions(&mut self, writer: &mut FrameWriter<'_, '_>, path: PathId) {
        while let Some(next) = self.outgoing.next(Permitted::ALL, Some(path))
            && next.transmission == Transmission::Retransmission
        {
            if !self.fill_once(writer, next) {
                break;
            }
        }
    }

    /// Writes one STREAM frame; false if there is no room for it.
    fn fill_once(&mut self, writer: &mut FrameWriter<'_, '_>, next: ScheduledStream) -> bool {
        let ScheduledStream {
            transmission, key, ..
        } = next;
        let Some(wanted) = self.next_piece(transmission, key) else {
            return false;
        };
        let id = self.slab[key].id;
        let Some(piece) = fit(wanted, id, writer.remaining()) else {
            return false;
        };
        let is_retransmission = transmission == Transmission::Retransmission;
        // A range that doesn't fit beside what is there already goes into the next packet, whole.
        if is_retransmission && piece.len < wanted.len && writer.has_stream_bytes() {
            return false;
        }
        let len = piece.len as u64;
        if is_retransmission {
            self.stats.retransmitted_bytes += len;
        } else {
            self.outgoing.sent += len;
        }
        self.outgoing.scheduler_of(key).spend(next, len);
        // A bare FIN has no history to be kept.
        let purpose = if is_retransmission && piece.len > 0 {
            Purpose::Retransmission
        } else {
            Purpose::New
        };
        self.write_piece(writer, key, piece, purpose);
        true
    }

    /// What the stream of `key` sends next: of lost bytes a range that has one history, of new bytes as
    /// many as credit permits.
    #[inline]
    fn next_piece(&self, transmission: Transmission, key: u32) -> Option<Piece> {
        let stream = self.slab.get(key)?;
        let send = stream.send.as_ref()?;
        let buffer = &send.buffer;
        match transmission {
            Transmission::Retransmission => {
                let first = buffer.next_retransmission(0)?;
                let history = self.history.get();
                let end = history.and_then(|history| history.end_of(stream.id, first.offset));
                let len = end.map_or(usize::MAX, |end| (end - first.offset) as usize);
                buffer.next_retransmission(len)
            }
            Transmission::New => {
                let credit = self.outgoing.credit().min(send.sendable());
                buffer.next_new(usize::try_from(credit).unwrap_or(usize::MAX))
            }
        }
    }

    /// True if bytes of `range` were lost and not retransmitted yet.
    pub(crate) fn awaits_repair(&self, id: StreamId, range: Range<u64>) -> bool {
        self.ids
            .key(id)
            .and_then(|key| self.slab.get(key)?.send.as_ref())
            .is_some_and(|send| send.buffer.has_lost(range))
    }

    /// True if a retransmission of bytes of `range` is in flight on `path`.
    pub(crate) fn is_retransmitted_on(
        &self,
        id: StreamId,
        range: &Range<u64>,
        path: PathId,
    ) -> bool {
        let history = self.history.get();
        history.is_some_and(|history| history.is_retransmitted_on(id, range, path))
    }

    /// Writes copies of what is in flight of `range` of a stream, skipping bytes already
    /// acknowledged; an empty range at the stream's end stands for its FIN. Returns how many of the
    /// range's bytes are dealt with, written or not in need of a copy; less than all means that the
    /// rest needs another packet.
    pub(crate) fn fill_range(
        &mut self,
        writer: &mut FrameWriter<'_, '_>,
        id: StreamId,
        range: Range<u64>,
    ) -> u64 {
        let all = range.end.saturating_sub(range.start);
        let Some(key) = self.ids.key(id) else {
            return all;
        };
        let mut from = range.start;
        while let Some(send) = self.slab.get(key).and_then(|stream| stream.send.as_ref())
            && let Some(piece) = send.buffer.next_copy(from..range.end, usize::MAX)
        {
            let Some(piece) = fit(piece, id, writer.remaining()) else {
                return from - range.start;
            };
            self.stats.retransmitted_bytes += piece.len as u64;
            self.stats.copied_bytes += piece.len as u64;
            self.write_piece(writer, key, piece, Purpose::Replica);
            from = piece.offset + piece.len as u64;
            if piece.fin || from >= range.end {
                break;
            }
        }
        all
    }

    /// Writes the frame of `piece`, which fits.
    fn write_piece(
        &mut self,
        writer: &mut FrameWriter<'_, '_>,
        key: u32,
        piece: Piece,
        purpose: Purpose,
    ) {
        let id = self.slab[key].id;
        let Piece { offset, len, fin } = piece;
        self.with_send(key, |send, _| {
            frame::write_stream_header(writer.raw(), id, offset, len, fin);
            send.buffer.copy(offset, writer.raw().reserve(len));
            send.buffer.on_sent(piece);
        });
        writer.wrote(
            Carried::Stream {
                id,
                offset,
                len: len as u32,
                fin,
                purpose,
            },
            true,
        );
        self.stats.sent_bytes += len as u64;
        self.after_sent(key);
    }

    /// What data sent on the stream of `key` bring about: reports to the peer, and room for the writer.
    #[inline]
    fn after_sent(&mut self, key: u32) {
        let Some(send) = (self.slab.get(key)).and_then(|stream| stream.send.as_ref()) else {
            return;
        };
        let (resets, is_limited) = (send.is_reset_at(), send.is_flow_limited());
        let is_low = is_reserve_low(send);
        if resets {
            self.announce_reset_at(key);
        }
        if is_limited {
            self.note_stream_blocked(key);
        }
        if is_low {
            self.refill_reserve(key);
        }
    }
}

/// As much of `piece` as a frame of at most `room` bytes can carry, if that is worth a frame.
fn fit(piece: Piece, id: StreamId, room: usize) -> Option<Piece> {
    let header = frame::stream_header_size(id, piece.offset, piece.len.min(room));
    let space = room.checked_sub(header)?;
    if piece.len <= space {
        return Some(piece);
    }
    (space >= MIN_PART).then_some(Piece {
        len: space,
        fin: false,
        ..piece
    })
}
