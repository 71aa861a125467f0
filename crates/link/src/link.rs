//! The link: combines queue, transmitter, impairments and propagation.

use std::collections::VecDeque;

use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::condition::LinkCondition;
use crate::config::{LinkConfig, LinkConfigError, MAX_PACKET, ReorderBy};
use crate::counters::{Counters, Tally};
use crate::impairments::{Draws, Impairments, nanos};
use crate::packet::{Ecn, Packet, Payload};
use crate::propagation::{InFlight, Propagation, Route};
use crate::queue::{
    Admission, AqmState, Discipline, DropTail, EcnThreshold, QueueDiscipline, QueueStats, Red,
    RedVerdict, Waiting, WaitingQueue,
};
use crate::random::scale;
use crate::transmitter::Transmitter;

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// The queue's discipline dropped it although there was room.
    Aqm,
    /// Lost at random. Decided early, but effective after the queue: the packet occupies the queue
    /// and the transmitter like any other. Or sent into a link that is cut.
    Random,
    /// Larger than the MTU.
    Mtu,
}

/// A packet that won't arrive, returned so that its buffer can be reused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: Packet<P>,
    /// The reason.
    pub reason: DropReason,
}

/// One emulated link, in one direction.
///
/// Time must not decrease between calls; if it does, the latest time is used. Nothing is allocated
/// per packet once the internal queues have grown to the required size.
///
/// The times of polling have no influence on the fates of packets: everything due earlier is
/// processed first, at its own time.
#[derive(Debug)]
pub struct Link<P> {
    config: LinkConfig,
    now: Instant,
    queue: Queue<P>,
    /// The admission rule of an ordered queue.
    red: Option<Box<Red>>,
    server: Transmitter,
    impairments: Impairments,
    pipe: Propagation<P>,
    /// Arrival of the latest packet in order: others in order don't arrive earlier.
    last_in_order: Instant,
    next_sequence: u64,
    highest_delivered: u64,
    in_transit: Tally,
    counters: Counters,
    /// When the next waiting packet is dequeued; only if packets wait.
    turn: Option<Instant>,
    /// Packets dropped after their acceptance; `None` if they are not collected.
    dropped: Option<VecDeque<Dropped<P>>>,
    /// Packets just dropped by the discipline; empty between calls.
    scratch: Vec<Waiting<P>>,
}

/// The queue, by the time at which the fates of its packets are decided.
#[derive(Debug)]
enum Queue<P> {
    /// At arrival.
    Ordered(DropTail),
    /// At dequeue.
    Waiting(Box<WaitingQueue<P>>),
}

impl<P: Payload> Link<P> {
    /// A link that starts, with its traces, at `start`. All randomness comes from `seed`: use a
    /// different one for each link.
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
            server: Transmitter::new(&config.rate, start, nanos(config.trace_offset)),
            impairments: Impairments::new(&config, seed, start),
            pipe: Propagation::new(),
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

