//! Stream frames of the peer (RFC 9000, sections 19.4 to 19.14), and the credit that it is given.

use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, StreamId};
use swiftwater_wire::{ErrorCode, frame};

use super::StreamEvent;
use super::assembler::SpareRings;
use super::credit_schedule::{CreditSchedule, first_limit};
use super::recv_stream::{PeerReset, ReceiptOutcome, RecvHalf};
use super::send_stream::SendHalf;
use super::stream_ids::Lookup;
use super::stream_reset::ResetValues;
use super::{LimitStep, ReceiveWindow, Streams, WindowClock};
use crate::config::TransportConfig;
use crate::control::{ControlKey, ControlValue};
use crate::error::TransportError;
use crate::idle_memory::IdleMemory;
use crate::observe::ResetCause;

/// The half of a stream that a frame is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StreamHalf {
    Send,
    Recv,
}

/// Receiving state that all streams of a connection share: the connection's window, memory of rings.
#[derive(Debug)]
pub(super) struct ConnectionReceive {
    window: ReceiveWindow,
    /// The highest offsets of all streams, summed.
    received: u64,
    /// Memory of all streams' rings. While it is beyond the window, rings are trimmed to four times
    /// what they are used for whenever they are read from.
    ring_bytes: u64,
    spare_rings: SpareRings,
    /// What keeps the credit of the connection behind its window; few connections have it.
    schedule: Option<Box<CreditSchedule>>,
    stream_window: ByteCount,
    max_stream_window: ByteCount,
    pub(super) clock: WindowClock,
    /// How often limits are raised.
    limit_step: LimitStep,
    /// Key of the stream that the last STREAM frame was for; any until there was one.
    pub(super) latest: u32,
}

impl ConnectionReceive {
    pub(super) fn new(config: &TransportConfig) -> Self {
        let now = Instant::ZERO;
        let (window, max_window) = (config.receive_window.get(), config.max_receive_window.get());
        Self {
            window: ReceiveWindow::new(window, max_window, now).with_limit(first_limit(config)),
            schedule: None,
            received: 0,
            ring_bytes: 0,
            spare_rings: SpareRings::default(),
            stream_window: config.stream_receive_window,
            max_stream_window: config.max_stream_receive_window,
            clock: WindowClock {
                now,
                rtt: config.initial_rtt,
            },
            limit_step: LimitStep::default(),
            latest: 0,
        }
    }

    /// The window of a new stream.
    pub(super) fn new_window(&self) -> ReceiveWindow {
        let (window, max_window) = (self.stream_window.get(), self.max_stream_window.get());
        ReceiveWindow::new(window, max_window, self.clock.now)
    }

    /// Bytes received, or skipped by a gap, and not yet read.
    pub(super) fn unread(&self) -> u64 {
        self.received - self.window.consumed()
    }

    /// The connection's limit to advertise now, if one is due.
    fn raise(&mut self) -> Option<u64> {
        let WindowClock { now, rtt } = self.clock;
        let limit_step = self.limit_step;
        let Some(schedule) = &mut self.schedule else {
            return (self.window).raise_shared(self.received, limit_step, self.clock);
        };
        let allowed = schedule.limit(now, rtt, self.received, self.window.limit());
        let step = schedule.step();
        if allowed >= self.window.next_limit()
            && let Some(limit) = (self.window).raise_shared(self.received, limit_step, self.clock)
        {
            return Some(limit);
        }
        self.window.raise_within(self.received, allowed, step)
    }

    fn check(&self, grown: u64) -> Result<(), TransportError> {
        if grown > self.window.limit() - self.received {
            return Err(TransportError::new(
                ErrorCode::FLOW_CONTROL_ERROR,
                "more data than the connection's limit",
            ));
        }
        Ok(())
    }
}

impl IdleMemory for ConnectionReceive {
    fn release_idle_memory(&mut self) {
        let Self {
            window: _,
            received: _,
            ring_bytes: _,
            spare_rings,
            schedule: _,
            stream_window: _,
            max_stream_window: _,
            latest: _,
            clock: _,
            limit_step: _,
        } = self;
        spare_rings.release_idle_memory();
    }
}

impl Streams {
    /// A STREAM frame.
    pub(crate) fn on_stream(&mut self, frame: &frame::Stream<'_>) -> Result<(), TransportError> {
        self.stats.received_bytes += frame.data.len() as u64;
        let Some(key) = self.key_for(frame.id, StreamHalf::Recv)? else {
            return Ok(());
        };
        self.incoming.latest = key;
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        if !self.charge(key, end, frame.fin)? {
            return Ok(());
        }
        let mut raised_limit = false;
        let outcome = self.with_recv(key, |recv, spares| {
            raised_limit = recv.has_raised_limit();
            recv.borrow(spares);
            recv.on_data(frame.offset, frame.data, frame.fin)
        });
        let outcome = outcome.unwrap_or(Ok(ReceiptOutcome::default()))?;
        if frame.fin && raised_limit {
            self.cancel(ControlKey::MaxStreamData(frame.id));
        }
        self.after_receipt(key, outcome);
        Ok(())
    }

