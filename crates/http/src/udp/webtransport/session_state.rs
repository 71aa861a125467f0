//! State of one open session: what its application has not read yet, and the tasks that wait.

use std::collections::VecDeque;
use std::task::Waker;

use swiftwater_units::{Dir, StreamId};

use super::error::SessionEnd;
use super::limits::SessionLimits;
use crate::udp::datagram_buffer::DatagramBuffer;

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
    pub(super) datagrams: DatagramBuffer,
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

    /// Records why the session ended, unless it is recorded; clears the buffers and wakes all
    /// waiting tasks.
    pub(super) fn finish(&mut self, end: SessionEnd, wakers: &mut Vec<Waker>) {
        self.end.get_or_insert(end);
        self.waiting = Default::default();
        self.datagrams.finish(wakers);
        for waiting in &mut self.acceptors {
            wakers.append(waiting);
        }
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
