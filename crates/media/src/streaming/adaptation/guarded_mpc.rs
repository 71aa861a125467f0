//! Model predictive control that does not bet the buffer on a prediction.

use swiftwater_units::Bandwidth;

use super::{Adaptation, Mpc, Situation};

/// [`Mpc`], limited to levels whose next chunk arrives before the buffer is empty even if the prediction is
/// over-estimated as much as the worst one of the last five chunks; the lowest level always may be requested. The project's own.
///
/// RobustMPC discounts every prediction by its largest error, also while half a minute is buffered and an error does no
/// harm. Here the search uses the prediction as it is, and the error only limits what can stall. Without errors this is [`Mpc`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuardedMpc {
    search: Mpc,
}

impl GuardedMpc {
    /// Limits the levels that `search` chooses.
    pub fn new(search: Mpc) -> Self {
        Self { search }
    }
}

impl Adaptation for GuardedMpc {
    fn lookahead(&self) -> usize {
        self.search.lookahead()
    }

    fn choose(&mut self, situation: &Situation<'_>) -> usize {
        let level = self.search.choose(situation);
        let Some((predicted, chunk)) = situation.predicted.zip(situation.upcoming.first()) else {
            return level;
        };
        let least: Bandwidth = predicted.scaled(1.0 / (1.0 + situation.over_estimation.max(0.0)));
        let is_safe = |level: &usize| {
            !least.is_zero() && least.time_to_send(chunk.bytes_at(*level)) <= situation.buffered
        };
        (0..=level).rev().find(is_safe).unwrap_or(0)
    }
}
