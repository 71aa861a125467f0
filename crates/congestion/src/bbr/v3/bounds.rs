//! The bounds that losses and marks set: a cautious one for the short term, discarded at each probe
//! for bandwidth, and one for the long term, which probes move.

use swiftwater_units::{Bandwidth, ByteCount};

use super::latest::LatestSignals;
use crate::bbr::gain::Gain;
use crate::growth::MAX_WINDOW;

/// Doublings of the growth of the long-term bound, at most.
const MAX_DOUBLINGS: u32 = 30;

/// `bw_shortterm` and `inflight_shortterm`; `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ShortTerm {
    pub(super) bandwidth: Option<Bandwidth>,
    pub(super) inflight: Option<ByteCount>,
}

impl ShortTerm {
    /// Losses in the round that ended: down to what it delivered, but not below `beta` times the
    /// bounds so far.
    pub(super) fn on_loss_round(
        &mut self,
        latest: &LatestSignals,
        beta: Gain,
        max_bandwidth: Bandwidth,
        cwnd: ByteCount,
    ) {
        let bandwidth = beta.of_rate(self.bandwidth.unwrap_or(max_bandwidth));
        let inflight = beta.of_bytes(self.inflight.unwrap_or(cwnd));
        self.bandwidth = Some(latest.bandwidth().max(bandwidth));
        self.inflight = Some(latest.inflight().max(inflight));
    }

    /// At most `limit` in flight.
    pub(super) fn limit_inflight(&mut self, limit: ByteCount) {
        self.inflight = Some(self.inflight.map_or(limit, |bound| bound.min(limit)));
    }

    /// No bound lower than that of `other`.
    pub(super) fn raise_to(&mut self, other: &Self) {
        self.bandwidth = higher(self.bandwidth, other.bandwidth);
        self.inflight = higher(self.inflight, other.inflight);
    }
}

/// `inflight_longterm`, and how it grows while a probe fills it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LongTerm {
    inflight: Option<ByteCount>,
    /// Rounds for which the probe has grown the bound.
    doublings: u32,
    acked: ByteCount,
    /// Bytes acknowledged for which the bound grows by a packet; `None` while it doesn't.
    acked_per_packet: Option<ByteCount>,
}

impl LongTerm {
    pub(super) fn inflight(&self) -> Option<ByteCount> {
        self.inflight
    }

    pub(super) fn set(&mut self, inflight: ByteCount) {
        self.inflight = Some(inflight.min(MAX_WINDOW));
    }

    /// Not lower than `other`.
    pub(super) fn raise_to(&mut self, other: Option<ByteCount>) {
        self.inflight = higher(self.inflight, other);
    }

    /// This much was in flight without too many losses.
    pub(super) fn on_safe(&mut self, tx_in_flight: ByteCount) {
        if self.inflight.is_some_and(|bound| tx_in_flight > bound) {
            self.set(tx_in_flight);
        }
    }

    /// What remains if `headroom` (a share) is left to others, but not less than `least`.
    pub(super) fn with_headroom(
        &self,
        headroom: Gain,
        packet: ByteCount,
        least: ByteCount,
    ) -> Option<ByteCount> {
        let bound = self.inflight?;
        let free = headroom.of_bytes(bound).max(packet);
        Some((bound - free).max(least))
    }

    /// The bound is about to be probed.
    pub(super) fn begin_refill(&mut self) {
        self.doublings = 0;
        self.acked = ByteCount::ZERO;
    }

    /// The bound no longer grows.
    pub(super) fn stop_growing(&mut self) {
        self.acked_per_packet = None;
    }

    /// The bound grows by 1, 2, 4 ... packets per round, a step more from now on.
    pub(super) fn grow_faster(&mut self, cwnd: ByteCount, packet: ByteCount) {
        let growth = 1_u64 << self.doublings;
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        let per_packet = ByteCount::new(cwnd.get() / growth);
        self.acked_per_packet = Some(per_packet.max(packet));
    }

    /// `acked` bytes were acknowledged while the window was filled up to the bound.
    pub(super) fn on_filled(&mut self, acked: ByteCount, packet: ByteCount) {
        let (Some(bound), Some(per_packet)) = (self.inflight, self.acked_per_packet) else {
            return;
        };
        self.acked += acked;
        let steps = self.acked.get() / per_packet.get().max(1);
        self.acked -= per_packet.times(steps);
        self.set(bound + packet.times(steps));
    }
}

/// The higher of two bounds; `None` is no bound.
fn higher<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.zip(b).map(|(a, b)| a.max(b))
}
