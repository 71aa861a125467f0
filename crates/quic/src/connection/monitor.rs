//! Statistics that a connection counts itself, and its observer.

use std::fmt;

use swiftwater_units::Instant;
use swiftwater_wire::PacketType;

use crate::lazy_box::LazyBox;
use crate::observe::{Observation, Observer};

use super::observations::LastReported;
use super::stats::Totals;
use crate::frame_counts::FrameCounter;

/// The packet that is being processed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentPacket {
    /// Bytes.
    pub(super) size: usize,
    /// `None` until its header is read.
    pub(super) packet_type: Option<PacketType>,
}

/// Counters, and the observer if there is one.
pub(super) struct Monitor {
    pub(super) stats: Totals,
    /// Frames sent; taken while a packet is written.
    pub(super) frames_sent: Option<Box<FrameCounter>>,
    observer: Option<Box<dyn Observer>>,
    pub(super) current_packet: CurrentPacket,
    /// What was reported last of state that changes in many places.
    pub(super) last_reported: LazyBox<LastReported>,
    /// Flow control holds data back since then.
    pub(super) blocked_since: Option<Instant>,
}

impl Monitor {
    pub(super) fn new(observer: Option<Box<dyn Observer>>) -> Self {
        Self {
            stats: Totals::default(),
            frames_sent: Some(Box::default()),
            observer,
            current_packet: CurrentPacket::default(),
            last_reported: LazyBox::default(),
            blocked_since: None,
        }
    }

    /// True if there is an observer, so that costly observations need not be made otherwise.
    pub(super) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    pub(super) fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.observe(now, observation);
        }
    }

    /// The current packet is dropped.
    pub(super) fn dropped(&mut self, now: Instant, reason: &'static str) {
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
    pub(super) fn on_datagram_sent(&mut self, len: usize) {
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
