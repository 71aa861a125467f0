//! Random loss: independent, or in bursts.

use std::fmt;
use std::time::Duration;

use swiftwater_units::Instant;

use crate::gilbert::SteppedStates;
use crate::random::{Chance, Purpose, Stream};

/// Random loss of packets, after the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// No random loss.
    #[default]
    None,
    /// Each packet is lost with this probability, independent of the others.
    Bernoulli(f64),
    /// The model of Gilbert and Elliott: a good and a bad state, each with its own probability. The
    /// link starts in the good state; after each packet the state may change.
    ///
    /// The share of time in the bad state is `p / (p + r)`; with `k` = 1 and `h` = 0 that is also
    /// the loss rate, and bursts are `1 / r` packets long on average.
    GilbertElliott {
        /// Probability of going from good to bad, per packet.
        p: f64,
        /// Probability of going from bad to good, per packet.
        r: f64,
        /// Probability that a packet *survives* the bad state (usually 0).
        h: f64,
        /// Probability that a packet *survives* the good state (usually 1).
        k: f64,
    },
    /// As [`LossModel::GilbertElliott`], but the state changes with time, not with packets: it is
    /// drawn at the end of every `step`, with or without packets, and depends on the seed and the
    /// number of the step only. The first step is good.
    ///
    /// Runs of bad steps are `1 / r` steps long on average; how many packets that is depends on the
    /// traffic. Tambur's and AutoRec's evaluations use steps of 30 ms.
    GilbertElliottStepped {
        /// Probability of going from good to bad, per step.
        p: f64,
        /// Probability of going from bad to good, per step.
        r: f64,
        /// Probability that a packet *survives* the bad state.
        h: f64,
        /// Probability that a packet *survives* the good state.
        k: f64,
        /// Length of a step, 1 ms to a day.
        step: Duration,
    },
}

/// The shortest step: the states of a long time without packets are computed step by step.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(24 * 60 * 60);

impl LossModel {
    /// The long-term share of packets lost; with steps, for evenly spaced packets.
    pub fn mean_loss(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Bernoulli(probability) => probability,
            Self::GilbertElliott { p, r, h, k }
            | Self::GilbertElliottStepped { p, r, h, k, .. } => {
                let bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
                bad * (1.0 - h) + (1.0 - bad) * (1.0 - k)
            }
        }
    }

    /// The first parameter that isn't a probability, with its name.
    pub(crate) fn invalid(&self) -> Option<(&'static str, f64)> {
        let parameters: &[(&'static str, f64)] = match *self {
            Self::None => &[],
            Self::Bernoulli(probability) => &[("loss", probability)],
            Self::GilbertElliott { p, r, h, k }
            | Self::GilbertElliottStepped { p, r, h, k, .. } => &[
                ("loss: p", p),
                ("loss: r", r),
                ("loss: h", h),
                ("loss: k", k),
            ],
        };
        parameters
            .iter()
            .copied()
            .find(|(_, value)| !(0.0..=1.0).contains(value))
    }

    /// The length of its steps if it is out of range.
    pub(crate) fn invalid_step(&self) -> Option<Duration> {
        match *self {
            Self::GilbertElliottStepped { step, .. } => {
                Some(step).filter(|step| !(SHORTEST_STEP..=LONGEST_STEP).contains(step))
            }
            _ => None,
        }
    }
}

impl fmt::Display for LossModel {
    /// The format that `FromStr` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bernoulli(probability) => write!(f, "{probability}"),
            Self::GilbertElliott { p, r, h, k } => write!(f, "ge:{p},{r},{h},{k}"),
            Self::GilbertElliottStepped { p, r, h, k, step } => {
                write!(f, "ge:{p},{r},{h},{k}@{step:?}")
            }
        }
    }
}

/// The process of a loss model.
#[derive(Debug)]
pub(crate) struct LossProcess {
    stream: Stream,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Bernoulli(Chance),
    GilbertElliott {
        bad: bool,
        to_bad: Chance,
        to_good: Chance,
        lost_bad: Chance,
        lost_good: Chance,
    },
    Stepped {
        states: Box<SteppedStates>,
        lost_bad: f64,
        lost_good: f64,
    },
}

impl LossProcess {
    /// The process of a link that starts at `start`; `None` if the model never loses anything.
    pub(crate) fn new(model: LossModel, seed: u64, start: Instant) -> Option<Self> {
        let kind = match model {
            LossModel::None => return None,
            LossModel::Bernoulli(probability) => {
                let chance = Chance::new(probability);
                if chance.is_never() {
                    return None;
                }
                Kind::Bernoulli(chance)
            }
            LossModel::GilbertElliott { p, r, h, k } => Kind::GilbertElliott {
                bad: false,
                to_bad: Chance::new(p),
                to_good: Chance::new(r),
                lost_bad: Chance::new(1.0 - h),
                lost_good: Chance::new(1.0 - k),
            },
            LossModel::GilbertElliottStepped { p, r, h, k, step } => Kind::Stepped {
                states: Box::new(SteppedStates::new(seed, p, r, step, start)),
                lost_bad: 1.0 - h,
                lost_good: 1.0 - k,
            },
        };
        Some(Self {
            stream: Stream::new(seed, Purpose::Loss),
            kind,
        })
    }

    /// Whether the next packet, which leaves the queue at `departure`, is lost.
    pub(crate) fn draw(&mut self, departure: Instant) -> bool {
        let stream = &mut self.stream;
        match &mut self.kind {
            Kind::Bernoulli(chance) => chance.draw(stream),
            Kind::GilbertElliott {
                bad,
                to_bad,
                to_good,
                lost_bad,
                lost_good,
            } => {
                let (loss, change) = if *bad {
                    (*lost_bad, *to_good)
                } else {
                    (*lost_good, *to_bad)
                };
                let lost = loss.draw(stream);
                *bad ^= change.draw(stream);
                lost
            }
            Kind::Stepped {
                states,
                lost_bad,
                lost_good,
            } => {
                let is_bad = states.is_bad(departure);
                let chance = if is_bad { *lost_bad } else { *lost_good };
                // Always one draw, in any state, so that another model uses the same numbers.
                stream.unit() < chance
            }
        }
    }
}
