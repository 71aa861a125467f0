//! The law of TECC (NSDI 2024): a sender's rate from rate and queue of the tunnel that carries its packets,
//! `mu * rate - (queue - target) / theta`.
//!
//! A signal takes one round trip from the tunnel to the client, to the server, and in its effect back to the tunnel.
//! With that delay the queue is stable for `theta` above 2/pi round trips and does not overshoot above `e` of them.
//! The paper leaves `theta`, `mu` and the smoothing open; these are the project's.

use std::time::Duration;

use swiftwater_tunable::tunable;
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::controller::ExternalRate;

/// Weight of a new rate above the smoothed one, of one below, and of a new queue.
const UP: f64 = 0.25;
const DOWN: f64 = 0.5;
const QUEUE: f64 = 0.5;
/// A rate below this share of the smoothed one is a drop.
const DROP: f64 = 0.7;
/// `mu` at the start, and of probing rounds.
const STARTUP: f64 = 2.0;
const PROBE: f64 = 1.25;
/// One round in so many probes.
const PROBE_CYCLE: u64 = 8;
/// Growth of the rate in a round of the start below which the round counts as full; the start ends after three.
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;

/// Parameters of a [`RateLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RateLawConfig {
    /// `theta`, round-trip times, 0.25 to 16; default 2.
    pub theta: f64,
    /// Least `theta`, 1 ms to 1 s; default 20 ms.
    pub least_theta: Duration,
    /// Queue that is left standing at least, as time at the reported rate, 0 to 1 s; default 5 ms. At least two packets.
    pub target: Duration,
    /// Queue that is left standing, as time at the reported rate in intervals between reports, 0 to 16; default 1. Until the
    /// next report the sender does not see a rate that rises, and a tunnel without a queue does not use it.
    pub target_intervals: f64,
    /// Rate and queue are smoothed; default on.
    pub smooth: bool,
    /// A sudden fall of the rate is followed at once, with half of `theta` for a round trip; default on.
    pub drop_rule: bool,
    /// `mu` is 2 at the start; default on.
    pub startup: bool,
    /// `mu` is 1.25 in one round of eight while the path is not filled; default on.
    pub probe: bool,
}

impl Default for RateLawConfig {
    fn default() -> Self {
        Self {
            theta: 2.0,
            least_theta: Duration::from_millis(20),
            target: Duration::from_millis(5),
            target_intervals: 1.0,
            smooth: true,
            drop_rule: true,
            startup: true,
            probe: true,
        }
    }
}

tunable!(RateLawConfig {
    "theta" => theta in 0.25..=16.0, "time within which a queue is drained, in round-trip times";
    "least-theta" => least_theta in Duration::from_millis(1)..=Duration::from_secs(1), "the least such time";
    "target" => target in Duration::ZERO..=Duration::from_secs(1),
        "queue that is left standing at least, as time at the reported rate";
    "target-intervals" => target_intervals in 0.0..=16.0,
        "queue that is left standing, as time at the reported rate in intervals between reports";
    "smooth" => smooth, "smooth rate and queue";
    "drop-rule" => drop_rule, "follow a sudden fall of the rate at once";
    "startup" => startup, "twice the reported rate at the start";
    "probe" => probe, "1.25 times the rate in one round of eight while the path is not filled";
});

/// The law with what it keeps of the reports.
#[derive(Clone, Copy, Debug)]
pub struct RateLaw {
    config: RateLawConfig,
    /// Bytes per second, smoothed; `None` before the first report.
    rate: Option<f64>,
    /// Bytes, smoothed.
    queue: f64,
    /// Between two reports.
    interval: Duration,
    app_limited: bool,
    /// `theta` is halved until then.
    fell_until: Option<Instant>,
    in_startup: bool,
    /// The largest rate in the start so far, and rounds in which it hardly grew.
    full_rate: f64,
    full_rounds: u32,
    rounds: u64,
    /// A report came since the last round began.
    is_reported: bool,
}

impl RateLaw {
    /// No report so far.
    pub fn new(config: RateLawConfig) -> Self {
        Self {
            config,
            rate: None,
            queue: 0.0,
            interval: Duration::ZERO,
            app_limited: false,
            fell_until: None,
            in_startup: config.startup,
            full_rate: 0.0,
            full_rounds: 0,
            rounds: 0,
            is_reported: false,
        }
    }

    /// Changes the parameters.
    pub fn configure(&mut self, config: RateLawConfig) {
        self.config = config;
    }

    /// True until the start is over.
    pub fn in_startup(&self) -> bool {
        self.in_startup
    }

    /// A report came; the smoothed round-trip time is `rtt`, a packet has `packet` bytes.
    pub fn on_report(
        &mut self,
        now: Instant,
        report: &ExternalRate,
        rtt: Duration,
        packet: ByteCount,
    ) {
        let rate = report.rate.as_bytes_per_sec() as f64;
        let queue = report.queue.get() as f64;
        let smoothed = self.rate;
        let falls = |smoothed: f64| report.fell || rate < DROP * smoothed;
        match smoothed {
            Some(smoothed) if self.config.drop_rule && falls(smoothed) => {
                (self.rate, self.queue) = (Some(rate), queue);
                self.fell_until = Some(now + rtt);
            }
            Some(smoothed) if self.config.smooth => {
                let weight = if rate > smoothed { UP } else { DOWN };
                self.rate = Some(smoothed + weight * (rate - smoothed));
                self.queue += QUEUE * (queue - self.queue);
            }
            _ => (self.rate, self.queue) = (Some(rate), queue),
        }
        self.app_limited = report.app_limited;
        self.interval = report.interval;
        self.is_reported = true;
        if queue > self.target(rate, packet) || report.congestion {
            self.in_startup = false;
        }
    }

    /// A round trip began.
    pub fn on_round(&mut self) {
        self.rounds += 1;
        let Some(rate) = self.rate.filter(|_| std::mem::take(&mut self.is_reported)) else {
            return;
        };
        if !self.in_startup {
            return;
        }
        if rate >= self.full_rate * GROWTH {
            (self.full_rate, self.full_rounds) = (rate, 0);
        } else {
            self.full_rounds += 1;
            self.in_startup = self.full_rounds < FULL_ROUNDS;
        }
    }

    /// The rate to send at, as the law has it: `None` before the first report. It may be zero.
    pub fn rate(&self, now: Instant, rtt: Duration, packet: ByteCount) -> Option<Bandwidth> {
        let rate = self.rate?;
        let target = self.target(rate, packet);
        let mut theta = rtt
            .mul_f64(self.config.theta)
            .max(self.config.least_theta)
            .as_secs_f64();
        if self.fell_until.is_some_and(|until| now < until) {
            theta /= 2.0;
        }
        let probes = self.config.probe
            && self.rounds % PROBE_CYCLE == PROBE_CYCLE - 1
            && self.app_limited
            && self.queue < target / 2.0;
        let mu = if self.in_startup {
            STARTUP
        } else if probes {
            PROBE
        } else {
            1.0
        };
        let sent = mu.mul_add(rate, -(self.queue - target) / theta).max(0.0);
        Some(Bandwidth::from_bytes_per_sec(sent as u64))
    }

    /// Bytes that may stand in the queue.
    fn target(&self, rate: f64, packet: ByteCount) -> f64 {
        let intervals = self.interval.mul_f64(self.config.target_intervals);
        let standing = rate * self.config.target.max(intervals).as_secs_f64();
        standing.max(packet.times(2).get() as f64)
    }
}
