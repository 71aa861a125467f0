//! Slow start: the standard one and HyStart++ (RFC 9406), which leaves it on a rise of the delay
//! before the queue overflows.
//!
//! Holds only how fast to grow and when to stop; the window itself belongs to the controller, and
//! rounds and round-trip times are measured by the transport.

use std::time::Duration;

use swiftwater_units::ByteCount;

use crate::controller::Env;
use crate::sample::AckBatch;
use swiftwater_tunable::parameters::OptionalValue;

/// Constants of HyStart++ (RFC 9406, section 4.3). The default has the RFC's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartConfig {
    /// `MIN_RTT_THRESH`: smallest rise of the delay that counts. Default 4 ms.
    pub min_rtt_thresh: Duration,
    /// `MAX_RTT_THRESH`: largest rise that is needed. Default 16 ms.
    pub max_rtt_thresh: Duration,
    /// `MIN_RTT_DIVISOR`: share of the last round's delay that counts as a rise, 1 or more.
    /// Default 8.
    pub min_rtt_divisor: u32,
    /// `N_RTT_SAMPLE`: samples that a round needs before it is judged. Default 8.
    pub n_rtt_sample: u32,
    /// `CSS_GROWTH_DIVISOR`: how much slower conservative slow start grows, 1 or more. Default 4.
    pub css_growth_divisor: u32,
    /// `CSS_ROUNDS`: rounds of conservative slow start before it ends. Default 5.
    pub css_rounds: u32,
    /// `L`: most packets that one ACK may add; `None`, the default, sets no limit, as the RFC specifies
    /// for paced senders.
    pub growth_limit: Option<u64>,
    /// Not in the RFC: on leaving slow start go back to the window whose packets first met the
    /// higher delay, because all that was added since then stands in the queue. Default false.
    pub step_back: bool,
}

/// The constants of the RFC (section 4.3).
static RFC_9406: HyStartConfig = HyStartConfig {
    min_rtt_thresh: Duration::from_millis(4),
    max_rtt_thresh: Duration::from_millis(16),
    min_rtt_divisor: 8,
    n_rtt_sample: 8,
    css_growth_divisor: 4,
    css_rounds: 5,
    growth_limit: None,
    step_back: false,
};

impl Default for HyStartConfig {
    fn default() -> Self {
        RFC_9406
    }
}

/// Whether slow start is HyStart++, for parameters by name: `off`, `on` (the RFC's constants) or
/// `step-back` (and [`HyStartConfig::step_back`]).
impl OptionalValue for HyStartConfig {
    fn read_optional(text: &str) -> Option<Option<Self>> {
        match text {
            "off" => Some(None),
            "on" => Some(Some(HyStartConfig::default())),
            "step-back" => Some(Some(HyStartConfig {
                step_back: true,
                ..HyStartConfig::default()
            })),
            _ => None,
        }
    }

    fn write_optional(value: Option<&Self>) -> String {
        match value {
            None => "off",
            Some(HyStartConfig {
                step_back: true, ..
            }) => "step-back",
            Some(_) => "on",
        }
        .to_owned()
    }

    fn accepts_optional() -> String {
        "on, step-back or off".to_owned()
    }
}

/// What slow start makes of an ACK.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlowStartStep {
    /// Stay in slow start, with the window larger by this much.
    Grow(ByteCount),
    /// Leave slow start with this window.
    Exit(ByteCount),
}

/// Conservative slow start: the delay rose, and it is being checked whether it stays up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline: Duration,
    /// Rounds completed, the one it began in included.
    rounds: u32,
    /// Window when the packets were sent that saw the delay rise.
    window_before: ByteCount,
}

/// HyStart++ for one slow start.
#[derive(Clone, Debug, PartialEq)]
pub struct HyStart {
    /// `None` stands for the RFC's constants, which most have.
    special: Option<Box<HyStartConfig>>,
    round: Option<u64>,
    /// `lastRoundMinRTT`; `None` stands for the RFC's infinity.
    last_round_min: Option<Duration>,
    /// `currentRoundMinRTT`.
    current_round_min: Option<Duration>,
    samples: u32,
    /// Windows at the start of the round before this one, and of this one.
    window_at_start: [ByteCount; 2],
    conservative: Option<Conservative>,
    /// Acked bytes not yet turned into growth by the division of conservative slow start.
    remainder: u64,
}

impl HyStart {
    /// HyStart++ at the beginning of slow start.
    pub fn new(config: HyStartConfig) -> Self {
        let is_special = config != RFC_9406;
        Self {
            special: is_special.then(|| Box::new(config)),
            round: None,
            last_round_min: None,
            current_round_min: None,
            samples: 0,
            window_at_start: [ByteCount::ZERO; 2],
            conservative: None,
            remainder: 0,
        }
    }

