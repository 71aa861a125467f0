//! Losses in Startup: whether they show that the pipe is full
//! (draft-ietf-ccwg-bbr, section 5.3.1.3).

use super::policy::StartupLossUnit;
use crate::sample::LossBatch;

/// Counts the losses of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StartupLosses {
    unit: StartupLossUnit,
    enough: u64,
    seen: u64,
}

impl StartupLosses {
    pub(super) fn new(unit: StartupLossUnit, enough: u64) -> Self {
        Self {
            unit,
            enough,
            seen: 0,
        }
    }

    pub(super) fn on_loss(&mut self, loss: &LossBatch<'_>) {
        self.seen = self.seen.saturating_add(match self.unit {
            StartupLossUnit::Range => loss.lost_ranges,
            StartupLossUnit::Detection => 1,
        });
    }

    /// An ACK brought a marked packet, which counts as a loss.
    pub(super) fn on_marks(&mut self) {
        self.seen = self.seen.saturating_add(1);
    }

    /// A round of recovery ended. True if it had many losses; `is_too_high` says that they were a
    /// large share as well. A burst that is lost at once is noise.
    pub(super) fn on_round(&mut self, is_too_high: bool) -> bool {
        std::mem::take(&mut self.seen) >= self.enough && is_too_high
    }
}
