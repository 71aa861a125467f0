//! Queues that decide at dequeue and store their packets.

use swiftwater_units::Instant;

use super::backlog::Waiting;
use super::buffer::Limit;
use super::codel::CoDelQueue;
use super::delay::DelayRecorder;
use super::discipline::QueueDiscipline;
use super::dual_pi2::DualPi2Queue;
use super::fq_codel::{Evicted, FqCoDelQueue};
use super::state::AqmState;
use super::stats::{Occupancy, QueueStats};
use crate::packet::Payload;
use crate::random::{Purpose, Stream};

/// Result for an arriving packet.
#[derive(Debug)]
pub(crate) enum Admission<P> {
    /// Accepted.
    Accepted,
    /// No space.
    Refused(Waiting<P>),
}

/// A discipline and its packets.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each link, behind a pointer already"
)]
pub(crate) enum Discipline<P> {
    CoDel(CoDelQueue<P>),
    FqCoDel(FqCoDelQueue<P>),
    DualPi2(DualPi2Queue<P>),
}

impl<P: Payload> Discipline<P> {
    /// The discipline of a configuration; `None` for those that decide at arrival.
    pub(crate) fn new(config: &QueueDiscipline, seed: u64, start: Instant) -> Option<Self> {
        Some(match config {
            QueueDiscipline::DropTail | QueueDiscipline::Red(_) => return None,
            QueueDiscipline::CoDel(config) => Self::CoDel(CoDelQueue::new(config)),
            QueueDiscipline::FqCoDel(config) => {
                let salt = Stream::new(seed, Purpose::FlowHash).next();
                Self::FqCoDel(FqCoDelQueue::new(config, salt))
            }
            QueueDiscipline::DualPi2(config) => Self::DualPi2(DualPi2Queue::new(config, start)),
        })
    }

    pub(crate) fn state(&self) -> AqmState {
        match self {
            Self::CoDel(queue) => queue.state(),
            Self::FqCoDel(queue) => queue.state(),
            Self::DualPi2(queue) => queue.state(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::CoDel(queue) => queue.backlog.is_empty(),
            Self::FqCoDel(queue) => queue.is_empty(),
            Self::DualPi2(queue) => queue.is_empty(),
        }
    }

    /// The transmitter is ready and the queue is empty.
    fn on_idle(&mut self) {
        match self {
            Self::CoDel(queue) => queue.on_idle(),
            Self::FqCoDel(queue) => queue.on_idle(),
            Self::DualPi2(_) => {}
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<P>>) -> Option<Waiting<P>> {
        match self {
            Self::CoDel(queue) => queue.dequeue(now, dropped),
            Self::FqCoDel(queue) => queue.dequeue(now, dropped),
            Self::DualPi2(queue) => queue.dequeue(now, dropped),
        }
    }
}

/// The waiting packets, and the one in service.
#[derive(Debug)]
pub(crate) struct WaitingQueue<P> {
    pub(crate) discipline: Discipline<P>,
    limit: Limit,
    /// Departure and size of the packet in service.
    in_service: Option<(Instant, u32)>,
    occupancy: Occupancy,
    delays: DelayRecorder,
}

impl<P: Payload> WaitingQueue<P> {
    pub(crate) fn new(discipline: Discipline<P>, limit: Limit, start: Instant) -> Self {
        Self {
            discipline,
            limit,
            in_service: None,
            occupancy: Occupancy::new(start),
            delays: DelayRecorder::default(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.occupancy.bytes()
    }

    /// True if no packet is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.discipline.is_empty()
    }

    /// Adds a packet, if there is space; FQ-CoDel makes space, and adds the packets that it drops
    /// to `dropped`.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        item: Waiting<P>,
        dropped: &mut Vec<Waiting<P>>,
    ) -> Admission<P> {
        let size = item.size;
        if let Discipline::FqCoDel(queue) = &mut self.discipline {
            let flow = queue.push(item);
            while !has_room(&self.occupancy, self.limit, size)
                && let Some(Evicted { item, newest }) = queue.evict(flow)
            {
                if newest {
                    return Admission::Refused(item);
                }
                self.occupancy.remove(now, item.size);
                dropped.push(item);
            }
            self.occupancy.add(now, size);
            return Admission::Accepted;
        }
        if !has_room(&self.occupancy, self.limit, size) {
            return Admission::Refused(item);
        }
        match &mut self.discipline {
            Discipline::CoDel(queue) => queue.backlog.push(item),
            Discipline::DualPi2(queue) => queue.push(now, item),
            // Handled above.
            Discipline::FqCoDel(_) => {}
        }
        self.occupancy.add(now, size);
        Admission::Accepted
    }

    /// Dequeues at `now`: the packet to send, if one is left after the discipline's drops.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        dropped: &mut Vec<Waiting<P>>,
    ) -> Option<Waiting<P>> {
        self.finish_service(now);
        let item = self.discipline.dequeue(now, dropped);
        for item in dropped.iter() {
            self.occupancy.remove(now, item.size);
        }
        let item = item?;
        self.delays.record(item.since, now);
        Some(item)
    }

    /// The dequeued packet departs at `departure`.
    pub(crate) fn serve(&mut self, now: Instant, departure: Instant, size: u32) {
        self.in_service = Some((departure, size));
        self.finish_service(now);
    }

    /// Removes the packet in service if it departed by `now`.
    pub(crate) fn finish_service(&mut self, now: Instant) {
        if let Some((departure, size)) = self.in_service.take_if(|(at, _)| *at <= now) {
            self.occupancy.remove(departure, size);
            if self.discipline.is_empty() {
                self.discipline.on_idle();
            }
        }
    }

    /// Statistics at `now`, as far as the queue has been served.
    pub(crate) fn stats(&self, now: Instant) -> QueueStats {
        let mut occupancy = self.occupancy;
        if let Some((departure, size)) = self.in_service.filter(|(at, _)| *at <= now) {
            occupancy.remove(departure, size);
        }
        occupancy.stats(now, self.delays.stats())
    }

    /// Restarts the statistics; packets are kept.
    pub(crate) fn reset_stats(&mut self, now: Instant) {
        self.occupancy.reset(now);
        self.delays.reset();
        if let Discipline::DualPi2(queue) = &mut self.discipline {
            queue.reset_stats();
        }
    }
}

/// Whether there is space for a packet of `size` bytes.
fn has_room(occupancy: &Occupancy, limit: Limit, size: u32) -> bool {
    let bytes = occupancy.bytes().saturating_add(u64::from(size));
    let packets = occupancy.packets() + 1;
    packets == 1 || limit.holds(bytes, packets)
}