    fn config(&self) -> &HyStartConfig {
        self.special.as_deref().unwrap_or(&RFC_9406)
    }

    /// True in conservative slow start.
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Takes in an ACK of a flow that uses its window `cwnd`.
    pub fn on_ack(&mut self, cwnd: ByteCount, ack: &AckBatch, env: &Env<'_>) -> SlowStartStep {
        if self.round != Some(ack.round.count) && self.begin_round(cwnd, ack.round.count) {
            return SlowStartStep::Exit(self.exit_window(cwnd));
        }
        if ack.rtt.has_sample {
            let latest = ack.rtt.latest;
            self.current_round_min =
                Some(self.current_round_min.map_or(latest, |min| min.min(latest)));
            self.samples = self.samples.saturating_add(1);
            self.judge_delay();
        }
        SlowStartStep::Grow(self.growth(ack.acked_bytes, env.max_datagram_size))
    }

    /// Opens round `count`; true if this ends slow start.
    fn begin_round(&mut self, cwnd: ByteCount, count: u64) -> bool {
        let first = self.round.is_none();
        self.round = Some(count);
        self.last_round_min = self.current_round_min.take();
        self.samples = 0;
        self.window_at_start = [self.window_at_start[1], cwnd];
        let css_rounds = self.config().css_rounds;
        match &mut self.conservative {
            Some(css) if !first => {
                css.rounds = css.rounds.saturating_add(1);
                css.rounds >= css_rounds
            }
            _ => false,
        }
    }

    fn exit_window(&self, cwnd: ByteCount) -> ByteCount {
        match self.conservative {
            Some(css) if self.config().step_back => css.window_before.min(cwnd),
            _ => cwnd,
        }
    }

    /// Enters conservative slow start on a rise of the delay, and leaves it if the rise has gone.
    fn judge_delay(&mut self) {
        let (Some(last), Some(current)) = (self.last_round_min, self.current_round_min) else {
            return;
        };
        if self.samples < self.config().n_rtt_sample {
            return;
        }
        if let Some(css) = self.conservative {
            if current < css.baseline {
                self.conservative = None;
            }
            return;
        }
        let &HyStartConfig {
            min_rtt_thresh,
            max_rtt_thresh,
            min_rtt_divisor,
            ..
        } = self.config();
        let share = last / min_rtt_divisor.max(1);
        let thresh = share.min(max_rtt_thresh).max(min_rtt_thresh);
        if current >= last.saturating_add(thresh) {
            self.conservative = Some(Conservative {
                baseline: current,
                rounds: 0,
                // Packets acknowledged in this round left in the one before.
                window_before: self.window_at_start[0],
            });
            self.remainder = 0;
        }
    }

    fn growth(&mut self, acked: ByteCount, max_datagram_size: ByteCount) -> ByteCount {
        let config = self.config();
        let limit = config
            .growth_limit
            .map_or(ByteCount::MAX, |l| max_datagram_size.times(l));
        let acked = acked.min(limit);
        if self.conservative.is_none() {
            return acked;
        }
        let divisor = u64::from(config.css_growth_divisor.max(1));
        let due = self.remainder.saturating_add(acked.get());
        self.remainder = due % divisor;
        ByteCount::new(due / divisor)
    }
}

/// How a controller grows its window below the slow-start threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SlowStart {
    /// One byte for each byte acknowledged (RFC 9002, section 7.3.1).
    #[default]
    Standard,
    /// HyStart++; only for the first slow start of a path (RFC 9406, section 4.3).
    HyStart(HyStart),
}

impl SlowStart {
    /// The first slow start of a path: HyStart++ if there is a configuration for it.
    pub fn first(hystart: Option<HyStartConfig>) -> Self {
        hystart.map_or(Self::Standard, |config| Self::HyStart(HyStart::new(config)))
    }

    /// Takes in an ACK of a flow that uses its window `cwnd`.
    pub fn on_ack(&mut self, cwnd: ByteCount, ack: &AckBatch, env: &Env<'_>) -> SlowStartStep {
        match self {
            Self::Standard => SlowStartStep::Grow(ack.acked_bytes),
            Self::HyStart(hystart) => hystart.on_ack(cwnd, ack, env),
        }
    }

    /// Name of the phase, for logs.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::HyStart(hystart) if hystart.is_conservative() => "conservative_slow_start",
            _ => "slow_start",
        }
    }
}
