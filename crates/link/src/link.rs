//! The link itself: brings queue, transmitter, chance and propagation together.

use std::collections::VecDeque;

use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::config::{LinkConfig, LinkConfigError, MAX_PACKET, ReorderBy};
use crate::counters::{Counters, Tally};
use crate::impair::{Draws, Impairments, nanos};
use crate::packet::{Ecn, Packet, Payload};
use crate::pipe::{InFlight, Pipe, Route};
use crate::queue::{
    Admission, AqmState, Discipline, DropTail, EcnThreshold, QueueDiscipline, QueueStats, Red,
    RedVerdict, Waiting, WaitingQueue,
};
use crate::random::scale;
use crate::server::Server;

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// The queue's discipline dropped it although there was room.
    Aqm,
    /// Lost at random. It was decided early, but takes effect after the queue: the packet occupies
    /// the queue and the transmitter like any other.
    Random,
    /// Larger than the MTU.
    Mtu,
}

/// A packet that won't arrive, given back so that its buffer can be used again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: Packet<P>,
    /// Why.
    pub reason: DropReason,
}

/// One emulated link, one way.
///
/// Time must not go back between calls; where it does, the latest time seen counts. Nothing is
/// allocated per packet once the internal queues have grown to what the traffic needs.
///
/// When it is polled makes no difference to what happens to packets: whatever was due earlier
/// happens first, with the time at which it was due.
#[derive(Debug)]
pub struct Link<P> {
    config: LinkConfig,
    now: Instant,
    queue: Queue<P>,
    /// The gate in front of an ordered queue.
    red: Option<Box<Red>>,
    server: Server,
    impairments: Impairments,
    pipe: Pipe<P>,
    /// Arrival of the latest packet in order: others in order don't arrive earlier.
    last_in_order: Instant,
    next_sequence: u64,
    highest_delivered: u64,
    in_transit: Tally,
    counters: Counters,
    /// When the transmitter turns to the next packet that waits; with packets that wait only.
    turn: Option<Instant>,
    /// Dropped after their acceptance; `None` if nobody wants them back.
    dropped: Option<VecDeque<Dropped<P>>>,
    /// What the discipline has just dropped; empty between calls.
    scratch: Vec<Waiting<P>>,
}

/// The queue, by when its packets' fates are decided.
#[derive(Debug)]
enum Queue<P> {
    /// At arrival.
    Ordered(DropTail),
    /// When the transmitter turns to them.
    Waiting(Box<WaitingQueue<P>>),
}

impl<P: Payload> Link<P> {
    /// A link that starts, with its traces, at `start`. All randomness comes from `seed`: give each
    /// link one of its own.
    pub fn new(config: LinkConfig, seed: u64, start: Instant) -> Result<Self, LinkConfigError> {
        config.validate()?;
        let limit = config.limit()?;
        let queue = match Discipline::new(&config.queue, seed, start) {
            None => Queue::Ordered(DropTail::new(limit, start)),
            Some(discipline) => {
                Queue::Waiting(Box::new(WaitingQueue::new(discipline, limit, start)))
            }
        };
        let red = match &config.queue {
            QueueDiscipline::Red(red) => {
                let thresholds = red.thresholds(limit).map_err(LinkConfigError::Queue)?;
                let rate = config.rate.mean().map(Bandwidth::as_bps);
                Some(Box::new(Red::new(red, thresholds, rate, seed)))
            }
            _ => None,
        };
        Ok(Self {
            now: start,
            queue,
            red,
            server: Server::new(&config.rate, start, nanos(config.trace_offset)),
            impairments: Impairments::new(&config, seed, start),
            pipe: Pipe::new(),
            last_in_order: start,
            next_sequence: 1,
            highest_delivered: 0,
            in_transit: Tally::default(),
            counters: Counters::default(),
            turn: None,
            dropped: None,
            scratch: Vec::new(),
            config,
        })
    }