    /// A `RESET_STREAM` frame.
    pub(crate) fn on_reset_stream(
        &mut self,
        frame: &frame::ResetStream,
    ) -> Result<(), TransportError> {
        let reset = PeerReset {
            code: frame.error,
            final_size: frame.final_size,
            reliable_size: 0,
            partial: false,
        };
        self.on_reset(frame.id, reset)
    }

    /// A `RESET_STREAM_AT` frame; the parser has checked that the reliable size is no larger than the
    /// final one.
    pub(crate) fn on_reset_stream_at(
        &mut self,
        frame: &frame::ResetStreamAt,
    ) -> Result<(), TransportError> {
        let reset = PeerReset {
            code: frame.error,
            final_size: frame.final_size,
            reliable_size: frame.reliable_size,
            partial: true,
        };
        self.on_reset(frame.id, reset)
    }

    fn on_reset(&mut self, id: StreamId, reset: PeerReset) -> Result<(), TransportError> {
        let Some(key) = self.key_for(id, StreamHalf::Recv)? else {
            return Ok(());
        };
        let Some(recv) = &self.slab[key].recv else {
            return Ok(());
        };
        recv.check_code(&reset)?;
        let is_first = !recv.is_reset();
        if !self.charge(key, reset.final_size, true)? {
            return Ok(());
        }
        let outcome = self.with_recv(key, |recv, _| recv.on_reset(reset));
        self.cancel(ControlKey::MaxStreamData(id));
        if is_first {
            let values = ResetValues {
                code: reset.code,
                final_size: reset.final_size,
                reliable_size: reset.reliable_size,
            };
            self.note_reset(id, ResetCause::Peer, values);
        }
        self.after_receipt(key, outcome.unwrap_or_default());
        Ok(())
    }

    /// A `STOP_SENDING` frame: answered with `RESET_STREAM`, unless the stream was reset already or
    /// everything was acknowledged.
    pub(crate) fn on_stop_sending(
        &mut self,
        frame: &frame::StopSending,
    ) -> Result<(), TransportError> {
        let Some(key) = self.key_for(frame.id, StreamHalf::Send)? else {
            return Ok(());
        };
        let stream = &self.slab[key];
        let accepted = stream.accepted;
        if stream.send.as_ref().is_some_and(|send| !send.is_reset()) {
            let is_first = stream.send.as_ref().is_some_and(SendHalf::is_whole);
            self.reset_sending(key, frame.id, frame.error, ResetCause::StopSending);
            if accepted && is_first {
                self.events.push_back(StreamEvent::Stopped {
                    id: frame.id,
                    code: frame.error,
                });
            }
        }
        Ok(())
    }

    /// A `MAX_DATA` frame.
    pub(crate) fn on_max_data(&mut self, limit: u64) {
        if self.outgoing.raise_limit(limit) {
            self.cancel(ControlKey::DataBlocked);
        }
        self.wake_writers();
    }

    /// A `MAX_STREAM_DATA` frame.
    pub(crate) fn on_max_stream_data(
        &mut self,
        id: StreamId,
        limit: u64,
    ) -> Result<(), TransportError> {
        if let Some(key) = self.key_for(id, StreamHalf::Send)? {
            self.raise_stream_limit(key, limit);
        }
        Ok(())
    }

    /// A `MAX_STREAMS` frame; the parser has checked that `count` is at most 2^60.
    pub(crate) fn on_max_streams(&mut self, dir: Dir, count: u64) {
        if self.ids.raise_local(dir, count) {
            self.cancel(ControlKey::StreamsBlocked(dir));
            if !std::mem::replace(&mut self.queued_available[dir as usize], true) {
                self.events.push_back(StreamEvent::Available { dir });
            }
        }
    }

    /// A `STREAM_DATA_BLOCKED` frame. It opens the stream; limits are raised as the application reads.
    pub(crate) fn on_stream_data_blocked(&mut self, id: StreamId) -> Result<(), TransportError> {
        self.key_for(id, StreamHalf::Recv).map(|_| ())
    }

    /// The stream that a frame about `half` of `id` is for, made if the frame opens it; `None` if
    /// it is over.
    fn key_for(&mut self, id: StreamId, half: StreamHalf) -> Result<Option<u32>, TransportError> {
        let local = self.ids.is_local(id);
        if id.dir() == Dir::Uni && local == (half == StreamHalf::Recv) {
            return Err(state_error(format!("{id} has no such direction")));
        }
        if local && !self.ids.is_opened(id) {
            return Err(state_error(format!("{id} was never opened")));
        }
        let key = if !local && self.ids.open_remote(id)? {
            self.grant_streams(id.dir());
            if !std::mem::replace(&mut self.queued_opened[id.dir() as usize], true) {
                self.events.push_back(StreamEvent::Opened { dir: id.dir() });
            }
            self.create(id)
        } else {
            match self.ids.find(id) {
                Lookup::Live(key) => key,
                Lookup::Untouched => self.create(id),
                Lookup::Closed => return Ok(None),
            }
        };
        self.slab[key].is_zero_rtt |= self.receiving_zero_rtt;
        Ok(Some(key))
    }

