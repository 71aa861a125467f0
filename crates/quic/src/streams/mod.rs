//! Streams: their state, their priorities and flow credit on both levels (RFC 9000, sections 2 to
//! 4 and 19.4 to 19.14).
//!
//! [`Streams`] owns everything about streams and nothing else. Small values for the peer (limits,
//! resets, "blocked" reports) leave through [`Streams::poll_control`] and are delivered by `control`.
//! Paths and packets occur only as names of copies; the round-trip time only tunes receive windows.
//!
//! Memory that a peer can claim: unread bytes are bounded by the advertised windows, the rings
//! behind them by five times the connection's window and 2 KiB a stream (`frame_input.rs`), the ranges
//! behind gaps by 1/64 of each stream's window (`assembler.rs`), streams by the advertised counts
//! (`stream_ids.rs`).
//!
//! - `application.rs`: calls of the application, `handles.rs`: one stream as it sees it; `events.rs`: events for it.
//! - `frame_input.rs`: frames of the peer; `frame_output.rs`: STREAM frames in packets; `frame_fates.rs`:
//!   fates of those packets; `send_flow_control.rs`: the peer's limits; `stream_reset.rs`, `expiry.rs`:
//!   data that are abandoned; `zero_rtt.rs`: data sent or received before the handshake was complete.
//! - `send_stream.rs`, `recv_stream.rs`: the two halves of a stream; `send_buffer.rs`, `assembler.rs`:
//!   their bytes; `connection_send.rs`: sending state that they share; `chunk_pool.rs`, `spare_buffers.rs`:
//!   memory for bytes; `idle_memory.rs`: what an idle connection gives back.
//! - `retransmission_history.rs`, `range_history.rs`: ranges that were lost or repeated, and their copies;
//!   `repair_stats.rs`: totals of them; `range_hints.rs`: the application's hints about ranges.
//! - `expected_data.rs`: whether the peer has more to send.
//! - `stream_ids.rs`: identifiers, counts and limits; `stream_slab.rs`: where the state of streams lies;
//!   `stream_map.rs`: maps by stream.
//! - `priority.rs`, `send_queues.rs`, `stream_scheduler.rs`: the order of sending; `send_room.rs`: how much
//!   may be written; `receive_window.rs`, `credit_schedule.rs`: credit given to the peer.

mod application;
mod assembler;
mod chunk_pool;
mod connection_send;
mod credit_schedule;
mod events;
mod expected_data;
mod expiry;
mod frame_fates;
mod frame_input;
mod frame_output;
mod handles;
mod idle_memory;
mod path_affinity;
mod range_hints;
mod range_history;
mod receive_window;
mod recv_stream;
mod repair_stats;
mod retransmission_history;
mod send_buffer;
mod send_flow_control;
mod send_queues;
mod send_room;
mod send_stream;
mod spare_buffers;
mod stream_ids;
mod stream_map;
mod stream_reset;
mod stream_scheduler;
mod stream_slab;
#[cfg(test)]
mod tests;
mod zero_rtt;

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::{Dir, Instant, Side, StreamId};
use swiftwater_wire::TransportParameters;

pub use crate::policy::Priority;
pub use application::{Chunk, ReadChunk, ReadOutcome};
pub(crate) use credit_schedule::first_limit;
pub use events::StreamEvent;
pub use expiry::Expiry;
pub(crate) use frame_fates::StreamRun;
pub use handles::{RecvStream, SendStream};
pub use range_hints::RangeHints;
pub(crate) use range_history::{Carrier, CarrierFate};
pub use repair_stats::RepairStats;
pub(crate) use retransmission_history::RepairEvent;
pub use stream_map::{StreamHasher, StreamMap};

use self::connection_send::ConnectionSend;
use self::frame_input::ConnectionReceive;
use self::receive_window::{LimitStep, ReceiveWindow, WindowClock};
use self::recv_stream::RecvHalf;
use self::retransmission_history::RetransmissionHistory;
use self::send_stream::SendHalf;
use self::stream_ids::StreamIds;
use self::stream_slab::StreamSlab;
use crate::config::TransportConfig;
use crate::control::{Control, ControlKey, ControlValue};
use crate::lazy_box::LazyBox;
use crate::observe::ResetCause;

