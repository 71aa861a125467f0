//! A controller that follows a rate measured elsewhere, and is CUBIC without one.
//!
//! A tunnel that carries the path's packets and repairs their losses measures their bottleneck better
//! than the inner connection can. While its reports are fresh, packets are paced by the law of TECC ([`RateLaw`]). RTT
//! samples don't matter then, and losses only before the tunnel; the window is only a guard.
//!
//! | rule | |
//! |---|---|
//! | delay | `theta` counts round trips without the wait in the tunnel's queue, which reports pass by |
//! | trust | not more than twice the delivery rate seen: reports come through the client |
//! | upstream | losses while the rate is followed are those before the tunnel: from the first on, CUBIC limits the rate too |
//! | decay | without a report for two intervals and a round trip, the rate falls by a tenth per interval |
//! | hand-over | when reports have ceased for `lifetime`, CUBIC goes on in congestion avoidance with what the rate fills |
//!
//! Time during which nothing is in flight does not count: a tunnel is silent then.

mod law;

pub use law::{RateLaw, RateLawConfig};

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError, tunable};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::controller::{Controller, ControllerFactory, Env, ExternalRate, Pacing, Snapshot};
use crate::cubic::{Cubic, CubicConfig};
use crate::growth::MAX_WINDOW;
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, LossCause, RttView, SentInfo};

/// Packets of the least window.
const LEAST_PACKETS: u64 = 10;
/// What is left of the rate after each interval without a report.
const DECAY: f64 = 0.9;
/// The most that is sent, in delivery rates seen.
const TRUST: f64 = 2.0;
/// The shortest time over which a delivery rate is measured.
const LEAST_MEASURED: Duration = Duration::from_millis(5);
/// A rate is forgotten when nothing was sent for so long.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Parameters of [`FollowExternal`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowExternalConfig {
    /// Time for which a report counts, its age included. Range 1 ms to 10 s, default 500 ms.
    pub lifetime: Duration,
    /// The law.
    pub law: RateLawConfig,
    /// `theta` counts round trips without the wait in the tunnel's queue; default on.
    pub exclude_queue: bool,
    /// Not more than twice the delivery rate is sent; default on.
    pub trust: bool,
    /// CUBIC limits the rate after a loss before the tunnel; default on.
    pub upstream: bool,
    /// The rate falls while reports are missing; default on.
    pub decay: bool,
    /// CUBIC's parameters.
    pub cubic: CubicConfig,
}

impl Default for FollowExternalConfig {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_millis(500),
            law: RateLawConfig::default(),
            exclude_queue: true,
            trust: true,
            upstream: true,
            decay: true,
            cubic: CubicConfig::default(),
        }
    }
}

tunable!(FollowExternalConfig {
    "lifetime" => lifetime in Duration::from_millis(1)..=Duration::from_secs(10),
        "time for which a report counts";
    "exclude-queue" => exclude_queue, "theta counts round trips without the wait in the tunnel's queue";
    "trust" => trust, "send at most twice the delivery rate";
    "upstream" => upstream, "CUBIC limits the rate after a loss before the tunnel";
    "decay" => decay, "the rate falls while reports are missing";
    ..law;
    ..cubic;
});

/// Parameters that can be changed while the controller runs.
const LIVE: &[&str] = &[
    "lifetime",
    "theta",
    "least-theta",
    "target",
    "target-intervals",
    "smooth",
    "drop-rule",
    "probe",
    "exclude-queue",
    "trust",
    "upstream",
    "decay",
];

impl ControllerFactory for FollowExternalConfig {
    fn name(&self) -> &'static str {
        "follow-external"
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(FollowExternal {
            config: *self,
            native: self.cubic.controller(env),
            law: RateLaw::new(self.law),
            report: None,
            now: Instant::ZERO,
            rtt: None,
            packet: env.max_datagram_size,
            is_idle: true,
            delivery: env.initial_window.get() as f64,
            delivery_from: None,
            flight: None,
            is_limited_upstream: false,
        })
    }
}

/// The newest report, and what follows from when it came.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    report: ExternalRate,
    /// Without another one, the rate decays from then on.
    stale_at: Instant,
    /// It counts until then.
    until: Instant,
}

/// Round-trip times.
#[derive(Clone, Copy, Debug)]
struct Times {
    smoothed: Duration,
    min: Duration,
}

