//! The link itself: brings queue, transmitter, chance and propagation together.

use swiftwater_units::{ByteCount, Instant};

use crate::config::{LinkConfig, LinkConfigError, MAX_PACKET, ReorderBy};
use crate::counters::{Counters, Tally};
use crate::impair::{Draws, Impairments, nanos};
use crate::packet::{Ecn, Packet, Payload};
use crate::pipe::{InFlight, Pipe, Route};
use crate::queue::{EcnThreshold, Queue, QueueStats};
use crate::random::scale;
use crate::server::Server;

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DropReason {
    /// The queue was full.
    Queue,
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
#[derive(Debug)]
pub struct Link<P> {
    config: LinkConfig,
    now: Instant,
    queue: Queue,
    server: Server,
    impairments: Impairments,
    pipe: Pipe<P>,
    /// Arrival of the latest packet in order: others in order don't arrive earlier.
    last_in_order: Instant,
    next_sequence: u64,
    highest_delivered: u64,
    in_transit: Tally,
    counters: Counters,
}

impl<P: Payload> Link<P> {
    /// A link that starts, with its traces, at `start`. All randomness comes from `seed`: give each
    /// link one of its own.
    pub fn new(config: LinkConfig, seed: u64, start: Instant) -> Result<Self, LinkConfigError> {
        config.validate()?;
        Ok(Self {
            now: start,
            queue: Queue::new(config.limit()?, start),
            server: Server::new(&config.rate, start, nanos(config.trace_offset)),
            impairments: Impairments::new(&config, seed, start),
            pipe: Pipe::new(),
            last_in_order: start,
            next_sequence: 1,
            highest_delivered: 0,
            in_transit: Tally::default(),
            counters: Counters::default(),
            config,
        })
    }

    /// Sends a packet into the link at `now`. Gives it back if it won't arrive; there's nothing
    /// that the caller must do then.
    pub fn enqueue(&mut self, now: Instant, mut packet: Packet<P>) -> Option<Dropped<P>> {
        let now = self.advance(now);
        let size = self.wire_size(packet.payload.len());
        self.counters.enqueued.add(size);
        if size > self.config.mtu.unwrap_or(MAX_PACKET).min(MAX_PACKET) {
            self.counters.dropped_mtu.add(size);
            return Some(Dropped {
                packet,
                reason: DropReason::Mtu,
            });
        }
        if !self.queue.admits(size) {
            self.counters.dropped_queue.add(size);
            return Some(Dropped {
                packet,
                reason: DropReason::Queue,
            });
        }
        self.mark(now, &mut packet, size);
        let departure = self.server.serve(now, size);
        self.queue.push(now, departure, size);
        let draws = self.impairments.draw(departure);
        if draws.lost {
            self.counters.dropped_random.add(size);
            return Some(Dropped {
                packet,
                reason: DropReason::Random,
            });
        }
        self.launch(departure, packet, size, draws);
        None
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

    /// When [`Link::poll`] has the next packet; `None` if none is under way (or none that will ever
    /// arrive).
    pub fn next_event(&self) -> Option<Instant> {
        self.pipe
            .next_arrival()
            .filter(|arrival| *arrival < Instant::FAR_FUTURE)
    }

    /// What became of the packets so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets, copies included, that will still arrive. Lost ones aren't part of it.
    pub fn in_transit(&self) -> Tally {
        self.in_transit
    }

    /// How full the queue is at `now` and was until then.
    pub fn queue_stats(&self, now: Instant) -> QueueStats {
        self.queue.stats(now.max(self.now))
    }

    /// Begins mean and maxima of the queue anew, to leave out a warm-up.
    pub fn reset_queue_stats(&mut self, now: Instant) {
        let now = self.advance(now);
        self.queue.reset_stats(now);
    }

    /// Bytes in the queue at the time of the last call that was given one; the packet in service
    /// counts.
    pub fn queue_len(&self) -> ByteCount {
        ByteCount::new(self.queue.bytes())
    }

    /// What the link was made from.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.queue.advance(self.now);
        self.now
    }

    fn wire_size(&self, payload: usize) -> u32 {
        // What doesn't fit in 32 bits is beyond any MTU.
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        payload.saturating_add(self.config.per_packet_overhead)
    }

    fn mark(&mut self, now: Instant, packet: &mut Packet<P>, size: u32) {
        let Some(threshold) = self.config.ecn_threshold else {
            return;
        };
        let above = match threshold {
            EcnThreshold::Bytes(bytes) => self.queue.bytes() > bytes.get(),
            EcnThreshold::Packets(packets) => self.queue.packets() > packets.get(),
            EcnThreshold::Delay(delay) => self.server.next_start(now) - now > delay,
        };
        if above && matches!(packet.ecn, Ecn::Ect0 | Ecn::Ect1) {
            packet.ecn = Ecn::Ce;
            self.counters.ecn_marked.add(size);
        }
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