    /// Sends a packet into the link at `now`. Gives it back if it's clear already that it won't
    /// arrive; there's nothing that the caller must do then.
    ///
    /// With disciplines that decide when the transmitter turns to a packet, packets may be dropped
    /// later: see [`Link::keep_dropped`].
    pub fn enqueue(&mut self, now: Instant, packet: Packet<P>) -> Option<Dropped<P>> {
        let now = self.advance(now);
        let size = self.wire_size(packet.payload.len());
        self.counters.enqueued.add(size);
        if size > self.config.mtu.unwrap_or(MAX_PACKET).min(MAX_PACKET) {
            let reason = DropReason::Mtu;
            self.count_drop(reason, size);
            return Some(Dropped { packet, reason });
        }
        let dropped = match self.queue {
            Queue::Ordered(_) => self.send(now, packet, size),
            Queue::Waiting(_) => self.wait(now, packet, size),
        };
        if let Some(Dropped { reason, .. }) = dropped {
            self.count_drop(reason, size);
        }
        dropped
    }

    /// The next packet that has arrived at the far end by `now`, in the order of arrival.
    pub fn poll(&mut self, now: Instant) -> Option<Packet<P>> {
        let now = self.advance(now);
        let item = self.pipe.pop(now)?;
        self.in_transit.remove(item.size);
        self.counters.delivered.add(item.size);
        if item.sequence < self.highest_delivered {
            self.counters.reordered.add(item.size);
        }
        self.highest_delivered = self.highest_delivered.max(item.sequence);
        Some(item.packet)
    }

