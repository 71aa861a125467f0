//! The cycle of pacing gains in `ProbeBW`: one phase to probe, one to drain, six to cruise.

use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::Instant;

use crate::bbr::gain::Gain;
use crate::bbr::random_below;

/// Phases of a cycle.
const PHASES: u64 = 8;
const PROBE: u64 = 0;
const DRAIN: u64 = 1;

/// The gains of the two phases that differ from one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CycleGains {
    pub(super) probe: Gain,
    pub(super) drain: Gain,
}

/// Position in the cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GainCycle {
    phase: u64,
    since: Instant,
}

/// What decides whether a phase ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseView {
    pub(super) now: Instant,
    pub(super) min_rtt: Duration,
    /// True if packets were lost since the last ACK.
    pub(super) has_losses: bool,
    /// True if as much is in flight as the probing gain asks for.
    pub(super) is_probed: bool,
    /// True if no more is in flight than the path alone holds.
    pub(super) is_drained: bool,
}

impl GainCycle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            phase: PROBE,
            since: now,
        }
    }

    /// A cycle begins, in any phase but the draining one: flows that started together don't probe
    /// together, and none begins by giving way.
    pub(super) fn restart(&mut self, now: Instant, rng: &mut dyn Rng) {
        self.phase = (PHASES - random_below(rng, PHASES - 1)) % PHASES;
        self.since = now;
    }

    pub(super) fn advance_if_due(&mut self, view: &PhaseView) {
        let elapsed = view.now.saturating_since(self.since) > view.min_rtt;
        let is_over = match self.phase {
            // Less than the target can mean that the path doesn't hold it: then losses end it.
            PROBE => elapsed && (view.has_losses || view.is_probed),
            DRAIN => elapsed || view.is_drained,
            _ => elapsed,
        };
        if is_over {
            self.phase = (self.phase + 1) % PHASES;
            self.since = view.now;
        }
    }

    pub(super) fn is_probing(&self) -> bool {
        self.phase == PROBE
    }

    pub(super) fn gain(&self, gains: &CycleGains) -> Gain {
        match self.phase {
            PROBE => gains.probe,
            DRAIN => gains.drain,
            _ => Gain::UNITY,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.phase {
            PROBE => "probe_bw_up",
            DRAIN => "probe_bw_down",
            _ => "probe_bw_cruise",
        }
    }
}
