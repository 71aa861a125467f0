//! Performance classes of paths: how good a path is at present, in four steps.

use std::time::Duration;

use swiftwater_quic::policy::PathView;
use swiftwater_tunable::tunable;
use swiftwater_units::{Bandwidth, Instant, PathId};

use super::loss_meter::LossMeter;
use super::per_path::PerPath;

/// Least time between two readings of the loss rates.
const READING: Duration = Duration::from_millis(5);

/// How good a path is at present; the better, the smaller.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PathClass {
    /// No threshold is exceeded.
    High,
    /// Long round-trip times, a low rate or losses.
    Mid,
    /// Not worth sending on while there is another.
    Low,
    /// Probes go unanswered: whether anything arrives is not known.
    Silent,
}

/// Thresholds of the classes, those of XQUIC's multipath schedulers where not said otherwise.
///
/// A path is [`PathClass::Silent`] if `max_pto` probe timeouts in a row went unanswered: unlike in XQUIC not of
/// the same class as a path with losses, which carries data then. It is [`PathClass::Low`] if its round-trip
/// time is above `high_rtt`, or its loss rate is above `high_loss`, [`PathClass::Mid`] if it is neither and its
/// round-trip time is above `low_rtt` or `rtt_ratio` times the least one of all paths, or its rate is
/// below `low_rate`, or its loss rate is above `low_loss`. Before the first RTT sample the round-trip time
/// says nothing.
///
/// The loss rate is counted over periods of four round-trip times, 100 ms and 20 datagrams at least, of which
/// the last two count. The larger of the two makes a path `Mid`; `Low`, unlike in XQUIC, takes both, since
/// the losses at the end of slow start would exclude a good path, and counts only losses that no queue of the path
/// itself explains (`loss_queue`): BBRv1 loses more than a fifth while it starts up, object after object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathClassConfig {
    /// Smoothed and latest RTT above which a path is low; default 2 s.
    pub high_rtt: Duration,
    /// Smoothed RTT above which a path is not high; default 500 ms.
    pub low_rtt: Duration,
    /// The same in least smoothed round-trip times of all paths, 1 to 100; default 3.
    pub rtt_ratio: f64,
    /// Estimated rate below which a path is not high. Default 0 (off): of a path that the application or the
    /// scheduler uses little, the estimate says how much that is. XQUIC has 3 Mbit/s.
    pub low_rate: Bandwidth,
    /// Loss rate above which a path is low, 0 to 1; default 0.2. XQUIC has 0.3, and sends on low paths whenever
    /// the others have no room.
    pub high_loss: f64,
    /// Smoothed round-trip time, in least ones of the path, above which losses do not make it low, since its queue
    /// overflows; 1 or more, or none: all losses count. Default 1.25.
    pub loss_queue: Option<f64>,
    /// Least delay of such a queue, by which the smoothed round-trip time must be above the least one; default 10 ms:
    /// on a near path delayed acknowledgements alone add a quarter.
    pub loss_queue_delay: Duration,
    /// Loss rate above which a path is not high, 0 to 1; default 0.1.
    pub low_loss: f64,
    /// Probe timeouts in a row from which a path is silent, 1 to 10; default 1: with several paths the timeout
    /// runs from the last acknowledgement, and what was in flight leaves on the others. XQUIC has 2.
    pub max_pto: u32,
    /// Time after which a path that is excluded for its losses gets another trial, whatever it carries meanwhile;
    /// and time without a datagram after which one with too long a round-trip time, or a silent one with nothing in
    /// flight, does; default 10 s.
    pub retry: Duration,
}

impl Default for PathClassConfig {
    fn default() -> Self {
        Self {
            high_rtt: Duration::from_secs(2),
            low_rtt: Duration::from_millis(500),
            rtt_ratio: 3.0,
            low_rate: Bandwidth::ZERO,
            high_loss: 0.2,
            loss_queue: Some(1.25),
            loss_queue_delay: Duration::from_millis(10),
            low_loss: 0.1,
            max_pto: 1,
            retry: Duration::from_secs(10),
        }
    }
}

