//! Unreliable datagrams (RFC 9221): queues for sending and for reading, and what became of datagrams
//! that were sent.
//!
//! - `options.rs`: key, deadline and urgency of a datagram, and its fate, as applications see them;
//! - `send_queue.rs`: datagrams that wait to be sent; `fair_queue.rs`: turns between groups of them;
//! - `stream_share.rs`: how datagrams and streams share packets;
//! - `receive_queue.rs`: datagrams that wait to be read;
//! - `payload_arena.rs`: where the payloads in both queues are.

mod fair_queue;
mod options;
mod payload_arena;
mod receive_queue;
mod send_queue;
mod stream_share;

use std::collections::VecDeque;

use bytes::Bytes;
use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::frame::types;
use swiftwater_wire::{ErrorCode, Frame};

pub use self::options::{DatagramOptions, ReceivedDatagram};

pub(crate) use self::stream_share::NextSender;
use crate::observe::DatagramFate;

use self::payload_arena::PayloadArena;
use self::receive_queue::ReceiveQueue;
use self::send_queue::{QueuedDatagram, SendQueue};
use self::stream_share::StreamShare;
use crate::error::{SendDatagramError, TransportError};
use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

/// Type byte of a DATAGRAM frame.
const TYPE_LEN: usize = 1;

/// What keeping a datagram costs beside its bytes. Without it, a peer or an application could make
/// the queue keep any number of empty ones.
const OVERHEAD: usize = 64;

/// Bytes of a block of payloads that wait to be sent.
const SEND_BLOCK: usize = 16 << 10;

/// What a received datagram that its application keeps holds back, bytes; or its own size, if that is more.
const RECEIVE_BLOCK: usize = 4 << 10;

/// What a datagram counts for in a queue.
fn cost(data: &[u8]) -> usize {
    data.len() + OVERHEAD
}

/// Datagrams of a connection.
#[derive(Debug)]
pub(crate) struct Datagrams {
    queues: LazyBox<DatagramQueues>,
    capacity: usize,
    /// Largest frame that this end accepts.
    accept: Option<u64>,
    /// Largest frame that the peer accepts.
    peer_accepts: Option<u64>,
    /// One turn in this many goes to the less urgent of datagrams and streams.
    starvation_share: u32,
    /// The packet whose frames are being processed.
    arriving_on: PathId,
    arriving_in: PacketNumber,
    /// The application met a full queue.
    blocked: bool,
    unblocked: bool,
    /// A datagram was refused that larger packets would carry, or the application asked for them, and the largest are
    /// not known yet.
    needs_larger_packets: bool,
    totals: DatagramTotals,
}

/// The queues, which most connections don't need.
#[derive(Debug, Default)]
struct DatagramQueues {
    outgoing: SendQueue,
    payloads: PayloadArena<SEND_BLOCK>,
    incoming: ReceiveQueue,
    received_payloads: PayloadArena<RECEIVE_BLOCK>,
    share: StreamShare,
    /// Fates that wait to be polled.
    fates: VecDeque<(u64, DatagramFate)>,
    /// Fates that are to be reported to observers.
    reports: VecDeque<(Option<u64>, DatagramFate)>,
}

/// Totals of datagrams that didn't make it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct DatagramTotals {
    /// Unread datagrams that made room for newer ones.
    pub(crate) dropped_unread: u64,
    /// Datagrams that no packet could carry any more.
    pub(crate) too_large: u64,
    /// Datagrams whose deadline came before they were sent.
    pub(crate) expired: u64,
}

/// What became of an attempt to write a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WriteAttempt {
    /// It was written, or dropped because it never could be.
    Done,
    /// It needs another packet.
    NoRoom,
}

impl Datagrams {
    /// Empty queues of `capacity` bytes each. `accept` is the local `max_datagram_frame_size`; one turn in
    /// `starvation_share` goes to less urgent streams or datagrams.
    pub(crate) fn new(capacity: u64, accept: Option<u64>, starvation_share: u32) -> Self {
        Self {
            queues: LazyBox::default(),
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            accept,
            peer_accepts: None,
            starvation_share,
            arriving_on: PathId::ZERO,
            arriving_in: PacketNumber::new(0),
            blocked: false,
            unblocked: false,
            needs_larger_packets: false,
            totals: DatagramTotals::default(),
        }
    }

