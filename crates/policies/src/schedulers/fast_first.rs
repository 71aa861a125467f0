//! What ECF and BLEST share: the path with the least RTT carries data, and while it has no room a rule says
//! whether the next path does or the data wait.

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::eligibility::{Eligibility, EligibilityConfig};
use super::{batch, blocked, has_room, wait_for};

/// Parameters that ECF and BLEST share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastFirstConfig {
    /// Bytes that follow one another on a path before the choice is made again, at most; default 64 KiB. On a
    /// path that is not the fastest, an eighth of the waiting bytes and a quarter of the window at most.
    pub batch: ByteCount,
    /// Which paths may carry data.
    pub eligibility: EligibilityConfig,
}

impl Default for FastFirstConfig {
    fn default() -> Self {
        Self {
            batch: batch::DEFAULT,
            eligibility: EligibilityConfig::default(),
        }
    }
}

tunable!(FastFirstConfig {
    "batch" => batch, "bytes that follow one another on a path, at most";
    ..eligibility;
});

/// When to wait for the fast path.
pub(super) trait WaitRule {
    /// True if the `demand` is to wait for `fast`, which has no room, though `slow` has; `in_flight`: bytes on
    /// all paths.
    fn shall_wait(
        &mut self,
        fast: &PathView,
        slow: &PathView,
        demand: &Demand<'_>,
        in_flight: ByteCount,
    ) -> bool;
}

/// A scheduler with the rule `R`. Of more than two paths, the fast one is the one with the least RTT among
/// those that have room or will have it, the slow one that among those with room.
#[derive(Clone, Debug)]
pub struct FastFirst<R> {
    batch: ByteCount,
    eligibility: Eligibility,
    rule: R,
}

impl<R> FastFirst<R> {
    /// Nothing is sent yet.
    pub(super) fn with_rule(config: FastFirstConfig, rule: R) -> Self {
        Self {
            batch: config.batch,
            eligibility: Eligibility::new(config.eligibility),
            rule,
        }
    }
}

impl<R: WaitRule + Send + std::fmt::Debug> Scheduler for FastFirst<R> {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let order = |path: &&PathView| (path.smoothed_rtt, path.id);
        let eligible = self.eligibility.paths(now, paths, demand);
        let eligible = eligible.map(|(_, path)| path);
        let ready = eligible.clone().filter(|path| has_room(path, now));
        let Some(slow) = ready.min_by_key(order) else {
            return blocked(now, paths, demand);
        };
        let awaited = eligible.filter(|path| order(path) < order(&slow));
        let fast = awaited
            .filter_map(|path| Some((path, wait_for(path, now)?)))
            .min_by_key(|(path, _)| order(path));
        let max_bytes = match fast {
            None => self.batch,
            Some((fast, wait)) => {
                let in_flight = paths.iter().map(|path| path.bytes_in_flight).sum();
                if self.rule.shall_wait(fast, slow, demand, in_flight) {
                    return wait;
                }
                batch::part(self.batch, slow, demand.bytes())
            }
        };
        PathDecision::Path {
            id: slow.id,
            max_bytes,
        }
    }

    fn on_sent(&mut self, now: Instant, path: PathId, _bytes: ByteCount) {
        self.eligibility.on_sent(now, path);
    }
}
