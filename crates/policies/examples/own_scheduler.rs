//! A scheduler in one file, tried over scripted paths: *earliest arrival first*. It sends on the path
//! on which the next datagram would arrive first, the bytes before it included, and rather waits for a
//! fast path than use a slow one.
//!
//! `cargo run -p swiftwater-policies --example own_scheduler`

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::time::Duration;

use swiftwater_policies::SchedulerCatalogue;
use swiftwater_policies::schedulers::{
    MinRtt, MinRttConfig, SchedulerFactory, Weighted, WeightedConfig,
};
use swiftwater_policies::testkit::{Network, ScriptedPath};
use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId};

/// Parameters; what makes it selectable by name.
#[derive(Clone, Copy, Debug)]
struct EarliestArrival {
    /// How much later than on the best path a datagram may arrive, in round-trip times of that path.
    tolerance: f64,
}

tunable!(EarliestArrival {
    "tolerance" => tolerance in 0.0..=10.0, "how much later a datagram may arrive, in RTTs";
});

impl SchedulerFactory for EarliestArrival {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(*self)
    }
}

/// When the next datagram would arrive: after those in flight beyond one round trip's worth.
fn arrival(path: &PathView) -> Duration {
    let rate = path.estimated_rate();
    let in_pipe = rate.bytes_in(path.min_rtt);
    let queued = path.bytes_in_flight.get().saturating_sub(in_pipe);
    path.min_rtt / 2 + rate.time_to_send(queued + u64::from(path.mtu))
}

impl Scheduler for EarliestArrival {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let usable = || {
            paths
                .iter()
                .filter(|path| path.is_usable() && demand.suits(path.id))
        };
        let Some(best) = usable().min_by_key(|path| arrival(path)) else {
            return PathDecision::Blocked;
        };
        let latest = arrival(best) + best.smoothed_rtt.mul_f64(self.tolerance);
        usable()
            .filter(|path| path.is_ready(now) && arrival(path) <= latest)
            .min_by_key(|path| arrival(path))
            .map_or(PathDecision::Blocked, |path| PathDecision::once(path.id))
    }
}

fn main() {
    let paths = || {
        [
            ScriptedPath::new(Bandwidth::from_mbps(20), Duration::from_millis(10)),
            ScriptedPath::new(Bandwidth::from_mbps(5), Duration::from_millis(80)),
        ]
    };
    let mut catalogue = SchedulerCatalogue::standard();
    let own = EarliestArrival { tolerance: 1.0 };
    catalogue.add(
        "earliest-arrival",
        "the path on which a datagram arrives first",
        own,
    );
    let schedulers: [(&str, Box<dyn Scheduler>); 3] = [
        ("min-rtt", Box::new(MinRtt::new(MinRttConfig::default()))),
        (
            "weighted",
            Box::new(Weighted::new(WeightedConfig::default())),
        ),
        (
            "earliest-arrival:tolerance=2",
            catalogue
                .get("earliest-arrival:tolerance=2")
                .map(|factory| factory.scheduler())
                .expect("it was just added"),
        ),
    ];
    println!("300 kB over 20 Mbit/s, 20 ms and 5 Mbit/s, 160 ms:");
    for (name, scheduler) in schedulers {
        let report = Network::new(paths())
            .scheduler(scheduler)
            .transfer(ByteCount::new(300_000), Duration::from_secs(10));
        let time = report.completed_in.expect("ten seconds are enough");
        let share = 100.0 * report.share(PathId::new(1));
        println!(
            "{name:<30} {:>4} ms, {share:>4.1} % on the slow path",
            time.as_millis()
        );
    }
}