    /// When [`Link::poll`] is to be called next: it has a packet then, or (with disciplines that
    /// decide at dequeue) the transmitter turns to a packet that waits, and `poll` may well return
    /// `None`. `None` if no packet is under way (or none that will ever arrive).
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.pipe.next_arrival();
        let next = match self.turn {
            None => arrival,
            Some(turn) => Some(arrival.map_or(turn, |arrival| arrival.min(turn))),
        };
        next.filter(|next| *next < Instant::FAR_FUTURE)
    }

    /// Whether packets that are dropped after [`Link::enqueue`] accepted them are kept for
    /// [`Link::take_dropped`]. Default: no, they are just dropped.
    pub fn keep_dropped(&mut self, keep: bool) {
        self.dropped = keep.then(VecDeque::new);
    }

    /// The next packet, in the order of time, that was dropped after it had been accepted: by the
    /// queue's discipline, in favour of another, or at random behind a discipline that decides at
    /// dequeue. Only with [`Link::keep_dropped`]; to be called until `None` after each call that was
    /// given a time, or they pile up.
    pub fn take_dropped(&mut self) -> Option<Dropped<P>> {
        self.dropped.as_mut()?.pop_front()
    }

    /// What became of the packets so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether [`Link::take_dropped`] has something.
    pub fn has_dropped(&self) -> bool {
        let dropped = self.dropped.as_ref();
        dropped.is_some_and(|dropped| !dropped.is_empty())
    }

    /// Packets, copies included, that will still arrive. Lost ones aren't part of it; packets whose
    /// fate a discipline decides at dequeue are, until then.
    pub fn in_transit(&self) -> Tally {
        self.in_transit
    }

    /// How full the queue is at `now` and was until then.
    ///
    /// With disciplines that decide at dequeue, whatever [`Link::next_event`] announced for earlier
    /// should have been polled: packets whose turn has come since count as waiting still.
    pub fn queue_stats(&self, now: Instant) -> QueueStats {
        let now = now.max(self.now);
        match &self.queue {
            Queue::Ordered(queue) => queue.stats(now),
            Queue::Waiting(queue) => queue.stats(now),
        }
    }

    /// Begins mean and maxima of the queue anew, to leave out a warm-up.
    pub fn reset_queue_stats(&mut self, now: Instant) {
        let now = self.advance(now);
        match &mut self.queue {
            Queue::Ordered(queue) => queue.reset_stats(now),
            Queue::Waiting(queue) => queue.reset_stats(now),
        }
    }

    /// Bytes in the queue at the time of the last call that was given one; the packet in service
    /// counts.
    pub fn queue_len(&self) -> ByteCount {
        ByteCount::new(match &self.queue {
            Queue::Ordered(queue) => queue.bytes(),
            Queue::Waiting(queue) => queue.bytes(),
        })
    }

    /// What the queue's discipline has in mind; [`AqmState::None`] for drop-tail.
    pub fn aqm_state(&self) -> AqmState {
        match &self.queue {
            Queue::Ordered(_) => self.red.as_ref().map_or(AqmState::None, |red| {
                let (average, probability) = red.state();
                AqmState::Red {
                    average,
                    probability,
                }
            }),
            Queue::Waiting(queue) => queue.discipline.state(),
        }
    }

    /// What the link was made from.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    fn advance(&mut self, now: Instant) -> Instant {
        let before = self.now;
        self.now = self.now.max(now);
        match &mut self.queue {
            Queue::Ordered(queue) => queue.advance(self.now),
            Queue::Waiting(_) => self.transmit(before, self.now),
        }
        self.now
    }

    /// Puts a packet into a queue that it leaves in order: what becomes of it is clear at once.
    fn send(&mut self, now: Instant, mut packet: Packet<P>, size: u32) -> Option<Dropped<P>> {
        let Queue::Ordered(queue) = &mut self.queue else {
            return None;
        };
        let begin = self.server.next_start(now);
        let mut congested = false;
        if let Some(red) = &mut self.red {
            let idle = (queue.packets() == 0).then(|| self.server.idle_since());
            let verdict = red.on_arrival(now, queue.bytes(), idle);
            let is_markable = red.marks() && packet.ecn.is_capable();
            if verdict == RedVerdict::Drop || (verdict == RedVerdict::Congested && !is_markable) {
                let reason = DropReason::Aqm;
                return Some(Dropped { packet, reason });
            }
            congested = verdict == RedVerdict::Congested;
        }
        if !queue.admits(size) {
            let reason = DropReason::Queue;
            return Some(Dropped { packet, reason });
        }
        if let Some(threshold) = self.config.ecn_threshold {
            congested = match threshold {
                EcnThreshold::Bytes(bytes) => queue.bytes() > bytes.get(),
                EcnThreshold::Packets(packets) => queue.packets() > packets.get(),
                EcnThreshold::Delay(delay) => begin - now > delay,
            };
        }
        if congested && matches!(packet.ecn, Ecn::Ect0 | Ecn::Ect1) {
            packet.ecn = Ecn::Ce;
            self.counters.ecn_marked.add(size);
        }
        let turn = self.server.next_turn(now);
        let departure = self.server.serve(now, size);
        queue.push(now, turn, departure, size);
        let draws = self.impairments.draw(departure);
        if draws.lost {
            let reason = DropReason::Random;
            return Some(Dropped { packet, reason });
        }
        self.launch(departure, packet, size, draws);
        None
    }

    /// Puts a packet into a queue that decides at dequeue. Never inlined, like [`Link::transmit`]:
    /// the usual queue is passed quicker without it.
    #[inline(never)]
    fn wait(&mut self, now: Instant, packet: Packet<P>, size: u32) -> Option<Dropped<P>> {
        let Queue::Waiting(queue) = &mut self.queue else {
            return None;
        };
        let item = Waiting::new(packet, size, now);
        let admission = queue.enqueue(now, item, &mut self.scratch);
        self.discard_scratch(DropReason::Queue);
        match admission {
            Admission::Accepted => {
                self.in_transit.add(size);
                self.transmit(now, now);
                None
            }
            Admission::Refused(Waiting { packet, .. }) => {
                let reason = DropReason::Queue;
                Some(Dropped { packet, reason })
            }
        }
    }

    /// Lets the transmitter turn to packets that wait, from `from` (when it last did) to `to`.
    #[inline(never)]
    fn transmit(&mut self, from: Instant, to: Instant) {
        loop {
            let Queue::Waiting(queue) = &mut self.queue else {
                return;
            };
            self.turn = (!queue.is_empty()).then(|| self.server.next_turn(from));
            let Some(turn) = self.turn.filter(|turn| *turn <= to) else {
                queue.finish_service(to);
                return;
            };
            let item = queue.take(turn, &mut self.scratch);
            let served = item.map(|item| {
                let departure = self.server.serve_waiting(turn, item.since, item.size);
                queue.serve(turn, departure, item.size);
                (departure, item)
            });
            self.discard_scratch(DropReason::Aqm);
            if let Some((departure, item)) = served {
                self.depart(departure, item);
            }
        }
    }

    /// A packet that waited has been transmitted.
    fn depart(&mut self, departure: Instant, item: Waiting<P>) {
        if item.marked {
            self.counters.ecn_marked.add(item.size);
        }
        let draws = self.impairments.draw(departure);
        if draws.lost {
            self.discard(item, DropReason::Random);
            return;
        }
        self.in_transit.remove(item.size);
        self.launch(departure, item.packet, item.size, draws);
    }

    /// Drops what the discipline has dropped.
    fn discard_scratch(&mut self, reason: DropReason) {
        if self.scratch.is_empty() {
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        for item in scratch.drain(..) {
            self.discard(item, reason);
        }
        self.scratch = scratch;
    }

    /// Drops a packet that was accepted.
    fn discard(&mut self, item: Waiting<P>, reason: DropReason) {
        self.in_transit.remove(item.size);
        self.count_drop(reason, item.size);
        if let Some(dropped) = &mut self.dropped {
            let packet = item.packet;
            dropped.push_back(Dropped { packet, reason });
        }
    }

    fn count_drop(&mut self, reason: DropReason, size: u32) {
        let tally = match reason {
            DropReason::Queue => &mut self.counters.dropped_queue,
            DropReason::Aqm => &mut self.counters.dropped_aqm,
            DropReason::Random => &mut self.counters.dropped_random,
            DropReason::Mtu => &mut self.counters.dropped_mtu,
        };
        tally.add(size);
    }

    fn wire_size(&self, payload: usize) -> u32 {
        // What doesn't fit in 32 bits is beyond any MTU.
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        payload.saturating_add(self.config.per_packet_overhead)
    }

    /// Puts a packet, which left the queue at `departure` and isn't lost, on its way.
    fn launch(&mut self, departure: Instant, mut packet: Packet<P>, size: u32, draws: Draws) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let copy = draws.duplicate.then(|| Packet {
            payload: packet.payload.duplicate(),
            ecn: packet.ecn,
        });
        if let Some(random) = draws.corrupt {
            self.corrupt(&mut packet.payload, random, size);
        }
        let (route, arrival) = self.route(departure, draws);
        self.in_transit.add(size);
        self.pipe.insert(
            route,
            InFlight {
                arrival,
                sequence,
                size,
                packet,
            },
        );
        if let Some(packet) = copy {
            self.counters.duplicated.add(size);
            self.in_transit.add(size);
            self.pipe.insert(
                route,
                InFlight {
                    arrival,
                    sequence,
                    size,
                    packet,
                },
            );
        }
        if !matches!(route, Route::Held { .. }) {
            self.pipe.pass(arrival);
        }
    }

    fn route(&mut self, departure: Instant, draws: Draws) -> (Route, Instant) {
        let mut arrival = Instant::from_nanos(departure.as_nanos().saturating_add(draws.delay));
        if !self.config.jitter_reorders {
            arrival = arrival.max(self.last_in_order);
        }
        let by = self
            .config
            .reorder
            .filter(|_| draws.reorder)
            .map(|reorder| reorder.by);
        match by {
            Some(ReorderBy::Delay(delay)) => (Route::Free, arrival + delay),
            Some(ReorderBy::Packets { count, at_most }) => (
                Route::Held {
                    count,
                    earliest: arrival,
                },
                arrival + at_most,
            ),
            None if self.config.jitter_reorders => (Route::Free, arrival),
            None => {
                self.last_in_order = arrival;
                (Route::InOrder, arrival)
            }
        }
    }

    fn corrupt(&mut self, payload: &mut P, random: u64, size: u32) {
        if payload.is_empty() {
            return;
        }
        // The high bits say where, the low ones what to flip: something, in any case.
        let at = scale(random, payload.len() as u64) as usize;
        let mask = (random % 255) as u8 + 1;
        payload.corrupt(at, mask);
        self.counters.corrupted.add(size);
    }
}