/// See the module's documentation. In the catalogue as `follow-external`.
#[derive(Clone, Debug)]
pub struct FollowExternal {
    config: FollowExternalConfig,
    native: Cubic,
    law: RateLaw,
    report: Option<Fresh>,
    /// The newest time seen while packets were in flight.
    now: Instant,
    rtt: Option<Times>,
    packet: ByteCount,
    /// Nothing is in flight.
    is_idle: bool,
    /// The largest delivery rate of late, bytes/s; before the first sample the initial window, bytes.
    delivery: f64,
    /// When it was measured; `None` before the first.
    delivery_from: Option<Instant>,
    /// When the first acknowledgement of the busy period came, or of its last two round trips, and the bytes since.
    flight: Option<(Instant, u64)>,
    /// There was a loss before the tunnel, so that CUBIC counts.
    is_limited_upstream: bool,
}

impl FollowExternal {
    /// The rate to follow, if there is a fresh one.
    fn rate(&self) -> Option<Bandwidth> {
        let fresh = self.report.filter(|fresh| fresh.until > self.now)?;
        let rtt = self.rtt?;
        let delay = self.signal_delay(&fresh.report, rtt);
        let law = self.law.rate(self.now, delay, self.packet)?;
        let mut rate = law.as_bytes_per_sec() as f64;
        if self.config.trust {
            rate = rate.min(self.most(rtt));
        }
        if self.config.upstream && self.is_limited_upstream {
            rate = rate.min(self.upstream(rtt));
        }
        if self.config.decay && self.now > fresh.stale_at {
            let missed = self.now.saturating_since(fresh.stale_at).as_secs_f64();
            let intervals = missed
                / fresh
                    .report
                    .interval
                    .max(Duration::from_millis(1))
                    .as_secs_f64();
            rate *= DECAY.powf(intervals);
        }
        // Two packets per round trip, so that there always is an answer.
        let least = Bandwidth::from_transfer(self.packet.times(2).get(), rtt.smoothed);
        Some(Bandwidth::from_bytes_per_sec(rate as u64).max(least))
    }

    /// How long it takes until what a report says has an effect at the tunnel: a round trip, but for the wait in the
    /// tunnel's queue, which the report does not share. With the wait a queue makes its own drain slower, and where repairs
    /// take a part of the rate it grows without need.
    fn signal_delay(&self, report: &ExternalRate, rtt: Times) -> Duration {
        if !self.config.exclude_queue {
            return rtt.smoothed;
        }
        let wait = report.rate.time_to_send(report.queue.get());
        rtt.smoothed.saturating_sub(wait).max(rtt.min)
    }

    /// The most that is sent, whatever the reports say, bytes/s.
    fn most(&self, rtt: Times) -> f64 {
        let initial = self.packet.times(LEAST_PACKETS).get() as f64 / rtt.smoothed.as_secs_f64();
        let seen = if self.delivery_from.is_some() {
            self.delivery
        } else {
            self.delivery / rtt.smoothed.as_secs_f64()
        };
        TRUST * seen.max(initial)
    }

    /// CUBIC's rate, bytes/s.
    fn upstream(&self, rtt: Times) -> f64 {
        self.native.cwnd().get() as f64 / rtt.smoothed.as_secs_f64()
    }

    /// Measures how fast acknowledgements come within a busy period, so that a short flight doesn't count the round
    /// trip for which it waited. While the application limits the flow, that shows only that more is possible.
    fn on_delivery(&mut self, ack: &AckBatch) {
        let smoothed = ack.rtt.smoothed;
        let (since, bytes) = match self.flight {
            Some((since, bytes)) => (since, bytes.saturating_add(ack.acked_bytes.get())),
            None => (ack.now, 0),
        };
        let elapsed = ack.now.saturating_since(since);
        let is_over = ack.inflight.is_zero();
        self.flight = (!is_over).then_some((since, bytes));
        if elapsed < (smoothed / 4).max(LEAST_MEASURED) {
            return;
        }
        if elapsed > 2 * smoothed && !is_over {
            self.flight = Some((ack.now, 0));
        }
        let rate = bytes as f64 / elapsed.as_secs_f64();
        let is_old =
            |from: Instant| ack.now.saturating_since(from) > 2 * smoothed && !ack.app_limited;
        if rate >= self.delivery || self.delivery_from.is_none_or(is_old) {
            (self.delivery, self.delivery_from) = (rate, Some(ack.now));
        }
    }

    /// Reports have ceased: CUBIC goes on with what the last rate fills.
    fn hand_over(&mut self, rate: Option<Bandwidth>, env: &Env<'_>) {
        if let Some((rate, rtt)) = rate.zip(self.rtt) {
            let filled = ByteCount::new(rate.bytes_in(rtt.min));
            self.native.continue_at(filled, env);
        }
        self.report = None;
        self.is_limited_upstream = false;
    }
}

