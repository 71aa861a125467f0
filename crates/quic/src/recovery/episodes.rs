//! Congestion episodes (RFC 9002, section 7.3.2): which losses and marks are one signal, when the
//! recovery period ends, and which loss episodes were spurious as a whole.
//!
//! Packets carry the `period` current when they were sent. The period grows whenever an episode
//! opens, so "sent after the recovery period began" is exact even where times tie.

use std::time::Duration;

use swiftwater_congestion::EpisodeId;
use swiftwater_units::Instant;

use crate::idle_memory::IdleMemory;

/// Episodes kept for refutation; older ones are discarded first.
const MAX_TRACKED: usize = 8;

/// A loss episode that may still turn out to be spurious.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    id: EpisodeId,
    /// Packets declared lost and not acknowledged since.
    outstanding: u64,
    /// True once a packet of it was acknowledged after all.
    doubted: bool,
    discard_at: Instant,
}

/// Episodes of one path.
#[derive(Debug)]
pub(super) struct Episodes {
    period: u64,
    /// Packets with a smaller period were sent to an address used before.
    address_start: u64,
    last: EpisodeId,
    /// First period of packets sent after the last episode opened; `None` before the first episode
    /// and after one that no longer counts.
    recovery_start: Option<u64>,
    in_recovery: bool,
    /// One packet may leave regardless of the window, to speed up the first retransmission.
    free_packet: bool,
    tracked: Vec<Tracked>,
}

impl IdleMemory for Episodes {
    fn release_idle_memory(&mut self) {
        let Self {
            period: _,
            address_start: _,
            last: _,
            recovery_start: _,
            in_recovery: _,
            free_packet: _,
            tracked,
        } = self;
        tracked.shrink_to_fit();
    }
}

impl Episodes {
    pub(super) fn new() -> Self {
        Self {
            period: 0,
            address_start: 0,
            last: EpisodeId(0),
            recovery_start: None,
            in_recovery: false,
            free_packet: false,
            tracked: Vec::new(),
        }
    }

    /// The peer's address changed: what was sent before says nothing about the path any more. Episodes
    /// keep their numbering.
    pub(super) fn reset(&mut self) {
        self.period = self.period.saturating_add(1);
        self.address_start = self.period;
        self.close();
        self.tracked.clear();
    }

    /// What a packet sent now has to carry.
    pub(super) fn period(&self) -> u64 {
        self.period
    }

    /// True if a packet of that period was sent to the present address.
    pub(super) fn is_current(&self, period: u64) -> bool {
        period >= self.address_start
    }

    /// The episode that opened last; number 0 before the first.
    pub(super) fn last(&self) -> EpisodeId {
        self.last
    }

    pub(super) fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    /// True if a packet of that period was sent after the last episode opened.
    pub(super) fn sent_after_start(&self, period: u64) -> bool {
        self.recovery_start.is_none_or(|start| period >= start)
    }

    pub(super) fn has_free_packet(&self) -> bool {
        self.free_packet
    }

    pub(super) fn on_sent(&mut self) {
        self.free_packet = false;
    }

    /// `packets` were lost, the newest of them sent in `newest_epoch`. Their episode, and whether
    /// it is a new one.
    pub(super) fn on_loss(
        &mut self,
        now: Instant,
        newest_epoch: u64,
        packets: u64,
        memory: Duration,
    ) -> (EpisodeId, bool) {
        let discard_at = now + memory;
        let opened = self.sent_after_start(newest_epoch);
        if opened {
            self.open();
            if self.tracked.len() == MAX_TRACKED {
                self.tracked.remove(0);
            }
            self.tracked.push(Tracked {
                id: self.last,
                outstanding: packets,
                doubted: false,
                discard_at,
            });
        } else if let Some(episode) = self.tracked.iter_mut().find(|t| t.id == self.last) {
            episode.outstanding = episode.outstanding.saturating_add(packets);
            episode.discard_at = discard_at;
        }
        (self.last, opened)
    }

    /// CE marks were reported; the newest packet acknowledged was sent in `newest_epoch`. No
    /// episode up to here may be undone any more: the network did signal congestion.
    pub(super) fn on_ce(&mut self, newest_epoch: u64) -> (EpisodeId, bool) {
        self.tracked.clear();
        let opened = self.sent_after_start(newest_epoch);
        if opened {
            self.open();
        }
        (self.last, opened)
    }

    /// Persistent congestion: the recovery period is void and nothing is undone later.
    pub(super) fn on_persistent_congestion(&mut self) {
        self.tracked.clear();
        self.close();
    }

    /// A packet declared lost in `episode` was acknowledged after all.
    pub(super) fn on_late_ack(&mut self, episode: EpisodeId) {
        if let Some(tracked) = self.tracked.iter_mut().find(|t| t.id == episode) {
            tracked.outstanding = tracked.outstanding.saturating_sub(1);
            tracked.doubted = true;
        }
    }

    /// Takes an episode of which every packet has arrived, newest first. True beside it if it
    /// closed the recovery period.
    pub(super) fn take_refuted(&mut self) -> Option<(EpisodeId, bool)> {
        let at = self
            .tracked
            .iter()
            .rposition(|t| t.doubted && t.outstanding == 0)?;
        let id = self.tracked.remove(at).id;
        let closed = id == self.last && self.in_recovery;
        if id == self.last {
            self.close();
        }
        Some((id, closed))
    }

    /// An ACK arrived, its newest packet sent in `newest_epoch`. True if it ends the recovery
    /// period.
    pub(super) fn on_ack(&mut self, newest_epoch: u64) -> bool {
        let ended = self.in_recovery && self.sent_after_start(newest_epoch);
        if ended {
            self.in_recovery = false;
            self.free_packet = false;
        }
        ended
    }

    /// Drops episodes too old for their packets to be expected.
    pub(super) fn discard(&mut self, now: Instant) {
        self.tracked.retain(|t| t.discard_at >= now);
    }

    fn open(&mut self) {
        self.last = EpisodeId(self.last.0.saturating_add(1));
        self.period = self.period.saturating_add(1);
        self.recovery_start = Some(self.period);
        self.in_recovery = true;
        self.free_packet = true;
    }

    fn close(&mut self) {
        self.recovery_start = None;
        self.in_recovery = false;
        self.free_packet = false;
    }
}
