//! HyStart++ (RFC 9406), which leaves slow start on a rise of the delay before the queue overflows.
//!
//! The RFC compares the least delay of a round with that of the round before. The first packets of a
//! round meet no queue, so a queue that fills within a round is seen one doubling late, and
//! conservative slow start then adds to it for up to five rounds. By default, delays are therefore
//! judged within the round, and a large rise ends slow start at once; [`HyStartConfig::rfc9406`] does
//! neither.
//!
//! Holds only how fast to grow and when to stop; the window itself belongs to the controller, and
//! rounds and round-trip times are measured by the transport.

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use crate::controller::Env;
use crate::growth::SlowStartStep;
use crate::sample::AckBatch;

/// Constants of HyStart++ (RFC 9406, section 4.3), and what is judged otherwise than there. The
/// constants of the default are the RFC's.
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
    /// Not in the RFC: judge the samples of a quarter of a round trip, at least `n_rtt_sample`, by
    /// themselves against the path's lowest delay, instead of whole rounds against the round before.
    /// Only a rise above those of earlier rounds counts. Default true.
    pub within_round: bool,
    /// Not in the RFC, with `within_round` only: rise of the delay, as a share of the path's lowest,
    /// at which slow start ends at once, with the window that the round began with. It must also be
    /// twice that of earlier rounds, and does not end the first. Half of it starts conservative slow
    /// start, but no less than the rise that does so in the RFC. 0 or more, default 0.5; `None` for
    /// never.
    pub exit_rise: Option<f64>,
}

/// What is used unless configured.
static DEFAULT: HyStartConfig = HyStartConfig {
    within_round: true,
    exit_rise: Some(0.5),
    ..RFC_9406
};

/// The constants of the RFC (section 4.3).
const RFC_9406: HyStartConfig = HyStartConfig {
    min_rtt_thresh: Duration::from_millis(4),
    max_rtt_thresh: Duration::from_millis(16),
    min_rtt_divisor: 8,
    n_rtt_sample: 8,
    css_growth_divisor: 4,
    css_rounds: 5,
    growth_limit: None,
    step_back: false,
    within_round: false,
    exit_rise: None,
};

impl Default for HyStartConfig {
    fn default() -> Self {
        DEFAULT
    }
}

impl HyStartConfig {
    /// HyStart++ as in RFC 9406, section 4.
    pub fn rfc9406() -> Self {
        RFC_9406
    }

    /// Rise over the delay `base` that starts conservative slow start.
    fn thresh(&self, base: Duration) -> Duration {
        let share = base / self.min_rtt_divisor.max(1);
        share.min(self.max_rtt_thresh).max(self.min_rtt_thresh)
    }

    /// Rise over `base` that ends slow start at once.
    fn exit_thresh(&self, base: Duration) -> Option<Duration> {
        let share = self.exit_rise?.clamp(0.0, MAX_EXIT_RISE);
        Some(base.mul_f64(share).max(self.thresh(base) * 2))
    }
}

/// Judgements in a round trip, at most: the more samples there are, the less jitter looks like a queue.
const BLOCKS_PER_ROUND_TRIP: u32 = 4;

/// Rise that ends slow start at once, in rises of earlier rounds: with half the window a queue is less
/// than half as long, jitter is not.
const EXIT_OVER_JITTER: u32 = 2;

/// Largest rise that [`HyStartConfig::exit_rise`] can ask for.
const MAX_EXIT_RISE: f64 = 1_000.0;

/// Delays that are judged together: those of the running round, or the last few.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Delays {
    /// Arrival of the first.
    since: Instant,
    /// The least; `None` for no sample.
    min: Option<Duration>,
    count: u32,
}

impl Delays {
    const NONE: Self = Self {
        since: Instant::ZERO,
        min: None,
        count: 0,
    };

