//! `chorus+`, the project's variant of Chorus: the scheduler.
//!
//! Chorus divides a response by bandwidth and corrects the division when windows show that it was wrong. The correction has
//! what it needs to decide for each datagram, so that no quota has to be right: [`Weighted`] sends each on the path where it
//! arrives first, and keeps a path out of the end of the data if it would finish after the others. It estimates rates that
//! aren't lowered by times in which a path is used little (under BBR those confuse), and counts what is in flight.
//! But it sees only what the application has written; where that is less than the response, it takes the middle for the
//! end, and waits for a fast path although a slow one would be in time. So here the announced size counts as waiting.

use swiftwater_quic::policy::{Demand, Hints, PathDecision, PathView, ResponseStart, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::new_response;
use crate::schedulers::{SchedulerFactory, Weighted, WeightedConfig};

/// Bytes of a datagram that are no stream data: packet header, tag, frame header.
const OVERHEAD: u64 = 36;

/// Parameters of [`ChorusPlusScheduler`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChorusPlusSchedulerConfig {
    /// Whether all of an announced response counts as waiting; default true. If not, it is [`Weighted`].
    pub whole: bool,
    /// Parameters of [`Weighted`].
    pub weighted: WeightedConfig,
}

impl Default for ChorusPlusSchedulerConfig {
    fn default() -> Self {
        Self {
            whole: true,
            weighted: WeightedConfig::default(),
        }
    }
}

tunable!(ChorusPlusSchedulerConfig {
    "whole" => whole, "whether all of an announced response counts as waiting";
    ..weighted;
});

impl SchedulerFactory for ChorusPlusSchedulerConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(ChorusPlusScheduler::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ChorusPlusScheduler {
    weighted: Weighted,
    counts_whole: bool,
    response: Option<ResponseStart>,
    /// Bytes of the response that haven't left.
    left: u64,
    /// The path of the last decision, if that was about the response.
    charged: Option<PathId>,
}

impl ChorusPlusScheduler {
    /// No response was announced yet.
    pub fn new(config: ChorusPlusSchedulerConfig) -> Self {
        Self {
            weighted: Weighted::new(config.weighted),
            counts_whole: config.whole,
            response: None,
            left: 0,
            charged: None,
        }
    }
}

impl Scheduler for ChorusPlusScheduler {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let is_next = |response: ResponseStart| demand.next_stream == Some(response.stream);
        let is_response =
            !demand.new_bytes.is_zero() && self.counts_whole && self.response.is_some_and(is_next);
        let mut whole = *demand;
        if is_response {
            whole.new_bytes = demand.new_bytes.max(ByteCount::new(self.left));
        }
        let decision = self.weighted.next(now, paths, &whole);
        self.charged = match decision {
            PathDecision::Path { id, .. } if is_response => Some(id),
            _ => None,
        };
        decision
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: ByteCount) {
        self.weighted.on_sent(now, path, bytes);
        if self.charged == Some(path) {
            let payload = bytes.get().saturating_sub(OVERHEAD);
            self.left = self.left.saturating_sub(payload);
        }
    }

    fn on_hints(&mut self, _now: Instant, hints: &Hints) {
        if let Some(response) = new_response(hints, self.response.as_ref()) {
            self.response = Some(response);
            self.left = response.bytes.get();
        }
    }
}
