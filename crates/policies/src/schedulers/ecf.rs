//! Earliest Completion First (Lim et al., *ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths*,
//! CoNEXT 2017, algorithm 1).
//!
//! While the fast path `f`, the one with the least RTT, has no room, a slow path `s` is used only if the
//! `k` bytes that wait would be complete later without it. With windows `W`, round-trip times `R` and
//! `delta`, the larger of the two RTT variations, it waits for the fast path if
//!
//! ```text
//! (1 + k / W_f) * R_f < (1 + waiting * beta) * (R_s + delta)   and   k / W_s * R_s >= 2 * R_f + delta
//! ```
//!
//! where `waiting` is 1 from such a decision until the first condition fails, which keeps decisions from
//! alternating. `k` counts at least one window of the path in question, as in the authors' implementation:
//! less takes a round trip, too.

use std::time::Duration;

use swiftwater_quic::policy::{Demand, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::ByteCount;

use super::SchedulerFactory;
use super::fast_first::{FastFirst, FastFirstConfig, WaitRule};

/// Parameters of [`Ecf`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcfConfig {
    /// By how much the slow path must be better to end a wait, 0 to 10; default 0.25.
    pub beta: f64,
    /// What does not depend on the rule.
    pub paths: FastFirstConfig,
}

impl Default for EcfConfig {
    fn default() -> Self {
        Self {
            beta: 0.25,
            paths: FastFirstConfig::default(),
        }
    }
}

tunable!(EcfConfig {
    "beta" => beta in 0.0..=10.0, "by how much the slow path must be better to end a wait";
    ..paths;
});

impl SchedulerFactory for EcfConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Ecf::new(*self))
    }
}

/// See the module's documentation.
pub type Ecf = FastFirst<EarliestCompletion>;

impl Ecf {
    /// Nothing is sent yet.
    pub fn new(config: EcfConfig) -> Self {
        let rule = EarliestCompletion {
            beta: config.beta,
            is_waiting: false,
        };
        Self::with_rule(config.paths, rule)
    }
}

/// ECF's rule: to wait if that completes the waiting data earlier.
#[derive(Clone, Copy, Debug)]
pub struct EarliestCompletion {
    beta: f64,
    /// The last comparison was for waiting.
    is_waiting: bool,
}

impl WaitRule for EarliestCompletion {
    fn shall_wait(
        &mut self,
        fast: &PathView,
        slow: &PathView,
        demand: &Demand<'_>,
        _in_flight: ByteCount,
    ) -> bool {
        let waiting = demand.bytes();
        let seconds = |time: Duration| time.as_secs_f64();
        let (fast_rtt, slow_rtt) = (seconds(fast.smoothed_rtt), seconds(slow.smoothed_rtt));
        let delta = seconds(fast.rtt_var.max(slow.rtt_var));
        let margin = if self.is_waiting {
            1.0 + self.beta
        } else {
            1.0
        };
        if (1.0 + windows(waiting, fast)) * fast_rtt >= margin * (slow_rtt + delta) {
            self.is_waiting = false;
            return false;
        }
        let waits = windows(waiting, slow) * slow_rtt >= 2.0 * fast_rtt + delta;
        self.is_waiting |= waits;
        waits
    }
}

/// `bytes` in windows of a path, at least one.
fn windows(bytes: ByteCount, path: &PathView) -> f64 {
    (bytes.get() as f64 / path.cwnd.get().max(1) as f64).max(1.0)
}