/// Bits of the events of a stream that wait to be polled.
const READABLE: u8 = 1;
const WRITABLE: u8 = 2;

/// One stream that is not closed.
#[derive(Debug)]
struct Stream {
    id: StreamId,
    priority: Priority,
    /// When the receiver has no use for its data any more; for policies.
    deadline: Option<Instant>,
    /// The application opened or accepted it.
    accepted: bool,
    /// A frame about it came in a 0-RTT packet.
    is_zero_rtt: bool,
    /// Events that wait to be polled, so that none is queued twice.
    queued_events: u8,
    send: Option<SendHalf>,
    recv: Option<RecvHalf>,
}

/// The peer's initial limits on streams, by transport parameter (RFC 9000, section 18.2).
#[derive(Clone, Copy, Debug, Default)]
struct InitialLimits {
    bidi_local: u64,
    bidi_remote: u64,
    uni: u64,
}

/// SendTotals over all streams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct StreamsStats {
    /// Streams that have state.
    pub(crate) open: usize,
    /// Bytes written and kept until they are acknowledged.
    pub(crate) send_buffered: u64,
    /// Bytes received, or skipped by a gap, and not yet read.
    pub(crate) receive_buffered: u64,
    /// Bytes of STREAM frames sent, copies included.
    pub(crate) sent_bytes: u64,
    /// Of these, those that had not been sent before.
    pub(crate) new_bytes: u64,
    /// Bytes of STREAM frames sent again, after a loss or as copies.
    pub(crate) retransmitted_bytes: u64,
    /// Of these, copies of what was still in flight.
    pub(crate) copied_bytes: u64,
    /// Bytes of STREAM frames received, duplicates included.
    pub(crate) received_bytes: u64,
    /// Streams that were reset here, wholly or in part.
    pub(crate) resets_sent: u64,
    /// Streams that the peer reset.
    pub(crate) resets_received: u64,
    /// Of `resets_sent`, those that expired.
    pub(crate) expired_streams: u64,
    /// Their bytes that were not delivered.
    pub(crate) expired_bytes: u64,
    /// Streams that this end opened.
    pub(crate) opened: u64,
    /// Streams that the peer opened.
    pub(crate) opened_by_peer: u64,
}

/// A reset of a stream by either end, for observers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StreamNotice {
    pub(crate) id: StreamId,
    pub(crate) cause: ResetCause,
    pub(crate) code: u64,
    pub(crate) final_size: u64,
    pub(crate) reliable_size: u64,
}

/// All streams of a connection.
#[derive(Debug)]
pub(crate) struct Streams {
    slab: StreamSlab<Stream>,
    ids: StreamIds,
    outgoing: ConnectionSend,
    /// Only there once data were lost or repeated.
    history: LazyBox<RetransmissionHistory>,
    incoming: ConnectionReceive,
    initial_limits: InitialLimits,
    /// False until the peer's limits are known: before, `STREAMS_BLOCKED` would be of no use.
    knows_peer: bool,
    /// The frames that are being processed came in a 0-RTT packet.
    receiving_zero_rtt: bool,
    events: VecDeque<StreamEvent>,
    /// Whether `Opened` or `Available` of each direction waits in `events`.
    queued_opened: [bool; 2],
    queued_available: [bool; 2],
    control: VecDeque<(ControlKey, Option<ControlValue>)>,
    notices: LazyBox<VecDeque<StreamNotice>>,
    /// Streams that came into being (true) or ended, if observers are to get them.
    lifetimes: LazyBox<VecDeque<(StreamId, bool)>>,
    records_lifetimes: bool,
    /// The peer accepts `RESET_STREAM_AT`.
    peer_resets_at: bool,
    stats: StreamsStats,
}

