//! Packets in propagation, in the order of arrival.
//!
//! Packets in order, which are nearly all, are in a plain queue. Those that may overtake or be
//! overtaken are in a heap, those held back until others have passed in a separate queue.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use swiftwater_units::Instant;

use crate::packet::Packet;

/// A packet in propagation.
#[derive(Debug)]
pub(crate) struct InFlight<P> {
    pub(crate) arrival: Instant,
    /// Number of the packet in sending order; a copy has its original's.
    pub(crate) sequence: u64,
    /// Bytes on the wire.
    pub(crate) size: u32,
    pub(crate) packet: Packet<P>,
}

/// Ordering rule of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// Not before any earlier packet in order.
    InOrder,
    /// By its arrival time only.
    Free,
    /// After this many later packets, but not before `earliest` and not after its arrival time.
    Held { count: u32, earliest: Instant },
}

#[derive(Debug)]
pub(crate) struct Propagation<P> {
    in_order: VecDeque<Entry<P>>,
    free: BinaryHeap<Reverse<Entry<P>>>,
    held: VecDeque<Held<P>>,
    /// Orders packets that arrive at the same time.
    next_order: u64,
    /// Number of packets that passed and could release a held one.
    passed: u64,
}

#[derive(Debug)]
struct Held<P> {
    entry: Entry<P>,
    /// Value of `passed` at which it is released.
    until: u64,
    earliest: Instant,
}

#[derive(Debug)]
struct Entry<P> {
    order: u64,
    item: InFlight<P>,
}

impl<P> Entry<P> {
    fn key(&self) -> (Instant, u64) {
        (self.item.arrival, self.order)
    }
}

impl<P> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Entry<P> {}

impl<P> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Entry<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> Propagation<P> {
    pub(crate) fn new() -> Self {
        Self {
            in_order: VecDeque::new(),
            free: BinaryHeap::new(),
            held: VecDeque::new(),
            next_order: 0,
            passed: 0,
        }
    }

    /// Starts the propagation of a packet. Arrival times of packets in order must not decrease.
    pub(crate) fn insert(&mut self, route: Route, item: InFlight<P>) {
        let entry = self.number(item);
        match route {
            Route::InOrder => self.in_order.push_back(entry),
            Route::Free => self.free.push(Reverse(entry)),
            Route::Held { count, earliest } => {
                let mut entry = entry;
                // Deadlines don't decrease either, so the first one is always next.
                if let Some(last) = self.held.back() {
                    entry.item.arrival = entry.item.arrival.max(last.entry.item.arrival);
                }
                let until = self.passed + u64::from(count);
                self.held.push_back(Held {
                    entry,
                    until,
                    earliest,
                });
            }
        }
    }

    /// A packet that isn't held starts its propagation and arrives at `arrival`: held packets that
    /// waited for it are released.
    pub(crate) fn pass(&mut self, arrival: Instant) {
        self.passed += 1;
        while let Some(first) = self.held.front()
            && first.until <= self.passed
            && let Some(released) = self.held.pop_front()
        {
            let mut entry = released.entry;
            let release = arrival.max(released.earliest);
            // A packet whose deadline has passed keeps its position among those with the same arrival
            // time, independently of earlier polls.
            if release < entry.item.arrival {
                entry.item.arrival = release;
                entry = self.number(entry.item);
            }
            self.free.push(Reverse(entry));
        }
    }

    /// Time of the next arrival.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        if self.all_in_order() {
            return self.in_order.front().map(|entry| entry.item.arrival);
        }
        let (in_order, free, held) = self.heads();
        [in_order, free, held]
            .into_iter()
            .flatten()
            .min()
            .map(|(arrival, _)| arrival)
    }

    /// The next packet, if it has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<InFlight<P>> {
        if self.all_in_order() {
            self.in_order
                .front()
                .filter(|entry| entry.item.arrival <= now)?;
            return self.in_order.pop_front().map(|entry| entry.item);
        }
        let (in_order, free, held) = self.heads();
        let next = [in_order, free, held].into_iter().flatten().min()?;
        if next.0 > now {
            return None;
        }
        let entry = if Some(next) == in_order {
            self.in_order.pop_front()
        } else if Some(next) == free {
            self.free.pop().map(|Reverse(entry)| entry)
        } else {
            self.held.pop_front().map(|held| held.entry)
        };
        entry.map(|entry| entry.item)
    }

    #[expect(
        clippy::type_complexity,
        reason = "three of the same type, destructured at once"
    )]
    fn heads(
        &self,
    ) -> (
        Option<(Instant, u64)>,
        Option<(Instant, u64)>,
        Option<(Instant, u64)>,
    ) {
        (
            self.in_order.front().map(Entry::key),
            self.free.peek().map(|Reverse(entry)| entry.key()),
            self.held.front().map(|held| held.entry.key()),
        )
    }

    /// Fast path for the usual case.
    fn all_in_order(&self) -> bool {
        self.free.is_empty() && self.held.is_empty()
    }

    fn number(&mut self, item: InFlight<P>) -> Entry<P> {
        let order = self.next_order;
        self.next_order += 1;
        Entry { order, item }
    }
}
