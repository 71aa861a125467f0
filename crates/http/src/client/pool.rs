//! Pool of open connections: per origin one of HTTP/3, one of HTTP/2, and some idle ones of
//! HTTP/1.1.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::origin::Origin;
use super::quic::Http3Link;
use super::tcp::{TcpLink, TcpSender};
use crate::udp::SendRequest;

/// Origins with connections; beyond it the least recently used origin's connections are dropped.
const ORIGINS: usize = 1024;

/// Gauges and counters of a client's pool of connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PoolStats {
    /// HTTP/3 connections.
    pub http3: usize,
    /// HTTP/2 connections.
    pub http2: usize,
    /// Idle HTTP/1.1 connections.
    pub idle_http1: usize,
    /// Connections opened so far.
    pub opened: u64,
    /// Times that an open connection was used again.
    pub reused: u64,
}

impl PoolStats {
    /// The sums of both.
    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            http3: self.http3 + other.http3,
            http2: self.http2 + other.http2,
            idle_http1: self.idle_http1 + other.idle_http1,
            opened: self.opened + other.opened,
            reused: self.reused + other.reused,
        }
    }
}

#[derive(Default)]
struct Slot {
    http3: Option<Http3Link>,
    http2: Option<TcpLink>,
    http1: Vec<(TcpLink, Instant)>,
    /// The origin's server chose HTTP/1.1 on the last TCP connection.
    speaks_http1: bool,
    /// The count of uses of the pool when it was used last.
    used: u64,
}

impl Slot {
    fn sweep(&mut self, idle: Duration, now: Instant) {
        self.http3.take_if(|link| link.sender.is_closed());
        self.http2.take_if(|link| link.is_closed());
        self.http1
            .retain(|(link, since)| !link.is_closed() && now < *since + idle);
    }

    fn is_empty(&self) -> bool {
        self.http3.is_none() && self.http2.is_none() && self.http1.is_empty()
    }
}

#[derive(Default)]
struct State {
    /// At most [`ORIGINS`], so that chosen origins can't make it slow.
    slots: FxHashMap<Origin, Slot>,
    /// Uses of slots so far: their order, without a clock.
    uses: u64,
    opened: u64,
    reused: u64,
}

/// The connections of a client.
pub(super) struct Pool {
    state: Mutex<State>,
    idle_per_origin: usize,
    idle: Duration,
}

impl Pool {
    pub(super) fn new(idle_per_origin: usize, idle: Duration) -> Self {
        Self {
            state: Mutex::default(),
            idle_per_origin,
            idle,
        }
    }

    /// An empty pool with the same limits.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.idle_per_origin, self.idle)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The HTTP/3 connection of `origin`, if it accepts requests.
    pub(super) fn http3(&self, origin: &Origin) -> Option<Http3Link> {
        let state = &mut *self.lock();
        let slot = state.slots.get_mut(origin)?;
        slot.http3.take_if(|link| link.sender.is_closed());
        let link = slot.http3.clone()?;
        state.uses += 1;
        slot.used = state.uses;
        state.reused += 1;
        Some(link)
    }

    pub(super) fn has_http3(&self, origin: &Origin) -> bool {
        let state = self.lock();
        let link = state.slots.get(origin).and_then(|slot| slot.http3.as_ref());
        link.is_some_and(|link| !link.sender.is_closed())
    }

    /// The same connection for inspection: it does not count as reuse.
    pub(super) fn http3_sender(&self, origin: &Origin) -> Option<SendRequest> {
        let state = self.lock();
        let link = state.slots.get(origin)?.http3.as_ref()?;
        (!link.sender.is_closed()).then(|| link.sender.clone())
    }

    /// A connection over TCP: that of HTTP/2, or the HTTP/1.1 connection that became idle last.
    pub(super) fn tcp(&self, origin: &Origin) -> Option<TcpLink> {
        let now = Instant::now();
        let state = &mut *self.lock();
        let slot = state.slots.get_mut(origin)?;
        slot.sweep(self.idle, now);
        let link = match &slot.http2 {
            Some(link) => link.share(),
            None => slot.http1.pop().map(|(link, _)| link),
        }?;
        state.uses += 1;
        slot.used = state.uses;
        state.reused += 1;
        Some(link)
    }

    /// True if connections over TCP to `origin` carry one request at a time.
    pub(super) fn speaks_http1(&self, origin: &Origin) -> bool {
        let state = self.lock();
        state
            .slots
            .get(origin)
            .is_some_and(|slot| slot.speaks_http1)
    }

    /// Stores a new HTTP/3 connection. A connection that it replaces completes its requests.
    pub(super) fn add_http3(&self, origin: &Origin, link: Http3Link) {
        let mut state = self.lock();
        state.opened += 1;
        self.slot(&mut state, origin).http3 = Some(link);
    }

    /// Stops the use of the HTTP/3 connection of `origin` for new requests.
    pub(super) fn drop_http3(&self, origin: &Origin) {
        if let Some(slot) = self.lock().slots.get_mut(origin) {
            slot.http3 = None;
        }
    }

    /// Stops the use of the connections over TCP to `origin` for new requests.
    pub(super) fn drop_tcp(&self, origin: &Origin) {
        if let Some(slot) = self.lock().slots.get_mut(origin) {
            slot.http2 = None;
            slot.http1.clear();
        }
    }

    /// Counts a new connection over TCP, and stores it if it can be shared.
    pub(super) fn add_tcp(&self, origin: &Origin, link: &TcpLink) {
        let mut state = self.lock();
        state.opened += 1;
        let slot = self.slot(&mut state, origin);
        slot.speaks_http1 = matches!(link.sender, TcpSender::Http1(_));
        if let Some(shared) = link.share() {
            slot.http2 = Some(shared);
        }
    }

    /// Stores an idle HTTP/1.1 connection if there is room.
    pub(super) fn put_http1(&self, origin: &Origin, link: TcpLink) {
        let now = Instant::now();
        let mut state = self.lock();
        let slot = self.slot(&mut state, origin);
        slot.sweep(self.idle, now);
        if slot.http1.len() < self.idle_per_origin {
            slot.http1.push((link, now));
        }
    }

    pub(super) fn stats(&self) -> PoolStats {
        let now = Instant::now();
        let mut state = self.lock();
        let mut stats = PoolStats {
            opened: state.opened,
            reused: state.reused,
            ..PoolStats::default()
        };
        for slot in state.slots.values_mut() {
            slot.sweep(self.idle, now);
            stats.http3 += usize::from(slot.http3.is_some());
            stats.http2 += usize::from(slot.http2.is_some());
            stats.idle_http1 += slot.http1.len();
        }
        stats
    }

    /// Drops all connections; those with requests in progress complete them.
    pub(super) fn clear(&self) {
        self.lock().slots.clear();
    }

    fn slot<'a>(&self, state: &'a mut State, origin: &Origin) -> &'a mut Slot {
        if !state.slots.contains_key(origin) && state.slots.len() >= ORIGINS {
            let now = Instant::now();
            for slot in state.slots.values_mut() {
                slot.sweep(self.idle, now);
            }
            state.slots.retain(|_, slot| !slot.is_empty());
            if state.slots.len() >= ORIGINS {
                let oldest = state.slots.iter().min_by_key(|(_, slot)| slot.used);
                if let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) {
                    state.slots.remove(&oldest);
                }
            }
        }
        state.uses += 1;
        let slot = state.slots.entry(origin.clone()).or_default();
        slot.used = state.uses;
        slot
    }
}