    /// Sends a packet into the link at `now`. Returns it if it is already certain that it won't
    /// arrive; the caller need not react.
    ///
    /// With disciplines that decide at dequeue, packets may be dropped later: see
    /// [`Link::keep_dropped`].
    pub fn enqueue(&mut self, now: Instant, packet: Packet<P>) -> Option<Dropped<P>> {
        let now = self.advance(now);
        let size = self.wire_size(packet.payload.len());
        self.counters.enqueued.add(size);
        if size > self.config.mtu.unwrap_or(MAX_PACKET).min(MAX_PACKET) {
            let reason = DropReason::Mtu;
            self.count_drop(reason, size);
            return Some(Dropped { packet, reason });
        }
        if self.impairments.condition().cut {
            let reason = DropReason::Random;
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

    /// What is wrong with the link for packets that are sent into it from `now` on.
    ///
    /// # Errors
    ///
    /// A value is out of its range; the condition stays as it is.
    pub fn set_condition(
        &mut self,
        now: Instant,
        condition: LinkCondition,
    ) -> Result<(), LinkConfigError> {
        condition.validate()?;
        self.advance(now);
        self.impairments.set_condition(condition);
        Ok(())
    }

    /// What is wrong with the link at present.
    pub fn condition(&self) -> LinkCondition {
        self.impairments.condition()
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

    /// When [`Link::poll`] must be called next: it has a packet then, or (with disciplines that
    /// decide at dequeue) a waiting packet is dequeued, and `poll` may return `None`. `None` if no
    /// packet is in transit (or none that will arrive).
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.pipe.next_arrival();
        let next = match self.turn {
            None => arrival,
            Some(turn) => Some(arrival.map_or(turn, |arrival| arrival.min(turn))),
        };
        next.filter(|next| *next < Instant::FAR_FUTURE)
    }

    /// Whether packets that are dropped after [`Link::enqueue`] accepted them are collected for
    /// [`Link::take_dropped`]. Default: no.
    pub fn keep_dropped(&mut self, keep: bool) {
        self.dropped = keep.then(VecDeque::new);
    }

    /// The next packet, in the order of time, that was dropped after it had been accepted: by the
    /// queue's discipline, in favour of another, or at random after a discipline that decides at
    /// dequeue. Only with [`Link::keep_dropped`]; must be called until `None` after each call with a
    /// time, or they accumulate.
    pub fn take_dropped(&mut self) -> Option<Dropped<P>> {
        self.dropped.as_mut()?.pop_front()
    }

    /// Counters of packets so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether [`Link::take_dropped`] has a packet.
    pub fn has_dropped(&self) -> bool {
        let dropped = self.dropped.as_ref();
        dropped.is_some_and(|dropped| !dropped.is_empty())
    }

    /// Packets, copies included, that will still arrive. Lost ones aren't part of it; packets whose
    /// fate a discipline decides at dequeue are, until then.
    pub fn in_transit(&self) -> Tally {
        self.in_transit
    }

    /// Occupancy of the queue at `now` and until then.
    ///
    /// With disciplines that decide at dequeue, events announced by [`Link::next_event`] for
    /// earlier times should have been polled: packets due for dequeue since then still count as
    /// waiting.
    pub fn queue_stats(&self, now: Instant) -> QueueStats {
        let now = now.max(self.now);
        match &self.queue {
            Queue::Ordered(queue) => queue.stats(now),
            Queue::Waiting(queue) => queue.stats(now),
        }
    }

    /// Restarts mean and maxima of the queue, to exclude a warm-up.
    pub fn reset_queue_stats(&mut self, now: Instant) {
        let now = self.advance(now);
        match &mut self.queue {
            Queue::Ordered(queue) => queue.reset_stats(now),
            Queue::Waiting(queue) => queue.reset_stats(now),
        }
    }

    /// Bytes in the queue at the time of the last call with a time; the packet in service is
    /// included.
    pub fn queue_len(&self) -> ByteCount {
        ByteCount::new(match &self.queue {
            Queue::Ordered(queue) => queue.bytes(),
            Queue::Waiting(queue) => queue.bytes(),
        })
    }

    /// The state of the queue's discipline; [`AqmState::None`] for drop-tail.
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

    /// The configuration of the link.
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

    /// Adds a packet to an ordered queue: its fate is determined at once.
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

    /// Adds a packet to a queue that decides at dequeue. Never inlined, like [`Link::transmit`],
    /// which makes the usual queue faster.
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

    /// Dequeues waiting packets, from `from` (the last dequeue) to `to`.
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

    /// A waiting packet was transmitted.
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

    /// Drops the packets that the discipline has dropped.
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

    /// Drops an accepted packet.
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
        // A size that doesn't fit in 32 bits exceeds any MTU.
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        payload.saturating_add(self.config.per_packet_overhead)
    }

    /// Sends a packet, which left the queue at `departure` and isn't lost, towards the far end.
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
        // The high bits determine the position, the low ones the bits to flip: at least one.
        let at = scale(random, payload.len() as u64) as usize;
        let mask = (random % 255) as u8 + 1;
        payload.corrupt(at, mask);
        self.counters.corrupted.add(size);
    }
}