    fn add(&mut self, now: Instant, rtt: Duration) {
        if self.min.is_none() {
            self.since = now;
        }
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.count = self.count.saturating_add(1);
    }
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
    /// `None` stands for the default, which most have.
    special: Option<Box<HyStartConfig>>,
    round: Option<u64>,
    /// Where rounds are judged, `lastRoundMinRTT`, and `None` stands for the RFC's infinity. Otherwise
    /// the largest delay that was judged in the rounds before this one.
    last_round: Option<Duration>,
    /// Not where rounds are judged: the largest delay that was judged in this round.
    largest: Option<Duration>,
    /// With `currentRoundMinRTT`, where rounds are judged.
    delays: Delays,
    /// Windows at the start of the round before this one, and of this one.
    window_at_start: [ByteCount; 2],
    conservative: Option<Conservative>,
    /// Acked bytes not yet turned into growth by the division of conservative slow start.
    remainder: u64,
}

impl HyStart {
    /// HyStart++ at the beginning of slow start.
    pub fn new(config: HyStartConfig) -> Self {
        let is_special = config != DEFAULT;
        Self {
            special: is_special.then(|| Box::new(config)),
            round: None,
            last_round: None,
            largest: None,
            delays: Delays::NONE,
            window_at_start: [ByteCount::ZERO; 2],
            conservative: None,
            remainder: 0,
        }
    }

    fn config(&self) -> &HyStartConfig {
        self.special.as_deref().unwrap_or(&DEFAULT)
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
            self.delays.add(ack.now, ack.rtt.latest);
            if self.judges_exit(ack) {
                // What is acknowledged now left with no more than this, and had queued already.
                let window = self.window_at_start[1].min(cwnd);
                return SlowStartStep::Exit(self.exit_window(window));
            }
        }
        SlowStartStep::Grow(self.growth(ack.acked_bytes, env.max_datagram_size))
    }

    /// Opens round `count`; true if this ends slow start.
    fn begin_round(&mut self, cwnd: ByteCount, count: u64) -> bool {
        let first = self.round.is_none();
        self.round = Some(count);
        if self.config().within_round {
            let largest = self.largest.take().or(self.delays.min);
            self.last_round = self.last_round.max(largest);
        } else {
            self.last_round = std::mem::replace(&mut self.delays, Delays::NONE).min;
        }
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

    /// Judges what was sampled; true if it ends slow start.
    fn judges_exit(&mut self, ack: &AckBatch) -> bool {
        if self.config().within_round {
            return self.judge_samples(ack);
        }
        self.judge_round();
        false
    }

    /// Judges the round so far by the round before, as RFC 9406 does.
    fn judge_round(&mut self) {
        let (Some(last), Some(current)) = (self.last_round, self.delays.min) else {
            return;
        };
        if self.delays.count >= self.config().n_rtt_sample {
            self.on_delay(current, last.saturating_add(self.config().thresh(last)));
        }
    }

    /// Judges the last samples by the path's lowest delay, if they are enough; true if they end slow
    /// start. ACKs that were held up together say the same thing, so they must be spread over time.
    fn judge_samples(&mut self, ack: &AckBatch) -> bool {
        let (config, base) = (self.config(), ack.rtt.min);
        let span = config.thresh(base).max(base / BLOCKS_PER_ROUND_TRIP);
        let is_short = ack.now.saturating_since(self.delays.since) < span;
        if is_short || self.delays.count < config.n_rtt_sample {
            return false;
        }
        let (thresh, exit) = (config.thresh(base), config.exit_thresh(base));
        let current = std::mem::replace(&mut self.delays, Delays::NONE).min;
        let current = current.unwrap_or(base);
        self.largest = self.largest.max(Some(current));
        // The largest rise of earlier rounds; without a round before there is no measure of jitter.
        let before = self.last_round.map(|before| before.saturating_sub(base));
        let rise = exit.map_or(thresh, |exit| exit / 2);
        let rise = rise.max(before.unwrap_or_default());
        self.on_delay(current, base.saturating_add(rise));
        let exit = exit.zip(before);
        let exit = exit.map(|(exit, before)| exit.max(before * EXIT_OVER_JITTER));
        exit.is_some_and(|rise| current >= base.saturating_add(rise))
    }

    /// Enters conservative slow start if the delay has risen to `risen`, and leaves it if the rise has
    /// gone.
    fn on_delay(&mut self, current: Duration, risen: Duration) {
        if let Some(css) = self.conservative {
            if current < css.baseline {
                self.conservative = None;
            }
            return;
        }
        if current >= risen {
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
