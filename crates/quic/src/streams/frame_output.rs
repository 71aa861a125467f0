//! What goes into packets, and what became of it.

use std::collections::VecDeque;
use std::ops::Range;

use swiftwater_units::StreamId;
use swiftwater_wire::frame;

use super::StreamEvent;
use super::chunk_pool::ChunkPool;
use super::expiry::Expiries;
use super::repair_stats::RepairStats;
use super::retransmission_history::{Carrier, CarrierFate, RepairEvent, RetransmissionHistory};
use super::send_buffer::Piece;
use super::send_stream::SendHalf;
use super::stream_scheduler::{ScheduledStream, StreamScheduler, Transmission};
use super::{Priority, Stream, Streams, WRITABLE};
use crate::config::TransportConfig;
use crate::control::{ControlKey, ControlValue};
use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::observe::Purpose;

/// A frame isn't cut shorter than this many bytes of data to fill up a packet. With the longest
/// header it fits in 32 bytes.
const MIN_PART: usize = 12;

/// Bytes of one stream whose packets had the same fate, gathered from frames that follow one another.
#[derive(Clone, Debug)]
pub(crate) struct StreamRun {
    verdict: CarrierFate,
    id: StreamId,
    range: Range<u64>,
    fin: bool,
}

/// What a sending half adds to the totals, and to the lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendTotals {
    pub(super) held: u64,
    pub(super) unsent: u64,
    lost: u64,
    /// The half has something to send that needs no credit.
    repairs: bool,
}

impl SendTotals {
    fn of(send: &SendHalf) -> Self {
        let buffer = &send.buffer;
        Self {
            held: buffer.held(),
            unsent: send.sendable(),
            lost: buffer.lost(),
            repairs: buffer.has_repair(),
        }
    }

    /// What decides in which lists the half is.
    fn lists(&self) -> (bool, bool) {
        (self.repairs, self.unsent > 0)
    }
}

/// The connection's side of sending.
#[derive(Debug)]
pub(super) struct ConnectionSend {
    scheduler: StreamScheduler,
    pub(super) expiries: Expiries,
    pool: ChunkPool,
    pub(super) totals: SendTotals,
    pub(super) send_window: u64,
    /// Bytes that may wait to be sent; follows the congestion window.
    pub(super) unsent_window: u64,
    /// The peer's limit (`MAX_DATA`) and how much of it was sent.
    limit: u64,
    sent: u64,
    /// The limit of the last `DATA_BLOCKED`.
    told_blocked_at: Option<u64>,
    /// The stream that last met its own limit; it may be over, or free again.
    limited_stream: Option<u32>,
    /// Streams whose writers wait for room in the send window; may name streams that are over.
    pub(super) waiting: VecDeque<u32>,
}

impl ConnectionSend {
    pub(super) fn new(config: &TransportConfig) -> Self {
        Self {
            scheduler: StreamScheduler::new(config.starvation_share),
            expiries: Expiries::default(),
            pool: ChunkPool::default(),
            totals: SendTotals::default(),
            send_window: config.send_window.get(),
            unsent_window: config.unsent_window.get(),
            limit: 0,
            sent: 0,
            told_blocked_at: None,
            limited_stream: None,
            waiting: VecDeque::new(),
        }
    }

    /// Gives back memory that the streams that are ready don't need.
    pub(super) fn release_idle_memory(&mut self) {
        self.scheduler.release_idle_memory();
        self.pool.release_idle_memory();
        self.waiting.shrink_to_fit();
    }

    /// Bytes written and kept.
    pub(super) fn held(&self) -> u64 {
        self.totals.held
    }

    /// Raises the peer's limit; true if it was told that it blocks us.
    pub(super) fn raise_limit(&mut self, limit: u64) -> bool {
        if limit <= self.limit {
            return false;
        }
        self.limit = limit;
        self.told_blocked_at.take().is_some()
    }

    /// The stream of `key` is over.
    pub(super) fn forget(&mut self, key: u32) {
        self.scheduler.forget(key);
    }

    pub(super) fn credit(&self) -> u64 {
        self.limit.saturating_sub(self.sent)
    }

    /// Bytes of new data sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The peer's limit is unknown again, and of what was sent only `sent` bytes count.
    pub(super) fn forget_sent(&mut self, sent: u64) {
        self.limit = 0;
        self.sent = sent;
        self.told_blocked_at = None;
    }

    /// True if data wait for the connection's limit.
    fn is_blocked(&self) -> bool {
        self.scheduler.has_fresh() && self.credit() == 0
    }

