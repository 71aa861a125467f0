//! The two links of a relay, and the thread that delivers what comes out of them.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use swiftwater_link::{Ecn, Link, Packet, Payload, flow_key};
use swiftwater_quic::EcnCodepoint;
use swiftwater_units::Instant;

use super::{RelayConfig, RelayCounters, RelayError};
use crate::clock::Clock;
use crate::socket::{Parcel, Socket};

/// Buffers kept for reuse.
const POOLED: usize = 4096;

/// Packets delivered before the links are looked at again.
const BURST: usize = 64;

/// A client, and how to reach it and the server on its behalf.
pub(super) struct Flow {
    pub(super) client: SocketAddr,
    /// The address that the client sends to.
    pub(super) local_ip: Option<IpAddr>,
    listener: Arc<Socket>,
    upstream: Mutex<Arc<Socket>>,
    server: SocketAddr,
    /// Stands for the flow where queues separate flows.
    key: u64,
    /// When something last passed, in nanoseconds of the relay's clock.
    active: AtomicU64,
}

impl Flow {
    pub(super) fn new(
        client: SocketAddr,
        local_ip: Option<IpAddr>,
        listener: Arc<Socket>,
        upstream: Arc<Socket>,
        server: SocketAddr,
    ) -> Self {
        Self {
            client,
            local_ip,
            listener,
            upstream: Mutex::new(upstream),
            server,
            key: flow_key(client, server),
            active: AtomicU64::new(0),
        }
    }

    /// From now on the server sees the client at this socket.
    pub(super) fn set_upstream(&self, socket: Arc<Socket>) {
        *self.upstream() = socket;
    }

    fn upstream(&self) -> MutexGuard<'_, Arc<Socket>> {
        self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When something last passed.
    pub(super) fn active(&self) -> Instant {
        Instant::from_nanos(self.active.load(Ordering::Relaxed))
    }
}

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// A datagram on a link.
struct Frame {
    flow: Arc<Flow>,
    direction: Direction,
    data: Vec<u8>,
}

impl Payload for Frame {
    fn len(&self) -> usize {
        self.data.len()
    }

    fn corrupt(&mut self, at: usize, mask: u8) {
        self.data.corrupt(at, mask);
    }

    fn flow(&self) -> u64 {
        self.flow.key
    }

    fn duplicate(&self) -> Self {
        Self {
            flow: Arc::clone(&self.flow),
            direction: self.direction,
            data: self.data.clone(),
        }
    }
}

impl Frame {
    /// Sends the datagram on; false if the socket did not take it.
    fn deliver(&self, ecn: Ecn) -> bool {
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let (destination, source_ip) = match self.direction {
            Direction::Up => (self.flow.server, None),
            Direction::Down => (self.flow.client, self.flow.local_ip),
        };
        let parcel = Parcel {
            destination,
            source_ip,
            ecn,
            contents: &self.data,
            segment_size: None,
        };
        let sent = match self.direction {
            Direction::Up => self.flow.upstream().try_send(&parcel),
            Direction::Down => self.flow.listener.try_send(&parcel),
        };
        if let Err(error) = &sent {
            tracing::debug!(%error, to = %destination, "relayed datagram refused");
        }
        sent.is_ok()
    }
}

struct Links {
    up: Link<Frame>,
    down: Link<Frame>,
    /// Buffers to use again.
    pool: Vec<Vec<u8>>,
    counters: RelayCounters,
    stopped: bool,
}

/// Both links and the way to wake their thread.
pub(super) struct Shaper {
    links: Mutex<Links>,
    changed: Condvar,
    pub(super) clock: Clock,
}

impl Shaper {
    pub(super) fn new(config: &RelayConfig) -> Result<Self, RelayError> {
        let clock = Clock::start();
        let now = clock.now();
        // Both links draw from the seed, but not the same numbers.
        let link = |direction, config: &swiftwater_link::LinkConfig, seed| {
            Link::new(config.clone(), seed, now)
                .map_err(|source| RelayError::Link { direction, source })
        };
        Ok(Self {
            links: Mutex::new(Links {
                up: link("up", &config.up, config.seed)?,
                down: link("down", &config.down, !config.seed)?,
                pool: Vec::new(),
                counters: RelayCounters::default(),
                stopped: false,
            }),
            changed: Condvar::new(),
            clock,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts datagrams that have just arrived on a link.
    pub(super) fn enqueue<'a>(
        &self,
        direction: Direction,
        datagrams: impl Iterator<Item = (Arc<Flow>, Option<EcnCodepoint>, &'a mut [u8])>,
    ) {
        let now = self.clock.now();
        let mut links = self.lock();
        let before = links.next_event();
        for (flow, ecn, datagram) in datagrams {
            flow.active.store(now.as_nanos(), Ordering::Relaxed);
            let mut data = links.pool.pop().unwrap_or_default();
            data.clear();
            data.extend_from_slice(datagram);
            let ecn = match ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            };
            let frame = Frame {
                flow,
                direction,
                data,
            };
            let dropped = links
                .of(direction)
                .enqueue(now, Packet::with_ecn(frame, ecn));
            if let Some(dropped) = dropped {
                links.recycle(dropped.packet.payload.data);
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
                let unsent = arrived
                    .iter()
                    .filter(|packet| !packet.payload.deliver(packet.ecn));
                let unsent = unsent.count() as u64;
                links = self.lock();
                links.counters.unsent += unsent;
                for packet in arrived.drain(..) {
                    links.recycle(packet.payload.data);
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

    /// Ends [`Shaper::run`].
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn counters(&self) -> RelayCounters {
        let links = self.lock();
        RelayCounters {
            up: *links.up.counters(),
            down: *links.down.counters(),
            ..links.counters
        }
    }

    /// Changes the counters that don't come from the links.
    pub(super) fn note(&self, change: impl FnOnce(&mut RelayCounters)) {
        change(&mut self.lock().counters);
    }
}

impl Links {
    fn of(&mut self, direction: Direction) -> &mut Link<Frame> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let events = [self.up.next_event(), self.down.next_event()];
        events.into_iter().flatten().min()
    }

    /// Moves what has arrived by `now` to `arrived`, a burst at most.
    fn collect(&mut self, now: Instant, arrived: &mut Vec<Packet<Frame>>) {
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
