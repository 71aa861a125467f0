//! The Gilbert-Elliott channel with steps in time, as in the evaluations of Tambur and AutoRec: the
//! state is drawn every few ms, not for each packet. A link follows it through its loss trace.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_link::{Trace, TraceError, TraceSample};
use thiserror::Error;

/// Parameters of the channel. All probabilities from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteppedLoss {
    /// Duration of a step. 30 ms in both papers.
    pub step: Duration,
    /// Probability of going from good to bad, per step.
    pub to_bad: f64,
    /// Probability of going from bad to good, per step.
    pub to_good: f64,
    /// Probability of losing a packet in the good state.
    pub good_loss: f64,
    /// Probability of losing a packet in the bad state.
    pub bad_loss: f64,
}

/// Why the channel is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SteppedLossError {
    /// A probability is out of range.
    #[error("{field} is {value}; a probability must be from 0 to 1")]
    Probability {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// The step is zero, or the trace would have too many steps.
    #[error("a channel of {duration:?} in steps of {step:?} must have 1 to 1000000 steps")]
    Steps {
        /// The length of the trace.
        duration: Duration,
        /// The step.
        step: Duration,
    },
    /// No trace can be made of it.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl SteppedLoss {
    /// The channel of the AutoRec paper's comparison with Tambur: steps of 30 ms, 20 % to bad, 80 %
    /// to good, 1 % loss while good.
    pub const fn autorec(bad_loss: f64) -> Self {
        Self {
            step: Duration::from_millis(30),
            to_bad: 0.2,
            to_good: 0.8,
            good_loss: 0.01,
            bad_loss,
        }
    }

    /// The long-term share of packets lost.
    pub fn mean_loss(&self) -> f64 {
        let changes = self.to_bad + self.to_good;
        let bad = if changes > 0.0 {
            self.to_bad / changes
        } else {
            0.0
        };
        bad * self.bad_loss + (1.0 - bad) * self.good_loss
    }

    /// One realisation of the channel, from the good state on, as a trace with a loss column; for
    /// `LinkConfig::loss_trace`. It repeats after `duration`, rounded up to whole steps.
    pub fn trace(&self, duration: Duration, seed: u64) -> Result<Trace, SteppedLossError> {
        for (field, value) in [
            ("to_bad", self.to_bad),
            ("to_good", self.to_good),
            ("good_loss", self.good_loss),
            ("bad_loss", self.bad_loss),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(SteppedLossError::Probability { field, value });
            }
        }
        let steps = match self.step.as_nanos() {
            0 => 0,
            step => duration.as_nanos().div_ceil(step),
        };
        if !(1..=1_000_000).contains(&steps) {
            let step = self.step;
            return Err(SteppedLossError::Steps { duration, step });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut is_bad = false;
        let samples = (0..steps as u32).map(|number| {
            let loss = if is_bad {
                self.bad_loss
            } else {
                self.good_loss
            };
            let change = if is_bad { self.to_good } else { self.to_bad };
            let drawn = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            is_bad ^= drawn < change;
            TraceSample {
                at: self.step * number,
                loss: Some(loss),
                ..TraceSample::default()
            }
        });
        let samples: Vec<_> = samples.collect();
        Ok(Trace::from_samples(&samples, Some(self.step))?)
    }
}