    /// Whose turn it is.
    fn next(&self) -> Option<ScheduledStream> {
        self.scheduler.next(self.credit() > 0)
    }

    /// Brings totals and lists up to date after a change of the half of `key`.
    fn account(&mut self, key: u32, id: StreamId, rank: u8, before: SendTotals, send: &SendHalf) {
        let after = SendTotals::of(send);
        self.totals.held = self.totals.held - before.held + after.held;
        self.totals.unsent = self.totals.unsent - before.unsent + after.unsent;
        self.totals.lost = self.totals.lost - before.lost + after.lost;
        let (repair, fresh) = after.lists();
        if (repair, fresh) != before.lists() {
            self.scheduler.set(key, id, rank, repair, fresh);
        }
    }

    /// The stream `id` of `key` has another rank from now on.
    pub(super) fn set_rank(&mut self, key: u32, id: StreamId, rank: u8, send: &SendHalf) {
        let (repair, fresh) = SendTotals::of(send).lists();
        self.scheduler.set(key, id, rank, repair, fresh);
    }
}

impl Streams {
    /// True if [`Streams::fill`] has something to write.
    pub(crate) fn can_send(&self) -> bool {
        self.outgoing.scheduler.has_any(self.outgoing.credit() > 0)
    }

    /// Stream bytes that could be sent now: lost ones, and new ones that the peer's limits permit.
    /// A FIN without data counts nothing.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.outgoing.totals.lost + self.outgoing.totals.unsent.min(self.outgoing.credit())
    }

    /// Those of [`Streams::pending_bytes`] that were lost.
    pub(crate) fn pending_retransmission_bytes(&self) -> u64 {
        self.outgoing.totals.lost
    }

    /// Writes STREAM frames until room, data or credit ends. An empty packet of any permitted size
    /// always has room for one.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>) {
        while let Some(turn) = self.outgoing.next() {
            if !self.fill_once(writer, turn) {
                break;
            }
        }
        self.note_connection_blocked();
    }

    /// Writes STREAM frames with lost bytes, as long as it is their turn, until room or they end.
    pub(crate) fn fill_repairs(&mut self, writer: &mut FrameWriter<'_, '_>) {
        while let Some(turn) = self.outgoing.next()
            && turn.work == Transmission::Retransmission
        {
            if !self.fill_once(writer, turn) {
                break;
            }
        }
    }

    /// Writes one STREAM frame; false if there is no room for it.
    fn fill_once(&mut self, writer: &mut FrameWriter<'_, '_>, turn: ScheduledStream) -> bool {
        let ScheduledStream { work, key, .. } = turn;
        let Some(stream) = self.slab.get(key) else {
            return false;
        };
        let id = stream.id;
        let Some(send) = &stream.send else {
            return false;
        };
        let buffer = &send.buffer;
        let piece = match work {
            Transmission::Retransmission => buffer.next_repair(0).and_then(|first| {
                // Whole data, so that their histories stay whole.
                let repairs = self.history.get();
                let end = repairs.and_then(|repairs| repairs.end_of(id, first.offset));
                let len = end.map_or(usize::MAX, |end| (end - first.offset) as usize);
                buffer.next_repair(len)
            }),
            Transmission::New => {
                let credit = self.outgoing.credit().min(send.sendable());
                buffer.next_fresh(usize::try_from(credit).unwrap_or(usize::MAX))
            }
        };
        let Some(wanted) = piece else { return false };
        let Some(piece) = fit(wanted, id, writer.remaining()) else {
            return false;
        };
        // A datum that doesn't fit beside what is there already goes into the next packet, whole.
        if work == Transmission::Retransmission
            && piece.len < wanted.len
            && writer.has_stream_bytes()
        {
            return false;
        }
        let len = piece.len as u64;
        match work {
            Transmission::Retransmission => self.stats.retransmitted_bytes += len,
            Transmission::New => self.outgoing.sent += len,
        }
        self.outgoing.scheduler.spend(turn, len);
        // A bare FIN has no history that would tell.
        let is_repeated = work == Transmission::Retransmission && piece.len > 0;
        let purpose = if is_repeated {
            Purpose::Retransmission
        } else {
            Purpose::New
        };
        self.write_piece(writer, key, piece, purpose);
        true
    }

    /// True if bytes of `range` were lost and not retransmitted yet.
    pub(crate) fn awaits_repair(&self, id: StreamId, range: Range<u64>) -> bool {
        self.ids
            .key(id)
            .and_then(|key| self.slab.get(key)?.send.as_ref())
            .is_some_and(|send| send.buffer.has_lost(range))
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
            self.write_piece(writer, key, piece, Purpose::Replica);
            from = piece.offset + piece.len as u64;
            if piece.fin || from >= range.end {
                break;
            }
        }
        all
    }

    /// The fate of a packet that carried `range` of a stream, with the FIN if `fin`, is known. It may wait
    /// in `run` for that of the next packet, which often carried the next bytes; whoever has asked for all
    /// calls [`Streams::on_run_fate`].
    pub(crate) fn gather_fate(
        &mut self,
        run: &mut Option<StreamRun>,
        verdict: &CarrierFate,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
    ) {
        // While something is under repair it matters which packet brought which byte.
        let may_join = verdict.fate == Fate::Acked && self.has_no_repairs();
        if may_join
            && let Some(run) = run
            && run.id == id
            && run.range.end == range.start
        {
            run.range.end = range.end;
            run.fin |= fin;
            return;
        }
        let next = StreamRun {
            verdict: *verdict,
            id,
            range,
            fin,
        };
        let done = run.replace(next);
        self.on_run_fate(done);
        if !may_join {
            self.on_run_fate(run.take());
        }
    }

    /// The fate of a range is known: see [`Streams::gather_fate`].
    pub(crate) fn on_run_fate(&mut self, run: Option<StreamRun>) {
        if let Some(StreamRun {
            verdict,
            id,
            range,
            fin,
        }) = run
        {
            self.on_frame_fate(&verdict, id, range, fin);
        }
    }

    /// The fate of a packet that carried `range` of a stream, with the FIN if `fin`, is known. Several
    /// copies of a byte may be in flight.
    pub(crate) fn on_frame_fate(
        &mut self,
        verdict: &CarrierFate,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
    ) {
        let Some(key) = self.ids.key(id) else {
            return;
        };
        let ended = match verdict.fate {
            Fate::Acked => {
                if let Some(repairs) = self.history.get_mut()
                    && !repairs.is_empty()
                {
                    repairs.on_acked(&verdict.carrier, id, range.clone());
                }
                self.with_send(key, |send, pool| {
                    if send.is_reset() {
                        return None;
                    }
                    send.buffer.on_acked(range, fin, pool);
                    send.is_complete().then(|| send.is_whole())
                })
                .flatten()
            }
            Fate::Lost | Fate::Probed => {
                self.on_frame_lost(verdict, key, range, fin);
                None
            }
        };
        if let Some(whole) = ended {
            if whole {
                self.events.push_back(StreamEvent::Finished { id });
            }
            self.close_send(key);
        }
        self.wake_writers();
    }

    /// A packet with `range` of a stream is lost, or probed for: what of it must be sent again waits
    /// for its turn.
    fn on_frame_lost(&mut self, verdict: &CarrierFate, key: u32, range: Range<u64>, fin: bool) {
        let Some(stream) = self.slab.get(key) else {
            return;
        };
        let Some(send) = stream.send.as_ref().filter(|send| !send.is_reset()) else {
            return;
        };
        let id = stream.id;
        let repairs = self.history.need();
        let mut gaps = std::mem::take(&mut repairs.gaps);
        let mut resend = std::mem::take(&mut repairs.resend);
        gaps.extend(send.buffer.unacked(range.clone()));
        for gap in &gaps {
            repairs.on_lost(verdict, id, gap.clone(), &mut resend);
        }
        let is_tail = |ranges: &[Range<u64>]| ranges.last().is_some_and(|r| r.end == range.end);
        // The FIN goes with the last byte; it is alone if there is none, or the last one arrived.
        let fin = fin && (is_tail(&resend) || !is_tail(&gaps));
        self.with_send(key, |send, _| {
            for range in resend.drain(..) {
                send.buffer.on_lost(range, false);
            }
            if fin {
                send.buffer.on_lost(range.end..range.end, true);
            }
        });
        gaps.clear();
        let repairs = self.history.need();
        repairs.gaps = gaps;
        repairs.resend = resend;
    }

    /// `len` bytes from `offset` on of a stream left in `carrier`.
    pub(crate) fn on_frame_sent(
        &mut self,
        carrier: &Carrier,
        id: StreamId,
        offset: u64,
        len: u32,
        purpose: Purpose,
    ) {
        if purpose == Purpose::New {
            // Only what is sent again has a history.
            self.stats.new_bytes += u64::from(len);
            return;
        }
        let (priority, deadline) = self
            .stream(id)
            .map_or((Priority::default(), None), |(_, stream)| {
                (stream.priority, stream.deadline)
            });
        let range = offset..offset + u64::from(len);
        self.history
            .need()
            .on_sent(carrier, id, range, purpose, priority, deadline);
    }

    /// What happened to data under repair and wasn't told yet.
    pub(crate) fn poll_repair(&mut self) -> Option<RepairEvent> {
        self.history.get_mut()?.poll_event()
    }

    /// The connection closed: nobody waits for data under repair.
    pub(crate) fn abandon_repairs(&mut self) {
        if let Some(repairs) = self.history.get_mut() {
            repairs.on_closed();
        }
    }

    /// True if nothing is under repair.
    pub(crate) fn has_no_repairs(&self) -> bool {
        self.history
            .get()
            .is_none_or(RetransmissionHistory::is_empty)
    }

    /// SendTotals of repair.
    pub(crate) fn repair_stats(&self) -> RepairStats {
        let of_repairs = self.history.get().map(|repairs| repairs.stats);
        RepairStats {
            new_bytes: self.stats.new_bytes.into(),
            ..of_repairs.unwrap_or_default()
        }
    }

    /// The peer has the value of `key`.
    pub(crate) fn on_control_acked(&mut self, key: ControlKey) {
        let ControlKey::ResetStream(id) = key else {
            return;
        };
        let Some((key, _)) = self.stream(id) else {
            return;
        };
        let over = self.with_send(key, |send, _| {
            send.on_reset_at_acked();
            send.is_reset() || send.is_complete()
        });
        if over == Some(true) {
            self.close_send(key);
        }
    }

    /// Raises the peer's limit on a stream.
    pub(super) fn raise_stream_limit(&mut self, key: u32, limit: u64) {
        let Some(id) = self.slab.get(key).map(|stream| stream.id) else {
            return;
        };
        if self.with_send(key, |send, _| send.raise_limit(limit)) == Some(true) {
            self.cancel(ControlKey::StreamDataBlocked(id));
            self.announce_writable(key);
        }
    }

    /// Tells the peer, once for each limit, that a stream's limit keeps its writer from writing.
    pub(super) fn note_stream_blocked(&mut self, key: u32) {
        let Some(stream) = self.slab.get_mut(key) else {
            return;
        };
        let id = stream.id;
        if let Some(limit) = stream.send.as_mut().and_then(SendHalf::blocked_at) {
            self.outgoing.limited_stream = Some(key);
            self.tell(
                ControlKey::StreamDataBlocked(id),
                ControlValue::Limit(limit),
            );
        }
    }

    /// True if the peer's flow control, of the connection or of a stream, holds data back. Of
    /// streams, the one that met its limit last stands for all; it counts until its writer hears
    /// that there is room.
    pub(crate) fn is_flow_limited(&self) -> bool {
        let stream = self.outgoing.limited_stream;
        let stream = stream.and_then(|key| self.slab.get(key));
        let limits = |stream: &Stream| {
            let hears_soon = stream.queued_events & WRITABLE != 0;
            hears_soon || stream.send.as_ref().is_some_and(SendHalf::is_flow_limited)
        };
        self.outgoing.is_blocked() || stream.is_some_and(limits)
    }

    /// Tells the peer, once for each limit, that the connection's limit keeps data from being sent.
    pub(super) fn note_connection_blocked(&mut self) {
        let outgoing = &mut self.outgoing;
        if outgoing.is_blocked() && outgoing.told_blocked_at != Some(outgoing.limit) {
            let limit = *outgoing.told_blocked_at.insert(outgoing.limit);
            self.tell(ControlKey::DataBlocked, ControlValue::Limit(limit));
        }
    }

    /// Changes the sending half of `key`, keeping totals and lists.
    pub(super) fn with_send<R>(
        &mut self,
        key: u32,
        change: impl FnOnce(&mut SendHalf, &mut ChunkPool) -> R,
    ) -> Option<R> {
        let stream = self.slab.get_mut(key)?;
        let send = stream.send.as_mut()?;
        let before = SendTotals::of(send);
        let result = change(send, &mut self.outgoing.pool);
        let rank = stream.priority.rank();
        self.outgoing.account(key, stream.id, rank, before, send);
        Some(result)
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
        self.announce_reset_at(key);
        self.note_stream_blocked(key);
        self.refill_reserve(key);
    }

    /// Everything was delivered, or the peer knows of the reset.
    fn close_send(&mut self, key: u32) {
        let send = &mut self.slab[key].send;
        if let Some(half) = send {
            self.outgoing.expiries.replace(key, half.expiry, None);
            // Where it lies: it is large to be moved out.
            *send = None;
        }
        self.close_if_done(key);
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
