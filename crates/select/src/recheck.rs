//! When arms are compared again although nothing seems to have changed: what the network does to an arm that is not in use
//! can't be seen from the one that is.

use swiftwater_units::Instant;

use crate::blocked::doubled;
use crate::parameters::Parameters;

/// The time of the next comparison.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recheck {
    due: Option<Instant>,
    unchanged: u32,
}

impl Recheck {
    /// Notes a comparison, or that an arm was left: the next one is due after a while, later each time that nothing
    /// changed.
    pub(crate) fn compared(&mut self, now: Instant, changed: bool, parameters: &Parameters) {
        self.unchanged = if changed {
            0
        } else {
            self.unchanged.saturating_add(1)
        };
        let after = doubled(parameters.recheck, self.unchanged, parameters.recheck_max);
        self.due = Some(now + after);
    }

    /// True if it is time.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| now >= due)
    }
}
