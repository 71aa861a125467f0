//! Packets waiting for transmission.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

use crate::packet::{Ecn, Packet};

/// A waiting packet.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: Packet<P>,
    /// Bytes on the wire.
    pub(crate) size: u32,
    /// Time of arrival.
    pub(crate) since: Instant,
    /// The queue has marked it CE.
    pub(crate) marked: bool,
}

impl<P> Waiting<P> {
    pub(crate) fn new(packet: Packet<P>, size: u32, since: Instant) -> Self {
        Self {
            packet,
            size,
            since,
            marked: false,
        }
    }

    /// Signals congestion by a CE mark; false if the packet must be dropped instead.
    pub(crate) fn mark(&mut self) -> bool {
        if matches!(self.packet.ecn, Ecn::Ect0 | Ecn::Ect1) {
            self.packet.ecn = Ecn::Ce;
            self.marked = true;
        }
        self.packet.ecn.is_capable()
    }

    /// Its waiting time.
    pub(crate) fn sojourn(&self, now: Instant) -> Duration {
        now.saturating_since(self.since)
    }
}

/// Waiting packets, first in, first out.
#[derive(Debug)]
pub(crate) struct Backlog<P> {
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
}

impl<P> Backlog<P> {
    pub(crate) fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn push(&mut self, item: Waiting<P>) {
        self.bytes += u64::from(item.size);
        self.packets.push_back(item);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let item = self.packets.pop_front()?;
        self.bytes -= u64::from(item.size);
        Some(item)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Arrival time of the first packet.
    pub(crate) fn head_since(&self) -> Option<Instant> {
        self.packets.front().map(|first| first.since)
    }

    /// Waiting time of the first packet; zero if there is none.
    pub(crate) fn head_sojourn(&self, now: Instant) -> Duration {
        let since = self.head_since();
        since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}
