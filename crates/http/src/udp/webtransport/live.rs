//! One session as it stands: what waits for its application, and who waits for it.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use swiftwater_units::{Dir, StreamId};

use super::error::SessionEnd;
use super::limits::SessionLimits;

/// What keeping a datagram costs beside its bytes.
const DATAGRAM_OVERHEAD: usize = 64;

/// What the task at the session's request is to do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// Ask the peer to end the session soon.
    Drain,
    /// Close it with the application's code and reason.
    Close(u32, String),
}

/// A session that the application holds, or has not answered yet.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Streams that nobody has accepted yet.
    waiting: [VecDeque<StreamId>; 2],
    pub(super) acceptors: [Vec<Waker>; 2],
    datagrams: VecDeque<Bytes>,
    datagram_bytes: usize,
    /// Datagrams that made room for newer ones.
    pub(super) datagrams_dropped: u64,
    pub(super) datagram_readers: Vec<Waker>,
    pub(super) end: Option<SessionEnd>,
    pub(super) end_waiters: Vec<Waker>,
    /// One of the ends wants the session to end soon.
    pub(super) draining: bool,
    pub(super) drain_waiters: Vec<Waker>,
    pub(super) orders: VecDeque<Order>,
    pub(super) driver: Option<Waker>,
    /// A handle of it exists.
    pub(super) is_held: bool,
    /// A task is at its request.
    pub(super) is_driven: bool,
}

impl Live {
    /// A stream of the peer came; false if there is no room for it.
    pub(super) fn push_stream(&mut self, id: StreamId, limits: &SessionLimits) -> bool {
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        let room = waiting < limits.max_waiting_streams;
        if room {
            self.waiting[id.dir() as usize].push_back(id);
        }
        room
    }

    /// The next stream to accept.
    pub(super) fn pop_stream(&mut self, dir: Dir) -> Option<StreamId> {
        self.waiting[dir as usize].pop_front()
    }

    /// A datagram came; the oldest make room for it.
    pub(super) fn push_datagram(&mut self, payload: Bytes, limits: &SessionLimits) {
        self.datagram_bytes += payload.len() + DATAGRAM_OVERHEAD;
        self.datagrams.push_back(payload);
        while self.datagram_bytes > limits.max_waiting_datagrams {
            self.pop_datagram();
            self.datagrams_dropped += 1;
        }
    }

    /// The oldest datagram.
    pub(super) fn pop_datagram(&mut self) -> Option<Bytes> {
        let payload = self.datagrams.pop_front()?;
        self.datagram_bytes -= payload.len() + DATAGRAM_OVERHEAD;
        Some(payload)
    }

    /// Notes why the session is over, unless that is known; what waits is forgotten and everybody
    /// hears of it.
    pub(super) fn finish(&mut self, end: SessionEnd, wakers: &mut Vec<Waker>) {
        self.end.get_or_insert(end);
        self.waiting = Default::default();
        self.datagrams.clear();
        self.datagram_bytes = 0;
        for waiting in &mut self.acceptors {
            wakers.append(waiting);
        }
        wakers.append(&mut self.datagram_readers);
        wakers.append(&mut self.end_waiters);
        wakers.append(&mut self.drain_waiters);
        wakers.extend(self.driver.take());
    }

    /// One of the ends wants the session to end soon.
    pub(super) fn drain(&mut self, wakers: &mut Vec<Waker>) {
        self.draining = true;
        wakers.append(&mut self.drain_waiters);
    }

    /// Gives the task at the request something to do.
    pub(super) fn order(&mut self, order: Order, wakers: &mut Vec<Waker>) {
        if !self.orders.contains(&order) {
            self.orders.push_back(order);
            wakers.extend(self.driver.take());
        }
    }
}

/// Notes that the task of `waker` waits.
pub(super) fn remember(waiting: &mut Vec<Waker>, waker: &Waker) {
    if !waiting.iter().any(|each| each.will_wake(waker)) {
        waiting.push(waker.clone());
    }
}
