//! The network monitor: watches the score of a network and says when it moved.

use swiftwater_units::Instant;

use crate::model::Model;
use crate::parameters::Parameters;
use crate::window::Window;

/// The scores of one origin on one network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    /// s_hist: the first score after the last experiment.
    historical: Option<f32>,
    score: Option<f32>,
    exceeded: u32,
    explored: Option<Instant>,
}

impl Monitor {
    /// Notes the end of an experiment: s_hist is taken anew, from requests after it and with the model of
    /// the arm that is used then, because the scores of two models can't be compared.
    pub(crate) fn explored(&mut self, now: Instant) {
        *self = Self {
            explored: Some(now),
            ..Self::default()
        };
    }

    /// Scores the window of the arm in use after a request. True if an experiment is due: the score is
    /// further from s_hist than the threshold, several times in a row, and the last experiment is not
    /// too recent.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        window: &Window,
        model: &Model,
        parameters: &Parameters,
    ) -> bool {
        let full = parameters.min_requests as usize;
        if window.len() < full {
            return false;
        }
        let Some(features) = window.features() else {
            return false;
        };
        let score = model.predict(&features);
        self.score = Some(score);
        let Some(historical) = self.historical else {
            let since = self.explored.unwrap_or_default();
            if window.count_since(since) >= full {
                self.historical = Some(score);
            }
            return false;
        };
        let moved = f64::from((score - historical).abs()) > parameters.score_threshold;
        self.exceeded = if moved { self.exceeded + 1 } else { 0 };
        self.exceeded >= parameters.score_exceedances && !self.is_recent(now, parameters)
    }

    /// True if the last experiment ended less than the pause ago.
    pub(crate) fn is_recent(&self, now: Instant, parameters: &Parameters) -> bool {
        let since = |explored| now.saturating_since(explored) < parameters.score_pause;
        self.explored.is_some_and(since)
    }

    /// The last score: the probability that QUIC is quicker.
    pub(crate) fn score(&self) -> Option<f32> {
        self.score
    }
}
