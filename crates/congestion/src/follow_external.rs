//! A controller that follows a rate measured elsewhere, and is CUBIC without one.
//!
//! A tunnel that carries the path's packets and repairs their losses measures their bottleneck better
//! than the inner connection can. While its reports are fresh, packets are paced at
//! `rate - (queue - target) / theta`: what the tunnel can carry, less what drains its queue within
//! `theta`, two round-trip times. That law is stable for `theta` above 2/pi round-trip times and does
//! not overshoot above `e` of them. Losses and RTT samples don't matter then; the window is only a
//! guard, two round trips' worth. CUBIC runs along, so that it takes over when reports cease.

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError, tunable};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::controller::{Controller, ControllerFactory, Env, ExternalRate, Pacing, Snapshot};
use crate::cubic::{Cubic, CubicConfig};
use crate::growth::MAX_WINDOW;
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};

/// Packets of the least window.
const LEAST_PACKETS: u64 = 10;

/// Round-trip times within which a queue is drained.
const DRAIN_RTTS: u32 = 2;

/// Parameters of [`FollowExternal`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowExternalConfig {
    /// Time for which a report counts, its age included. Range 1 ms to 10 s, default 200 ms.
    pub lifetime: Duration,
    /// Queue that is left standing, as time at the reported rate. Range 0 to 1 s, default 5 ms.
    pub target: Duration,
    /// CUBIC's parameters.
    pub cubic: CubicConfig,
}

impl Default for FollowExternalConfig {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_millis(200),
            target: Duration::from_millis(5),
            cubic: CubicConfig::default(),
        }
    }
}

tunable!(FollowExternalConfig {
    "lifetime" => lifetime in Duration::from_millis(1)..=Duration::from_secs(10),
        "time for which a report counts";
    "target" => target in Duration::ZERO..=Duration::from_secs(1),
        "queue that is left standing, as time at the reported rate";
    ..cubic;
});

/// Parameters that can be changed while the controller runs.
const LIVE: &[&str] = &["lifetime", "target"];

impl ControllerFactory for FollowExternalConfig {
    fn name(&self) -> &'static str {
        "follow-external"
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(FollowExternal {
            config: *self,
            native: self.cubic.controller(env),
            report: None,
            now: Instant::ZERO,
            smoothed_rtt: None,
            least_window: least_window(env),
        })
    }
}

fn least_window(env: &Env<'_>) -> ByteCount {
    env.max_datagram_size.times(LEAST_PACKETS)
}

/// See the module's documentation. In the catalogue as `follow-external`.
#[derive(Clone, Debug)]
pub struct FollowExternal {
    config: FollowExternalConfig,
    native: Cubic,
    /// The newest report, and until when it counts.
    report: Option<(ExternalRate, Instant)>,
    /// The newest time seen.
    now: Instant,
    smoothed_rtt: Option<Duration>,
    least_window: ByteCount,
}

impl FollowExternal {
    /// The rate to follow, if there is a fresh one.
    fn rate(&self) -> Option<Bandwidth> {
        let (report, _) = self.report.filter(|(_, until)| *until > self.now)?;
        let drain = DRAIN_RTTS * self.smoothed_rtt?;
        let target = report.rate.bytes_in(self.config.target);
        let (queue, rate) = (report.queue.get(), report.rate.as_bytes_per_sec());
        let correction = Bandwidth::from_transfer(queue.abs_diff(target), drain);
        let correction = correction.as_bytes_per_sec();
        let rate = if queue > target {
            rate.saturating_sub(correction)
        } else {
            rate.saturating_add(correction)
        };
        // Two packets per round trip, so that there always is an answer.
        let least =
            Bandwidth::from_transfer(self.least_window.get() / LEAST_PACKETS * 2, drain / 2);
        Some(Bandwidth::from_bytes_per_sec(rate).max(least))
    }
}

impl Controller for FollowExternal {
    fn name(&self) -> &'static str {
        "follow-external"
    }

    fn on_sent(&mut self, sent: &SentInfo, env: &mut Env<'_>) {
        self.now = self.now.max(sent.now);
        self.native.on_sent(sent, env);
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.now = self.now.max(ack.now);
        self.smoothed_rtt = ack.rtt.known_smoothed();
        self.native.on_ack(ack, env);
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
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
        self.least_window = least_window(env);
        self.native.on_max_datagram_size_change(env);
    }

    fn on_external_rate(&mut self, now: Instant, external: &ExternalRate, _env: &mut Env<'_>) {
        self.now = self.now.max(now);
        let left = self.config.lifetime.saturating_sub(external.age);
        self.report = Some((*external, now + left));
    }

    fn next_timer(&self) -> Option<Instant> {
        self.report.map(|(_, until)| until)
    }

    fn on_timer(&mut self, now: Instant, _env: &mut Env<'_>) {
        self.now = self.now.max(now);
        self.report.take_if(|(_, until)| *until <= now);
    }

    fn cwnd(&self) -> ByteCount {
        let Some((rate, rtt)) = self.rate().zip(self.smoothed_rtt) else {
            return self.native.cwnd();
        };
        let pipe = ByteCount::new(rate.bytes_in(2 * rtt));
        pipe.max(self.least_window).min(MAX_WINDOW)
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
        set_live(&mut self.config, LIVE, settings)
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
