//! BLEST, blocking estimation (Ferlin et al., *BLEST: Blocking Estimation-based MPTCP Scheduler for
//! Heterogeneous Networks*, IFIP Networking 2016).
//!
//! While the fast path `f`, the one with the least RTT, has no room, data that a slow path `s` carries hold
//! up the send window for a round trip of it. In that time the fast path could send
//! `X = MSS_f * (W_f + (r - 1) / 2) * r` bytes with a window of `W_f` packets, `r = R_s / R_f`. The slow path is
//! used only if what the send window `SW` has left for the fast one is enough:
//!
//! ```text
//! lambda * X <= SW - MSS_s * (in_flight_s + 1)
//! ```
//!
//! `SW` is what is in flight on all paths plus what waits: while more waits than the peer's flow control
//! permits, that is the credit that the peer gave; otherwise it is all data there are, of which a slow path
//! would delay the end. The paper's controller of `lambda` counts blocked send windows, which a scheduler
//! isn't shown; here it is a parameter.

use swiftwater_quic::policy::{Demand, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::ByteCount;

use super::SchedulerFactory;
use super::fast_first::{FastFirst, FastFirstConfig, WaitRule};

/// Parameters of [`Blest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlestConfig {
    /// What the estimate for the fast path is multiplied by, 0 to 10; default 1. Larger values wait more
    /// often, 0 never does.
    pub lambda: f64,
    /// What does not depend on the rule.
    pub paths: FastFirstConfig,
}

impl Default for BlestConfig {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            paths: FastFirstConfig::default(),
        }
    }
}

tunable!(BlestConfig {
    "lambda" => lambda in 0.0..=10.0, "what the fast path's estimated bytes are multiplied by";
    ..paths;
});

impl SchedulerFactory for BlestConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Blest::new(*self))
    }
}

/// See the module's documentation.
pub type Blest = FastFirst<BlockingEstimation>;

impl Blest {
    /// Nothing is sent yet.
    pub fn new(config: BlestConfig) -> Self {
        let rule = BlockingEstimation {
            lambda: config.lambda,
        };
        Self::with_rule(config.paths, rule)
    }
}

/// BLEST's rule: to wait while the slow path would block the send window.
#[derive(Clone, Copy, Debug)]
pub struct BlockingEstimation {
    lambda: f64,
}

impl WaitRule for BlockingEstimation {
    fn shall_wait(
        &mut self,
        fast: &PathView,
        slow: &PathView,
        demand: &Demand<'_>,
        in_flight: ByteCount,
    ) -> bool {
        let on_slow = slow.bytes_in_flight + ByteCount::new(slow.mtu.into());
        let left = (in_flight + demand.bytes()).saturating_sub(on_slow);
        self.lambda * sent_meanwhile(fast, slow) > left.get() as f64
    }
}

/// Bytes that `fast` sends in a round trip of `slow` while its window grows by a packet per round trip.
fn sent_meanwhile(fast: &PathView, slow: &PathView) -> f64 {
    let rtts = slow.smoothed_rtt.as_secs_f64() / fast.smoothed_rtt.as_secs_f64().max(1e-6);
    let growth = f64::from(fast.mtu) * (rtts - 1.0).max(0.0) / 2.0;
    (fast.cwnd.get() as f64 + growth) * rtts
}