impl Streams {
    /// No streams. The windows and counts of `config` are those of the local transport parameters: every
    /// stream starts with `stream_receive_window`, the connection with
    /// `receive_window`.
    pub(crate) fn new(side: Side, config: &TransportConfig) -> Self {
        Self {
            slab: StreamSlab::default(),
            ids: StreamIds::new(
                side,
                config.max_concurrent_bidi_streams,
                config.max_concurrent_uni_streams,
            ),
            outgoing: ConnectionSend::new(config),
            history: LazyBox::default(),
            incoming: ConnectionReceive::new(config),
            initial_limits: InitialLimits::default(),
            knows_peer: false,
            receiving_zero_rtt: false,
            events: VecDeque::new(),
            queued_opened: [false; 2],
            queued_available: [false; 2],
            control: VecDeque::new(),
            notices: LazyBox::default(),
            lifetimes: LazyBox::default(),
            records_lifetimes: false,
            peer_resets_at: false,
            stats: StreamsStats::default(),
        }
    }

    /// The peer's limits have become known. Limits that are lower than known ones change nothing.
    pub(crate) fn set_peer_parameters(&mut self, parameters: &TransportParameters) {
        self.knows_peer = true;
        self.peer_resets_at = parameters.reset_stream_at;
        self.initial_limits = InitialLimits {
            bidi_local: parameters.initial_max_stream_data_bidi_local,
            bidi_remote: parameters.initial_max_stream_data_bidi_remote,
            uni: parameters.initial_max_stream_data_uni,
        };
        self.on_max_data(parameters.initial_max_data);
        self.on_max_streams(Dir::Bi, parameters.initial_max_streams_bidi);
        self.on_max_streams(Dir::Uni, parameters.initial_max_streams_uni);
        for key in self.slab.keys() {
            if let Some(stream) = self.slab.get(key) {
                let limit = self.initial_send_limit(stream.id);
                self.raise_stream_limit(key, limit);
            }
        }
    }

    /// True if there is an event to poll.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event. Events are edge-triggered: after `Readable`, read until it blocks, after
    /// `Writable` write until it blocks, after `Opened` and `Available` accept and open until
    /// `None`. At most one event of a sort waits for each stream.
    pub(crate) fn poll_event(&mut self) -> Option<StreamEvent> {
        let event = self.events.pop_front()?;
        match event {
            StreamEvent::Opened { dir } => self.queued_opened[dir as usize] = false,
            StreamEvent::Available { dir } => self.queued_available[dir as usize] = false,
            StreamEvent::Readable { id } => self.clear_queued(id, READABLE),
            StreamEvent::Writable { id } => self.clear_queued(id, WRITABLE),
            StreamEvent::Finished { .. }
            | StreamEvent::Stopped { .. }
            | StreamEvent::Expired { .. } => {}
        }
        Some(event)
    }

    /// The next value to deliver, or with `None` to deliver no more. To be drained after every
    /// call.
    pub(crate) fn poll_control(&mut self) -> Option<(ControlKey, Option<ControlValue>)> {
        self.control.pop_front()
    }

    /// Moves the values to deliver into `control`.
    #[inline]
    pub(crate) fn drain_control(&mut self, control: &mut Control) {
        while let Some((key, value)) = self.poll_control() {
            match value {
                Some(value) => control.set(key, value),
                None => control.cancel(key),
            }
        }
    }

    /// True if [`Streams::poll_lifetime`] or [`Streams::poll_notice`] has something.
    pub(crate) fn has_reports(&self) -> bool {
        self.lifetimes
            .get()
            .is_some_and(|lifetimes| !lifetimes.is_empty())
            || self
                .notices
                .get()
                .is_some_and(|notices| !notices.is_empty())
    }

    /// The next stream that came into being (true) or ended, for observers. To be drained like
    /// [`Streams::poll_control`].
    pub(crate) fn poll_lifetime(&mut self) -> Option<(StreamId, bool)> {
        self.lifetimes.get_mut()?.pop_front()
    }

    /// Records them from now on.
    pub(crate) fn record_lifetimes(&mut self) {
        self.records_lifetimes = true;
    }

