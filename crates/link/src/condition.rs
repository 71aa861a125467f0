//! Faults of a link that begin and end while it is in use.

use crate::config::LinkConfigError;
use crate::random::{Chance, Purpose, Stream};

/// The largest factor by which a fault lengthens delays.
const MAX_DELAY_FACTOR: f64 = 1000.0;

/// What is wrong with a link at present, on top of its configuration. The default is nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCondition {
    /// Nothing that is sent into the link arrives. What is on the link already does.
    pub cut: bool,
    /// Additional random loss after the queue, a share of the packets, 0 to 1.
    pub loss: f64,
    /// Propagation delay and jitter are this many times as long, 1 to 1000.
    pub delay_factor: f64,
}

impl Default for LinkCondition {
    fn default() -> Self {
        Self {
            cut: false,
            loss: 0.0,
            delay_factor: 1.0,
        }
    }
}

impl LinkCondition {
    /// Checks that every value is in its range.
    pub fn validate(&self) -> Result<(), LinkConfigError> {
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(LinkConfigError::Probability {
                field: "condition: loss",
                value: self.loss,
            });
        }
        if !(1.0..=MAX_DELAY_FACTOR).contains(&self.delay_factor) {
            return Err(LinkConfigError::DelayFactor {
                value: self.delay_factor,
            });
        }
        Ok(())
    }
}

/// A condition in force. The random numbers of its loss go on when it changes.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) condition: LinkCondition,
    loss: Chance,
    stream: Stream,
}

impl Fault {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            condition: LinkCondition::default(),
            loss: Chance::Never,
            stream: Stream::new(seed, Purpose::Condition),
        }
    }

    pub(crate) fn set(&mut self, condition: LinkCondition) {
        self.condition = condition;
        self.loss = Chance::new(condition.loss);
    }

    /// Whether the next packet is lost.
    pub(crate) fn draw(&mut self) -> bool {
        self.loss.draw(&mut self.stream)
    }

    /// A delay in nanoseconds, as long as it is at present.
    pub(crate) fn lengthened(&self, delay: u64) -> u64 {
        if self.condition.delay_factor > 1.0 {
            (delay as f64 * self.condition.delay_factor) as u64
        } else {
            delay
        }
    }
}