    /// Sets the peer's `max_datagram_frame_size`; zero refuses datagrams.
    pub(crate) fn set_peer_limit(&mut self, limit: u64) {
        self.peer_accepts = (limit > 0).then_some(limit);
    }

    /// Largest payload that a packet with `room` bytes for frames can carry; `None` if the peer
    /// accepts no frame of this end at all.
    pub(crate) fn max_size(&self, room: usize) -> Option<usize> {
        let peer = usize::try_from(self.peer_accepts?).unwrap_or(usize::MAX);
        // The length field takes two bytes for anything that fits in a packet.
        room.min(peer).checked_sub(TYPE_LEN + 2)
    }

    /// Queues a datagram.
    pub(crate) fn send(
        &mut self,
        data: Bytes,
        options: DatagramOptions,
        room: usize,
    ) -> Result<(), SendDatagramError> {
        self.admit(data.len(), &options, room)?;
        let outgoing = &mut self.queues.need().outgoing;
        outgoing.push(QueuedDatagram { data, options });
        Ok(())
    }

    /// Queues a copy of a datagram that is given in parts.
    pub(crate) fn send_parts(
        &mut self,
        parts: &[&[u8]],
        options: DatagramOptions,
        room: usize,
    ) -> Result<(), SendDatagramError> {
        let size = parts.iter().map(|part| part.len()).sum();
        self.admit(size, &options, room)?;
        let queues = self.queues.need();
        let data = queues.payloads.store(parts, self.capacity);
        queues.outgoing.push(QueuedDatagram { data, options });
        Ok(())
    }

    /// Whether a datagram of `size` bytes may be queued.
    fn admit(
        &mut self,
        size: usize,
        options: &DatagramOptions,
        room: usize,
    ) -> Result<(), SendDatagramError> {
        let max = self.max_size(room).ok_or(SendDatagramError::Unsupported)?;
        if size > max {
            self.needs_larger_packets |= Some(size as u64) <= self.peer_accepts;
            return Err(SendDatagramError::TooLarge { size, max });
        }
        let outgoing = &self.queues.need().outgoing;
        if !outgoing.has_room(options, size + OVERHEAD, self.capacity) {
            self.blocked = true;
            return Err(SendDatagramError::Blocked);
        }
        Ok(())
    }

