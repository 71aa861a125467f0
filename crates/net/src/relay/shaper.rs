//! The two links of a relay, and the thread that delivers what comes out of them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use swiftwater_link::{Counters, Ecn, Link, LinkCondition, LinkConfig, Packet, Payload};
use swiftwater_units::Instant;

use super::{Delivery, RelayError};
use crate::clock::Clock;

/// Buffers kept for reuse.
const POOLED: usize = 4096;

/// Packets delivered before the links are looked at again.
const BURST: usize = 64;

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// A packet on a link, with its destination.
pub(super) trait Carried: Payload {
    /// What it belongs to.
    type Owner;

    fn new(owner: Self::Owner, direction: Direction, data: Vec<u8>) -> Self;

    /// Sends the packet on; false if the next hop did not take it.
    fn deliver(&mut self, ecn: Ecn) -> bool;

    /// Where it goes.
    fn direction(&self) -> Direction;

    /// The buffer, to be used again.
    fn into_data(self) -> Vec<u8>;
}

/// Says which datagrams pass to the links: `true` lets one pass.
pub type Filter = Box<dyn FnMut(Direction, &[u8]) -> bool + Send>;

struct Links<F> {
    up: Link<F>,
    down: Link<F>,
    /// Buffers to use again.
    pool: Vec<Vec<u8>>,
    /// Packets that were not taken after the links.
    unsent: u64,
    /// What was delivered, if that is recorded.
    deliveries: Option<Vec<Delivery>>,
    /// What passes to the links; everything without one.
    filter: Option<Filter>,
    /// Packets that it has dropped.
    filtered: u64,
    stopped: bool,
}

/// What became of the packets on both links.
pub(super) struct Tally {
    pub(super) up: Counters,
    pub(super) down: Counters,
    pub(super) unsent: u64,
    pub(super) filtered: u64,
}

/// Both links and the way to wake their thread.
pub(super) struct Shaper<F> {
    links: Mutex<Links<F>>,
    changed: Condvar,
    pub(super) clock: Clock,
}

impl<F: Carried> Shaper<F> {
    pub(super) fn new(up: &LinkConfig, down: &LinkConfig, seed: u64) -> Result<Self, RelayError> {
        let clock = Clock::start();
        let now = clock.now();
        let link = |direction, config: &LinkConfig, seed| {
            Link::new(config.clone(), seed, now)
                .map_err(|source| RelayError::Link { direction, source })
        };
        Ok(Self {
            links: Mutex::new(Links {
                up: link("up", up, seed)?,
                // Both links draw from the seed, but not the same numbers.
                down: link("down", down, !seed)?,
                pool: Vec::new(),
                unsent: 0,
                deliveries: None,
                filter: None,
                filtered: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
            clock,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Links<F>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts packets that have just arrived on a link.
    pub(super) fn enqueue<'a>(
        &self,
        direction: Direction,
        packets: impl Iterator<Item = (F::Owner, Ecn, &'a mut [u8])>,
    ) {
        let now = self.clock.now();
        let mut links = self.lock();
        let before = links.next_event();
        for (owner, ecn, packet) in packets {
            if links.drops(direction, packet) {
                continue;
            }
            let mut data = links.pool.pop().unwrap_or_default();
            data.clear();
            data.extend_from_slice(packet);
            let packet = Packet::with_ecn(F::new(owner, direction, data), ecn);
            let dropped = links.of(direction).enqueue(now, packet);
            if let Some(dropped) = dropped {
                links.recycle(dropped.packet.payload.into_data());
            }
        }
        let next = links.next_event();
        drop(links);
        if next.is_some_and(|next| before.is_none_or(|before| next < before)) {
            self.changed.notify_one();
        }
    }

    /// Delivers what the links deliver, until [`Shaper::stop`].
    pub(super) fn run(&self) {
        let mut arrived = Vec::with_capacity(BURST);
        let mut links = self.lock();
        while !links.stopped {
            let now = self.clock.now();
            links.collect(now, &mut arrived);
            if !arrived.is_empty() {
                drop(links);
                let mut unsent = 0;
                let at = self.clock.std(now);
                for packet in &mut arrived {
                    unsent += u64::from(!packet.payload.deliver(packet.ecn));
                }
                links = self.lock();
                links.unsent += unsent;
                if let Some(deliveries) = &mut links.deliveries {
                    deliveries.extend(arrived.iter().map(|packet| Delivery {
                        at,
                        direction: packet.payload.direction(),
                        bytes: packet.payload.len(),
                    }));
                }
                for packet in arrived.drain(..) {
                    links.recycle(packet.payload.into_data());
                }
                continue;
            }
            links = match links.next_event() {
                None => self
                    .changed
                    .wait(links)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let pause = next.saturating_since(self.clock.now());
                    self.changed
                        .wait_timeout(links, pause)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }

    /// What is wrong with the links from now on.
    pub(super) fn set_conditions(
        &self,
        up: LinkCondition,
        down: LinkCondition,
    ) -> Result<(), RelayError> {
        let link = |direction| move |source| RelayError::Link { direction, source };
        up.validate().map_err(link("up"))?;
        down.validate().map_err(link("down"))?;
        let now = self.clock.now();
        let mut links = self.lock();
        let set = links.up.set_condition(now, up);
        set.map_err(link("up"))?;
        let set = links.down.set_condition(now, down);
        set.map_err(link("down"))
    }

    /// From now on what passes to the links is what `filter` says, or everything.
    pub(super) fn set_filter(&self, filter: Option<Filter>) {
        self.lock().filter = filter;
    }

    /// From now on every delivery is recorded.
    pub(super) fn record_deliveries(&self) {
        self.lock().deliveries.get_or_insert_default();
    }

    /// The deliveries since the last call.
    pub(super) fn take_deliveries(&self) -> Vec<Delivery> {
        let mut links = self.lock();
        links
            .deliveries
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Ends [`Shaper::run`].
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn tally(&self) -> Tally {
        let links = self.lock();
        Tally {
            up: *links.up.counters(),
            down: *links.down.counters(),
            unsent: links.unsent,
            filtered: links.filtered,
        }
    }
}

impl<F: Carried> Links<F> {
    fn of(&mut self, direction: Direction) -> &mut Link<F> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Whether the filter drops a packet, which counts then.
    fn drops(&mut self, direction: Direction, packet: &[u8]) -> bool {
        let filter = self.filter.as_mut();
        let drops = filter.is_some_and(|passes| !passes(direction, packet));
        self.filtered += u64::from(drops);
        drops
    }

    fn next_event(&self) -> Option<Instant> {
        let events = [self.up.next_event(), self.down.next_event()];
        events.into_iter().flatten().min()
    }

    /// Moves what has arrived by `now` to `arrived`, a burst at most.
    fn collect(&mut self, now: Instant, arrived: &mut Vec<Packet<F>>) {
        for direction in [Direction::Up, Direction::Down] {
            let half = arrived.len() + BURST / 2;
            while arrived.len() < half
                && let Some(packet) = self.of(direction).poll(now)
            {
                arrived.push(packet);
            }
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if self.pool.len() < POOLED {
            self.pool.push(buffer);
        }
    }
}