tunable!(PathClassConfig {
    "rtt-high" => high_rtt in Duration::from_millis(1)..=Duration::from_secs(60),
        "round-trip time above which a path is low";
    "rtt-low" => low_rtt in Duration::from_millis(1)..=Duration::from_secs(60),
        "round-trip time above which a path is not high";
    "rtt-ratio" => rtt_ratio in 1.0..=100.0, "the same, in least round-trip times of all paths";
    "rate-low" => low_rate, "rate below which a path is not high";
    "loss-high" => high_loss in 0.0..=1.0, "loss rate above which a path is low";
    "loss-queue" => loss_queue,
        "least round-trip times of the path above which its queue explains losses, which don't make it low then";
    "loss-queue-delay" => loss_queue_delay in Duration::ZERO..=Duration::from_secs(10), "least delay of that queue";
    "loss-low" => low_loss in 0.0..=1.0, "loss rate above which a path is not high";
    "max-pto" => max_pto in 1_u32..=10, "probe timeouts in a row from which a path is silent";
    "retry" => retry in Duration::from_millis(100)..=Duration::from_secs(600),
        "time after which a low path gets another trial";
});

impl PathClassConfig {
    /// True if a queue stands on the path that explains losses.
    fn is_queued(&self, path: &PathView) -> bool {
        let (rtt, least) = (path.smoothed_rtt, path.min_rtt);
        let is_long = |ratio| rtt.as_secs_f64() > ratio * least.as_secs_f64();
        path.has_rtt_sample
            && self.loss_queue.is_some_and(is_long)
            && rtt.saturating_sub(least) > self.loss_queue_delay
    }
}

/// Classes of the paths of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct PathClasses {
    config: PathClassConfig,
    losses: PerPath<LossMeter>,
    /// When the loss rates are to be read again.
    read_at: Instant,
    /// Smoothed RTT above which a path is not high; `None` while none of the last views has a sample.
    far: Option<Duration>,
}

impl PathClasses {
    pub(super) fn new(config: PathClassConfig) -> Self {
        Self {
            config,
            losses: PerPath::default(),
            read_at: Instant::ZERO,
            far: None,
        }
    }

    /// A datagram left on a path.
    pub(super) fn on_sent(&mut self, now: Instant, path: PathId) {
        self.losses
            .get_or_insert_with(path, LossMeter::default)
            .on_sent(now);
    }

    /// Reads the views that the next questions are about.
    pub(super) fn observe(&mut self, now: Instant, paths: &[PathView]) {
        let measured = paths
            .iter()
            .filter(|path| path.is_usable() && path.has_rtt_sample);
        let least = measured.map(|path| path.smoothed_rtt).min();
        let (ratio, low_rtt) = (self.config.rtt_ratio, self.config.low_rtt);
        self.far = least.map(|least| least.mul_f64(ratio).min(low_rtt));
        if now >= self.read_at {
            self.read_at = now + READING;
            self.read_losses(now, paths);
        }
    }

    fn read_losses(&mut self, now: Instant, paths: &[PathView]) {
        self.losses.keep(paths);
        let (limit, retry) = (self.config.high_loss, self.config.retry);
        for path in paths {
            let Some(meter) = self.losses.get_mut(path.id) else {
                continue;
            };
            meter.observe(now, path, self.config.is_queued(path));
            meter.judge(now, limit, retry);
        }
    }

    /// The class of a path, after [`PathClasses::observe`].
    pub(super) fn class(&self, now: Instant, path: &PathView) -> PathClass {
        let config = &self.config;
        let meter = self.losses.get(path.id);
        let on_trial = meter
            .and_then(|meter| meter.unused_for(now))
            .is_some_and(|unused| unused >= config.retry);
        let rtt = path.smoothed_rtt;
        let is_late = path.has_rtt_sample && rtt.min(path.latest_rtt) > config.high_rtt;
        let is_excluded = meter.is_some_and(LossMeter::is_excluded);
        // With nothing in flight no answer comes by itself.
        let is_tried = on_trial && path.bytes_in_flight.is_zero();
        if path.pto_count >= config.max_pto && !is_tried {
            return PathClass::Silent;
        }
        if is_excluded || (is_late && !on_trial) {
            return PathClass::Low;
        }
        let is_far = path.has_rtt_sample && self.far.is_some_and(|far| rtt > far);
        let loses = meter.is_some_and(|meter| meter.larger() > config.low_loss);
        // Most leave the threshold off, and the estimate is a division.
        let is_slow = !config.low_rate.is_zero() && path.estimated_rate() < config.low_rate;
        if is_far || loses || is_slow {
            PathClass::Mid
        } else {
            PathClass::High
        }
    }
}
