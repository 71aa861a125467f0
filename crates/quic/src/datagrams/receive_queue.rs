//! Datagrams that wait to be read, oldest first.

use std::collections::VecDeque;

use super::{ReceivedDatagram, cost};

/// Datagrams that wait to be read.
#[derive(Debug, Default)]
pub(super) struct ReceiveQueue {
    datagrams: VecDeque<ReceivedDatagram>,
    bytes: usize,
}

impl ReceiveQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Drops the oldest datagrams until there is room for `cost` bytes in `capacity`; returns how many.
    pub(super) fn make_room(&mut self, cost: usize, capacity: usize) -> u64 {
        let mut dropped = 0;
        while self.bytes + cost > capacity && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }

    /// Adds a datagram.
    pub(super) fn push(&mut self, datagram: ReceivedDatagram) {
        self.bytes += cost(&datagram.data);
        self.datagrams.push_back(datagram);
    }

    /// Takes the oldest one out.
    pub(super) fn pop(&mut self) -> Option<ReceivedDatagram> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= cost(&datagram.data);
        Some(datagram)
    }
}