impl Controller for FollowExternal {
    fn name(&self) -> &'static str {
        "follow-external"
    }

    fn on_sent(&mut self, sent: &SentInfo, env: &mut Env<'_>) {
        if let Some(pause) = sent.was_idle
            && let Some(fresh) = &mut self.report
        {
            if pause > LONGEST_PAUSE {
                self.report = None;
            } else {
                fresh.stale_at += pause;
                fresh.until += pause;
            }
        }
        self.is_idle = false;
        self.now = self.now.max(sent.now);
        self.native.on_sent(sent, env);
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.now = self.now.max(ack.now);
        self.is_idle = ack.inflight.is_zero();
        self.rtt = ack.rtt.known_smoothed().map(|smoothed| Times {
            smoothed,
            min: ack.rtt.min,
        });
        if ack.round.start {
            self.law.on_round();
        }
        self.on_delivery(ack);
        let mut ack = *ack;
        if self.is_limited_upstream
            && let Some((rate, rtt)) = self.rate().zip(self.rtt)
        {
            let upstream = self.upstream(rtt);
            // CUBIC is tested while it is what limits the rate.
            let is_limit = rate.as_bytes_per_sec() as f64 >= upstream * 0.9;
            ack.cwnd_limited_in_round = is_limit;
            self.is_limited_upstream = upstream < TRUST * rate.as_bytes_per_sec() as f64;
        }
        self.native.on_ack(&ack, env);
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        if loss.cause != LossCause::Abandoned
            && !self.is_limited_upstream
            && let Some((rate, rtt)) = self.rate().zip(self.rtt)
        {
            self.is_limited_upstream = true;
            let filled = ByteCount::new(rate.bytes_in(rtt.smoothed));
            self.native.continue_at(filled, env);
        }
        self.native.on_loss(loss, env);
    }

    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>) {
        self.native.on_ce(ce, env);
    }

    fn on_spurious(&mut self, episode: EpisodeId, now: Instant, env: &mut Env<'_>) {
        self.native.on_spurious(episode, now, env);
    }

    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>) {
        self.native.on_persistent_congestion(now, env);
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration, env: &mut Env<'_>) {
        self.native.on_idle_restart(now, idle, env);
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.packet = env.max_datagram_size;
        self.native.on_max_datagram_size_change(env);
    }

    fn on_external_rate(&mut self, now: Instant, external: &ExternalRate, _env: &mut Env<'_>) {
        self.now = self.now.max(now);
        let left = self.config.lifetime.saturating_sub(external.age);
        if left.is_zero() {
            return;
        }
        let rtt = self.rtt.map_or(external.age, |rtt| rtt.smoothed);
        let delay = self
            .rtt
            .map_or(external.age, |rtt| self.signal_delay(external, rtt));
        self.law.on_report(now, external, delay, self.packet);
        self.report = Some(Fresh {
            report: *external,
            stale_at: now + 2 * external.interval + rtt,
            until: now + left,
        });
    }

    fn next_timer(&self) -> Option<Instant> {
        self.report
            .filter(|_| !self.is_idle)
            .map(|fresh| fresh.until)
    }

    fn on_timer(&mut self, now: Instant, env: &mut Env<'_>) {
        if self.is_idle {
            return;
        }
        if self.report.is_some_and(|fresh| fresh.until <= now) {
            let last = self.rate();
            self.now = self.now.max(now);
            self.hand_over(last, env);
        }
    }

    fn cwnd(&self) -> ByteCount {
        let Some((rate, rtt)) = self.rate().zip(self.rtt) else {
            return self.native.cwnd();
        };
        let repair = self
            .report
            .map_or(Duration::ZERO, |fresh| fresh.report.repair_time);
        let pipe = ByteCount::new(rate.bytes_in(2 * (rtt.smoothed + repair)));
        pipe.max(self.packet.times(LEAST_PACKETS)).min(MAX_WINDOW)
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        self.rate().map_or_else(
            || self.native.pacing(rtt),
            |rate| Pacing {
                rate: Some(rate),
                gain: 1.0,
                quantum: None,
            },
        )
    }

    fn set_growth_scale(&mut self, scale: f64) {
        self.native.set_growth_scale(scale);
    }

    fn can_be_coupled(&self) -> bool {
        self.native.can_be_coupled()
    }

    fn parameters(&self) -> Vec<Parameter> {
        live_parameters(&self.config, LIVE)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        set_live(&mut self.config, LIVE, settings)?;
        self.law.configure(self.config.law);
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.native.snapshot();
        if let Some(rate) = self.rate() {
            snapshot.cwnd = self.cwnd();
            snapshot.state = "following";
            snapshot
                .details
                .push(("external_bps", rate.as_bps() as f64));
        }
        snapshot
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