    fn note_lifetime(&mut self, id: StreamId, begins: bool) {
        if self.records_lifetimes {
            self.lifetimes.need().push_back((id, begins));
        }
    }

    /// The next reset for observers. To be drained like [`Streams::poll_control`].
    pub(crate) fn poll_notice(&mut self) -> Option<StreamNotice> {
        self.notices.get_mut()?.pop_front()
    }

    /// Sets the time and the smoothed round-trip time. Windows are tuned by the latest values, so it is
    /// called whenever datagrams arrive, even without a new sample.
    pub(crate) fn on_rtt(&mut self, now: Instant, rtt: Duration) {
        self.incoming.clock = WindowClock { now, rtt };
    }

    /// SendTotals.
    pub(crate) fn stats(&self) -> StreamsStats {
        StreamsStats {
            open: self.slab.len(),
            send_buffered: self.outgoing.held(),
            receive_buffered: self.incoming.unread(),
            ..self.stats
        }
    }

    /// The state of a stream that has some.
    fn stream(&self, id: StreamId) -> Option<(u32, &Stream)> {
        let key = self.ids.key(id)?;
        Some((key, self.slab.get(key)?))
    }

    /// Makes the state of the opened stream `id`.
    fn create(&mut self, id: StreamId) -> u32 {
        let local = self.ids.is_local(id);
        let both = id.dir() == Dir::Bi;
        let send = (local || both).then(|| SendHalf::new(self.initial_send_limit(id)));
        let recv = (!local || both).then(|| RecvHalf::new(self.incoming.new_window()));
        let stream = Stream {
            id,
            priority: Priority::default(),
            deadline: None,
            accepted: local,
            is_zero_rtt: false,
            queued_events: 0,
            send,
            recv,
        };
        let key = self.slab.insert(stream);
        self.ids.insert(id, key);
        if local {
            self.stats.opened += 1;
        } else {
            self.stats.opened_by_peer += 1;
        }
        self.note_lifetime(id, true);
        key
    }

    fn initial_send_limit(&self, id: StreamId) -> u64 {
        match (id.dir(), self.ids.is_local(id)) {
            (Dir::Uni, _) => self.initial_limits.uni,
            // The parameters are named from the point of view of their sender.
            (Dir::Bi, true) => self.initial_limits.bidi_remote,
            (Dir::Bi, false) => self.initial_limits.bidi_local,
        }
    }

    /// Closes a stream whose halves are both over, and grants the peer another one.
    fn close_if_done(&mut self, key: u32) {
        let Some(stream) = self.slab.get(key) else {
            return;
        };
        if stream.send.is_some() || stream.recv.is_some() {
            return;
        }
        let id = stream.id;
        self.slab.remove(key);
        self.outgoing.discard(key);
        self.ids.remove(id);
        self.note_lifetime(id, false);
        if !self.ids.is_local(id) {
            self.grant_streams(id.dir());
        }
    }

    /// Raises `MAX_STREAMS` if that is due.
    fn grant_streams(&mut self, dir: Dir) {
        if let Some(limit) = self.ids.raise_remote(dir) {
            self.set_control(ControlKey::MaxStreams(dir), ControlValue::Limit(limit));
        }
    }

    fn set_control(&mut self, key: ControlKey, value: ControlValue) {
        self.control.push_back((key, Some(value)));
    }

    fn cancel(&mut self, key: ControlKey) {
        self.control.push_back((key, None));
    }

    /// Queues `event`, one of the kind `bit`, unless the same one waits already.
    fn queue_event(&mut self, key: u32, bit: u8, event: StreamEvent) {
        if let Some(stream) = self.slab.get_mut(key)
            && stream.queued_events & bit == 0
        {
            stream.queued_events |= bit;
            self.events.push_back(event);
        }
    }

    fn clear_queued(&mut self, id: StreamId, bit: u8) {
        if let Some(key) = self.ids.recall(id)
            && let Some(stream) = self.slab.get_mut(key)
        {
            stream.queued_events &= !bit;
            self.discard_unlimited(key);
        }
    }
}
