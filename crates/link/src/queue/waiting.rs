//! Queues that decide when the transmitter turns to them: their packets wait here.

use swiftwater_units::Instant;

use super::backlog::Waiting;
use super::buffer::Limit;
use super::codel::CoDelQueue;
use super::delay::DelayRecorder;
use super::discipline::QueueDiscipline;
use super::state::AqmState;
use super::stats::{Occupancy, QueueStats};

/// What a packet met that wanted to get in.
#[derive(Debug)]
pub(crate) enum Admission<P> {
    /// It is in.
    Accepted,
    /// There was no room.
    Refused(Waiting<P>),
}

/// A discipline and the packets that it keeps.
#[derive(Debug)]
pub(crate) enum Discipline<P> {
    CoDel(CoDelQueue<P>),
}

impl<P> Discipline<P> {
    /// The discipline of this configuration; `None` for those that decide at arrival.
    pub(crate) fn new(config: &QueueDiscipline) -> Option<Self> {
        match config {
            QueueDiscipline::DropTail => None,
            QueueDiscipline::CoDel(config) => Some(Self::CoDel(CoDelQueue::new(config))),
        }
    }

    pub(crate) fn state(&self) -> AqmState {
        match self {
            Self::CoDel(queue) => queue.state(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::CoDel(queue) => queue.backlog.is_empty(),
        }
    }

    fn push(&mut self, item: Waiting<P>) {
        match self {
            Self::CoDel(queue) => queue.backlog.push(item),
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<P>>) -> Option<Waiting<P>> {
        match self {
            Self::CoDel(queue) => queue.dequeue(now, dropped),
        }
    }
}

/// The packets that wait, and the one in service.
#[derive(Debug)]
pub(crate) struct WaitingQueue<P> {
    pub(crate) discipline: Discipline<P>,
    limit: Limit,
    /// Departure and size of the packet in service.
    in_service: Option<(Instant, u32)>,
    occupancy: Occupancy,
    delays: DelayRecorder,
}

impl<P> WaitingQueue<P> {
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

    /// True if the transmitter has nothing to turn to.
    pub(crate) fn is_empty(&self) -> bool {
        self.discipline.is_empty()
    }

    fn has_room_for(&self, size: u32) -> bool {
        let bytes = self.occupancy.bytes().saturating_add(u64::from(size));
        let packets = self.occupancy.packets() + 1;
        packets == 1 || self.limit.holds(bytes, packets)
    }

    /// Takes a packet in, if there is room.
    pub(crate) fn enqueue(&mut self, now: Instant, item: Waiting<P>) -> Admission<P> {
        let size = item.size;
        if !self.has_room_for(size) {
            return Admission::Refused(item);
        }
        self.discipline.push(item);
        self.occupancy.add(now, size);
        Admission::Accepted
    }

    /// The transmitter turns to the queue at `now`: what it sends, if anything is left when the
    /// discipline has dropped what it drops.
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
        self.delays.record(item.sojourn(now));
        Some(item)
    }

    /// The packet just taken has left at `departure`.
    pub(crate) fn serve(&mut self, now: Instant, departure: Instant, size: u32) {
        self.in_service = Some((departure, size));
        self.finish_service(now);
    }

    /// Lets go of the packet in service if it has left by `now`.
    pub(crate) fn finish_service(&mut self, now: Instant) {
        if let Some((departure, size)) = self.in_service.take_if(|(at, _)| *at <= now) {
            self.occupancy.remove(departure, size);
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

    /// Forgets the past of the statistics, not the packets.
    pub(crate) fn reset_stats(&mut self, now: Instant) {
        self.occupancy.reset(now);
        self.delays.reset();
    }
}
