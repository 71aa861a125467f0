//! State of one open session: what its application has not read yet, and the tasks that wait.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use swiftwater_net::quic::DatagramFate;
use swiftwater_units::{Dir, StreamId};

use super::error::SessionEnd;
use super::limits::SessionLimits;

/// Memory of a datagram in addition to its bytes.
const DATAGRAM_OVERHEAD: usize = 64;

/// Most fates of datagrams that wait to be read, the newest: 96 kB.
const MAX_WAITING_FATES: usize = 4096;

/// Pending actions of the task at the session's request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// Ask the peer to end the session soon.
    Drain,
    /// Close it with the application's code and reason.
    Close(u32, String),
}

/// A session that the application has a handle of, or has not answered yet.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// Streams not yet accepted by the application.
    waiting: [VecDeque<StreamId>; 2],
    pub(super) acceptors: [Vec<Waker>; 2],
    datagrams: VecDeque<Bytes>,
    datagram_bytes: usize,
    /// Datagrams dropped to make room for newer ones.
    pub(super) datagrams_dropped: u64,
    pub(super) datagram_readers: Vec<Waker>,
    datagram_fates: VecDeque<(u64, DatagramFate)>,
    pub(super) fate_readers: Vec<Waker>,
    pub(super) end: Option<SessionEnd>,
    pub(super) end_waiters: Vec<Waker>,
    /// One of the ends has asked for the end of the session.
    pub(super) draining: bool,
    pub(super) drain_waiters: Vec<Waker>,
    pub(super) orders: VecDeque<Order>,
    pub(super) driver: Option<Waker>,
    /// A handle of it exists.
    pub(super) is_held: bool,
    /// A task serves its request.
    pub(super) is_driven: bool,
}

impl SessionState {
    /// Adds a stream of the peer; false if there is no room for it.
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

    /// Adds a datagram; the oldest are dropped to make room.
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

    /// Adds the fate of a datagram; the oldest is dropped if there are too many.
    pub(super) fn push_datagram_fate(&mut self, key: u64, fate: DatagramFate) {
        if self.datagram_fates.len() >= MAX_WAITING_FATES {
            self.datagram_fates.pop_front();
        }
        self.datagram_fates.push_back((key, fate));
    }

    /// The oldest fate of a datagram.
    pub(super) fn pop_datagram_fate(&mut self) -> Option<(u64, DatagramFate)> {
        self.datagram_fates.pop_front()
    }

    /// Records why the session ended, unless it is recorded; clears the buffers and wakes all
    /// waiting tasks.
    pub(super) fn finish(&mut self, end: SessionEnd, wakers: &mut Vec<Waker>) {
        self.end.get_or_insert(end);
        self.waiting = Default::default();
        self.datagrams.clear();
        self.datagram_bytes = 0;
        self.datagram_fates.clear();
        for waiting in &mut self.acceptors {
            wakers.append(waiting);
        }
        wakers.append(&mut self.datagram_readers);
        wakers.append(&mut self.fate_readers);
        wakers.append(&mut self.end_waiters);
        wakers.append(&mut self.drain_waiters);
        wakers.extend(self.driver.take());
    }

    /// One of the ends has asked for the end of the session.
    pub(super) fn drain(&mut self, wakers: &mut Vec<Waker>) {
        self.draining = true;
        wakers.append(&mut self.drain_waiters);
    }

    /// Gives an action to the task of the request.
    pub(super) fn order(&mut self, order: Order, wakers: &mut Vec<Waker>) {
        if !self.orders.contains(&order) {
            self.orders.push_back(order);
            wakers.extend(self.driver.take());
        }
    }
}

/// Stores the waker of a waiting task.
pub(super) fn store_waker(waiting: &mut Vec<Waker>, waker: &Waker) {
    if !waiting.iter().any(|each| each.will_wake(waker)) {
        waiting.push(waker.clone());
    }
}