    /// Charges both windows for data up to `end`, the final size if `last`. False if the receiving
    /// half is over and the frame has no effect.
    fn charge(&mut self, key: u32, end: u64, last: bool) -> Result<bool, TransportError> {
        let Some(recv) = &self.slab[key].recv else {
            return Ok(false);
        };
        let grown = recv.check(end, last)?;
        self.incoming.check(grown)?;
        self.incoming.received += grown;
        Ok(true)
    }

    /// Applies the consequences of a change of the receiving half.
    pub(super) fn after_receipt(&mut self, key: u32, outcome: ReceiptOutcome) {
        self.credit_connection(outcome.discarded);
        if outcome.readable {
            self.announce_readable(key);
        }
        if outcome.done {
            self.close_recv(key);
        }
    }

    /// The reader took `n` bytes of `key`.
    pub(super) fn after_read(&mut self, key: u32, n: u64) {
        let (step, clock) = (self.incoming.limit_step, self.incoming.clock);
        let crowded = self.incoming.ring_bytes > self.incoming.window.size();
        let raised = self.with_recv(key, |recv, spares| {
            if crowded {
                recv.trim();
            }
            recv.give_back(spares);
            recv.raise_limit(step, clock)
        });
        if let Some(limit) = raised.flatten() {
            let id = self.slab[key].id;
            self.set_control(ControlKey::MaxStreamData(id), ControlValue::Limit(limit));
        }
        self.credit_connection(n);
    }

    /// `n` bytes were read or discarded.
    fn credit_connection(&mut self, n: u64) {
        if n == 0 {
            return;
        }
        self.incoming.window.consume(n);
        self.grant_credit();
    }

    /// A packet with the value of `key` was declared lost. Once that happened to a limit, limits are
    /// raised more often, so that the next one that is lost doesn't block the peer.
    pub(crate) fn on_control_lost(&mut self, key: ControlKey) {
        if matches!(key, ControlKey::MaxData | ControlKey::MaxStreamData(_)) {
            self.incoming.limit_step = LimitStep::Eighth;
        }
    }

    /// Raises `MAX_DATA` if that is due.
    fn grant_credit(&mut self) {
        let limit = self.incoming.raise();
        if let Some(limit) = limit {
            self.set_control(ControlKey::MaxData, ControlValue::Limit(limit));
        }
    }

    /// Lets the peer send no faster than `rate` on average from now on; `None` for no limit.
    pub(crate) fn set_receive_rate(&mut self, now: Instant, rate: Option<Bandwidth>) {
        let incoming = &mut self.incoming;
        incoming.clock.now = incoming.clock.now.max(now);
        let rate = rate.filter(|rate| !rate.is_zero());
        incoming.schedule = rate.map(|rate| {
            let limit = incoming.window.limit();
            let (rtt, received) = (incoming.clock.rtt, incoming.received);
            Box::new(CreditSchedule::new(rate, now, rtt, received, limit))
        });
        self.grant_credit();
    }

    /// When the peer is due more credit; `None` while no rate limits it.
    pub(crate) fn next_grant(&self) -> Option<Instant> {
        let incoming = &self.incoming;
        let schedule = incoming.schedule.as_deref()?;
        let (received, rtt) = (incoming.received, incoming.clock.rtt);
        let limit = incoming.window.next_step(received, schedule.step())?;
        schedule.time_of(limit, rtt, received)
    }

    /// Gives the peer the credit that is due by `now`.
    pub(crate) fn grant_by(&mut self, now: Instant) {
        if self.incoming.schedule.is_some() {
            self.incoming.clock.now = self.incoming.clock.now.max(now);
            self.grant_credit();
        }
    }

    /// Changes the receiving half of `key`, keeping the account of memory.
    pub(super) fn with_recv<R>(
        &mut self,
        key: u32,
        change: impl FnOnce(&mut RecvHalf, &mut SpareRings) -> R,
    ) -> Option<R> {
        let recv = self.slab.get_mut(key)?.recv.as_mut()?;
        let before = recv.capacity();
        let result = change(recv, &mut self.incoming.spare_rings);
        self.incoming.ring_bytes = self.incoming.ring_bytes - before + recv.capacity();
        Some(result)
    }

    /// Ends the receiving half of `key`.
    pub(super) fn close_recv(&mut self, key: u32) {
        let recv = &mut self.slab[key].recv;
        if let Some(half) = recv {
            self.incoming.ring_bytes -= half.capacity();
            // In place: it is large to be moved out.
            *recv = None;
            self.close_if_done(key);
        }
    }
}

fn state_error(reason: String) -> TransportError {
    TransportError::new(ErrorCode::STREAM_STATE_ERROR, reason)
}
