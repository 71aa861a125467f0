//! Packets that wait until the transmitter turns to them.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

use crate::packet::{Ecn, Packet};

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: Packet<P>,
    /// Bytes on the wire.
    pub(crate) size: u32,
    /// When it came.
    pub(crate) since: Instant,
    /// The queue has set its CE mark.
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

    /// Tells the packet's sender of congestion by a mark; false if only a drop can tell it.
    pub(crate) fn mark(&mut self) -> bool {
        if matches!(self.packet.ecn, Ecn::Ect0 | Ecn::Ect1) {
            self.packet.ecn = Ecn::Ce;
            self.marked = true;
        }
        self.packet.ecn.is_capable()
    }

    /// How long it has waited.
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

    /// When the first packet came.
    pub(crate) fn head_since(&self) -> Option<Instant> {
        self.packets.front().map(|first| first.since)
    }

    /// How long the first packet has waited; zero if there is none.
    pub(crate) fn head_sojourn(&self, now: Instant) -> Duration {
        let since = self.head_since();
        since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}
