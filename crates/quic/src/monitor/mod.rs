//! Statistics that a connection counts itself, and its observer.

mod reports;

pub(crate) use reports::{Beginning, LastReported, TimerState};

use std::fmt;

use swiftwater_units::Instant;
use swiftwater_wire::PacketType;

use crate::lazy_box::LazyBox;
use crate::observe::{Observation, Observer};

use crate::stats::Totals;

/// The packet that is being processed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CurrentPacket {
    /// Bytes.
    pub(crate) size: usize,
    /// `None` until its header is read.
    pub(crate) packet_type: Option<PacketType>,
}

/// Counters, and the observer if there is one.
pub(crate) struct Monitor {
    pub(crate) stats: Totals,
    observer: Option<Box<dyn Observer>>,
    pub(crate) current_packet: CurrentPacket,
    /// What was reported last of state that changes in many places.
    pub(crate) last_reported: LazyBox<LastReported>,
    /// Flow control holds data back since then.
    pub(crate) blocked_since: Option<Instant>,
}

impl Monitor {
    pub(crate) fn new(observer: Option<Box<dyn Observer>>) -> Self {
        Self {
            stats: Totals::default(),
            observer,
            current_packet: CurrentPacket::default(),
            last_reported: LazyBox::default(),
            blocked_since: None,
        }
    }

    /// True if there is an observer, so that costly observations need not be made otherwise.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    pub(crate) fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.observe(now, observation);
        }
    }

    /// The current packet is dropped.
    pub(crate) fn dropped(&mut self, now: Instant, reason: &'static str) {
        self.stats.packets_dropped += 1.into();
        count_drop(self.stats.drops.need(), reason);
        let CurrentPacket { size, packet_type } = self.current_packet;
        self.observe(
            now,
            &Observation::PacketDropped {
                reason,
                size,
                packet_type,
            },
        );
    }

    /// A datagram of `len` bytes was sent.
    pub(crate) fn on_datagram_sent(&mut self, len: usize) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += (len as u64).into();
    }
}

/// Counts a reason. They are few, and literals of this crate.
fn count_drop(drops: &mut Vec<(&'static str, u64)>, reason: &'static str) {
    match drops.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => drops.push((reason, 1)),
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