    /// Datagrams that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        (self.queues.get()).map_or(0, |queues| queues.outgoing.len())
    }

    /// Payload bytes that wait to be sent.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        let bytes =
            |queues: &DatagramQueues| queues.outgoing.bytes() - queues.outgoing.len() * OVERHEAD;
        self.queues.get().map_or(0, bytes) as u64
    }

    /// Payload bytes that may leave on one path only, by path, one item for each datagram that waits.
    pub(crate) fn waiting_for_paths(&self) -> impl Iterator<Item = (PathId, usize)> {
        let queues = self.queues.get().into_iter();
        queues.flat_map(|queues| queues.outgoing.assigned())
    }

    /// The path does not carry data any more: what was assigned to it may leave on any.
    pub(crate) fn discard_path(&mut self, path: PathId) {
        if let Some(queues) = self.queues.get_mut() {
            queues.outgoing.release(path);
        }
    }

    /// The path shrank: drops what no packet with `room` bytes for frames can carry, and returns how
    /// many that were.
    pub(crate) fn drop_too_large(&mut self, room: usize) -> u64 {
        let Some(queues) = self.queues.get_mut() else {
            return 0;
        };
        let fits = |queued: &QueuedDatagram| Frame::Datagram { data: &queued.data }.size() <= room;
        let dropped = queues.outgoing.retain(fits);
        queues.record_dropped(&dropped, DatagramFate::TooLarge);
        let count = dropped.len() as u64;
        self.totals.too_large += count;
        self.note_room(count > 0);
        count
    }

    /// When [`Datagrams::expire`] may have something to do.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.queues.get()?.outgoing.next_deadline()
    }

    /// Drops what was not sent by its deadline.
    pub(crate) fn expire(&mut self, now: Instant) {
        let Some(queues) = self.queues.get_mut() else {
            return;
        };
        if queues.outgoing.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        let expired = queues.outgoing.retain(|queued| !queued.is_expired(now));
        queues.record_dropped(&expired, DatagramFate::Expired);
        self.totals.expired += expired.len() as u64;
        self.note_room(!expired.is_empty());
    }

    /// Totals.
    pub(crate) fn totals(&self) -> DatagramTotals {
        self.totals
    }

    /// True if datagrams wait that may leave on `path`.
    pub(crate) fn has_pending_on(&self, path: PathId) -> bool {
        (self.queues.get()).is_some_and(|queues| queues.outgoing.first(path).is_some())
    }

    /// Bytes of the frame that leaves next on `path`, if one waits.
    pub(crate) fn next_frame_size(&self, path: PathId) -> Option<usize> {
        let queued = self.queues.get()?.outgoing.first(path)?;
        Some(Frame::Datagram { data: &queued.data }.size())
    }

    /// Whether datagrams, of which at least one waits for `path`, or streams of urgency `streams` (`None` if
    /// none can send) go first there.
    pub(crate) fn next_sender(&mut self, streams: Option<u8>, path: PathId) -> NextSender {
        let share = self.starvation_share;
        let next = self.queues.get_mut().and_then(|queues| {
            let datagrams = queues.outgoing.first_urgency(path);
            queues.share.next(datagrams, streams, share)
        });
        next.unwrap_or_default()
    }

    /// `bytes` of STREAM frames were sent while datagrams may wait.
    pub(crate) fn on_streams_sent(&mut self, bytes: usize) {
        if let Some(queues) = self.queues.get_mut() {
            queues.share.spend(NextSender::Streams, bytes);
        }
    }

    /// Writes the next datagram for `path`. One too large even for an empty packet (`room`), as after the path
    /// shrank, is dropped, and so is one whose deadline has come.
    pub(crate) fn write_next(
        &mut self,
        now: Instant,
        writer: &mut FrameWriter<'_, '_>,
        path: PathId,
        room: usize,
    ) -> WriteAttempt {
        let Some(queues) = self.queues.get_mut() else {
            return WriteAttempt::Done;
        };
        let Some(queued) = queues.outgoing.first(path) else {
            return WriteAttempt::Done;
        };
        let frame = Frame::Datagram { data: &queued.data };
        let size = frame.size();
        let permitted = self.peer_accepts.is_some_and(|limit| size as u64 <= limit);
        let fate = if queued.is_expired(now) {
            self.totals.expired += 1;
            Some(DatagramFate::Expired)
        } else if !permitted || size > room {
            self.totals.too_large += 1;
            Some(DatagramFate::TooLarge)
        } else {
            let written = match queued.options.key {
                Some(key) => writer.carry(&frame, Carried::Datagram { key }),
                None => writer.frame(&frame),
            };
            if !written {
                return WriteAttempt::NoRoom;
            }
            queues.share.spend(NextSender::Datagrams, size);
            None
        };
        if let Some(queued) = queues.outgoing.pop(path)
            && let Some(fate) = fate
        {
            queues.record(queued.options.key, fate);
        }
        self.note_room(true);
        WriteAttempt::Done
    }

    /// The fate of a packet that carried the datagram of `key` and left at `sent_at` is known.
    pub(crate) fn on_frame_fate(&mut self, key: u64, sent_at: Instant, fate: Fate) {
        let fate = match fate {
            Fate::Acked => DatagramFate::Acknowledged,
            Fate::Lost => DatagramFate::Lost { sent_at },
            Fate::Probed => return,
        };
        self.queues.need().record(Some(key), fate);
    }

    /// True if there are fates that were not reported to observers.
    pub(crate) fn has_reports(&self) -> bool {
        (self.queues.get()).is_some_and(|queues| !queues.reports.is_empty())
    }

    /// The next fate for observers, with the datagram's key if it has one.
    pub(crate) fn poll_report(&mut self) -> Option<(Option<u64>, DatagramFate)> {
        self.queues.get_mut()?.reports.pop_front()
    }

    /// The next fate of a datagram that was sent with a key.
    pub(crate) fn poll_fate(&mut self) -> Option<(u64, DatagramFate)> {
        self.queues.get_mut()?.fates.pop_front()
    }

    /// The frames that follow came in packet `number` of `path`.
    pub(crate) fn on_packet(&mut self, path: PathId, number: PacketNumber) {
        self.arriving_on = path;
        self.arriving_in = number;
    }

    /// Takes a received datagram from a frame of this type; drops the oldest unread ones if there is no
    /// room. Returns true if the queue was empty.
    pub(crate) fn receive(&mut self, frame_type: u64, data: &[u8]) -> Result<bool, TransportError> {
        // The limit is for the whole frame (RFC 9221, section 3).
        let size = match frame_type {
            types::DATAGRAM => TYPE_LEN + data.len(),
            _ => Frame::Datagram { data }.size(),
        } as u64;
        if self.accept.is_none_or(|limit| size > limit) {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a datagram larger than max_datagram_frame_size",
            ));
        }
        let (path, packet) = (self.arriving_on, self.arriving_in);
        let queues = self.queues.need();
        let incoming = &mut queues.incoming;
        let was_empty = incoming.is_empty();
        self.totals.dropped_unread += incoming.make_room(cost(data), self.capacity);
        let payloads = &mut queues.received_payloads;
        incoming.push(ReceivedDatagram {
            data: payloads.store(&[data], self.capacity),
            path,
            packet,
        });
        Ok(was_empty)
    }

    /// The oldest unread datagram, whose payload shares its memory with others.
    pub(crate) fn recv(&mut self) -> Option<ReceivedDatagram> {
        self.queues.get_mut()?.incoming.pop()
    }

    /// The peer's limit is unknown again; what waits stays within what the peer permits now, or is
    /// dropped when it would be sent.
    pub(crate) fn on_early_data_rejected(&mut self) {
        self.peer_accepts = None;
    }

    /// Larger packets are wanted although nothing that waits would fill them.
    pub(crate) fn seek_larger_packets(&mut self) {
        self.needs_larger_packets = true;
    }

    /// Whether larger packets are wanted although nothing that waits would fill them.
    pub(crate) fn needs_larger_packets(&self) -> bool {
        self.needs_larger_packets
    }

    /// There are no larger packets for now.
    pub(crate) fn on_largest_packets(&mut self) {
        self.needs_larger_packets = false;
    }

    /// True once after a full queue got room.
    pub(crate) fn take_unblocked(&mut self) -> bool {
        std::mem::take(&mut self.unblocked)
    }

    /// Datagrams left the queue for sending if `left`: a sender that met a full one can go on.
    fn note_room(&mut self, left: bool) {
        if left && std::mem::take(&mut self.blocked) {
            self.unblocked = true;
        }
    }
}

impl DatagramQueues {
    /// Queues the fate of a datagram: for observers, and for the application if it has a key.
    fn record(&mut self, key: Option<u64>, fate: DatagramFate) {
        self.reports.push_back((key, fate));
        self.fates.extend(key.map(|key| (key, fate)));
    }

    /// Queues the fate of datagrams that were dropped unsent.
    fn record_dropped(&mut self, datagrams: &[QueuedDatagram], fate: DatagramFate) {
        for queued in datagrams {
            self.record(queued.options.key, fate);
        }
    }

    fn is_empty(&self) -> bool {
        self.outgoing.is_empty()
            && self.incoming.is_empty()
            && self.fates.is_empty()
            && self.reports.is_empty()
    }
}

impl IdleMemory for Datagrams {
    fn release_idle_memory(&mut self) {
        let Self {
            queues,
            capacity: _,
            accept: _,
            peer_accepts: _,
            starvation_share: _,
            arriving_on: _,
            arriving_in: _,
            blocked: _,
            unblocked: _,
            needs_larger_packets: _,
            totals: _,
        } = self;
        if queues.get().is_some_and(DatagramQueues::is_empty) {
            queues.release();
        }
    }
}
