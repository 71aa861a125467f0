//! Finishing together: data are split so that all paths deliver the last of them at the same time, each
//! in proportion to its rate.
//!
//! Before each datagram the data that wait are split over the eligible paths as in Chorus
//! ([`finish_time`]). The datagram goes to the path with room on which it arrives first,
//! if that path's share is a datagram at least. If it is less, the path would deliver it later than the
//! others deliver everything, and the scheduler waits for one of them. While much waits every path has a
//! share, so that each is kept full; at the end the paths with the longest delays drop out one by one.

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::eligibility::{Eligibility, EligibilityConfig};
use super::finish_time::{PathCapacity, finish_time};
use super::rate_estimate::RateEstimates;
use super::{SchedulerFactory, batch, blocked, has_room, wait_for};

/// Rounding that a share may be short by.
const TOLERANCE: f64 = 0.999;

/// Parameters of [`Weighted`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedConfig {
    /// Bytes that follow one another on a path before the choice is made again, at most; default 64 KiB. The
    /// path's share, an eighth of the waiting bytes and a quarter of the window at most.
    pub batch: ByteCount,
    /// Which paths may carry data.
    pub eligibility: EligibilityConfig,
}

impl Default for WeightedConfig {
    fn default() -> Self {
        Self {
            batch: batch::DEFAULT,
            eligibility: EligibilityConfig::default(),
        }
    }
}

tunable!(WeightedConfig {
    "batch" => batch, "bytes that follow one another on a path, at most";
    ..eligibility;
});

impl SchedulerFactory for WeightedConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Weighted::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    batch: ByteCount,
    eligibility: Eligibility,
    rates: RateEstimates,
    /// Reused for each decision.
    capacities: Vec<PathCapacity>,
}

impl Weighted {
    /// No path has sent anything yet.
    pub fn new(config: WeightedConfig) -> Self {
        Self {
            batch: config.batch,
            eligibility: Eligibility::new(config.eligibility),
            rates: RateEstimates::default(),
            capacities: Vec::new(),
        }
    }
}

impl Scheduler for Weighted {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        self.rates.observe(now, paths);
        let rates = &self.rates;
        let eligible = self.eligibility.paths(now, paths, demand);
        let eligible = eligible.map(|(_, path)| (rates.capacity(now, path), path));
        self.capacities.clear();
        self.capacities
            .extend(eligible.clone().map(|(capacity, _)| capacity));
        let waiting = demand.bytes().get() as f64;
        let finish = finish_time(waiting, &mut self.capacities).unwrap_or_default();
        let earlier = |a: &(PathCapacity, &PathView), b: &(PathCapacity, &PathView)| {
            let ties = (a.1.smoothed_rtt, a.1.id).cmp(&(b.1.smoothed_rtt, b.1.id));
            a.0.delay.total_cmp(&b.0.delay).then(ties)
        };
        let ready = eligible.clone().filter(|(_, path)| has_room(path, now));
        let Some(next) = ready.min_by(earlier) else {
            return blocked(now, paths, demand);
        };
        let share = next.0.share(finish);
        if share < waiting.min(next.1.mtu.into()) * TOLERANCE {
            let awaited = eligible.filter(|other| earlier(other, &next).is_lt());
            let awaited = awaited
                .filter_map(|other| Some((other, wait_for(other.1, now)?)))
                .min_by(|a, b| earlier(&a.0, &b.0));
            if let Some((_, wait)) = awaited {
                return wait;
            }
        }
        PathDecision::Path {
            id: next.1.id,
            max_bytes: batch::part(self.batch, next.1, demand.bytes())
                .min(ByteCount::new(share as u64)),
        }
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: ByteCount) {
        self.eligibility.on_sent(now, path);
        self.rates.on_sent(now, path, bytes);
    }
}
