//! Counters of a selector.

use serde::Serialize;

use crate::decision::Reason;

/// Counters since the selector was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Stats {
    /// Requests decided.
    pub requests: u64,
    /// Requests by reason, as [`Reason::NAMES`].
    pub reasons: [u64; Reason::NAMES.len()],
    /// Requests sent over another arm than the one selected, in order to learn.
    pub off_arm: u64,
    /// Experiments started.
    pub experiments: u64,
    /// Experiments that ended without enough values.
    pub inconclusive: u64,
    /// Changes of the selected arm, rollbacks not counted.
    pub switches: u64,
    /// Switches undone because requests became slower.
    pub rollbacks: u64,
    /// Arms left at once because of failures in a row.
    pub failovers: u64,
    /// Times that QUIC was found blocked, at an origin or on a network.
    pub blocks: u64,
    /// Requests with an outcome of another arm than decided.
    pub overtaken: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests forgotten without an outcome.
    pub forgotten: u64,
}

impl Stats {
    /// Requests with a reason of this name; 0 for unknown names.
    pub fn with_reason(&self, name: &str) -> u64 {
        let position = Reason::NAMES.iter().position(|known| *known == name);
        position.map_or(0, |position| self.reasons[position])
    }

    pub(crate) fn count(&mut self, reason: Reason) {
        self.requests += 1;
        let position = Reason::NAMES
            .iter()
            .position(|known| *known == reason.name());
        if let Some(position) = position {
            self.reasons[position] += 1;
        }
    }
}
