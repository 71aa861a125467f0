//! What a selector is made of.

use thiserror::Error;

use crate::arm::Arm;
use crate::parameters::{ParameterError, Parameters};
use crate::strategy::Strategy;

/// Most arms of a selector.
const MAX_ARMS: usize = 8;

/// Arms, strategy and parameters of a selector.
#[derive(Clone, Debug)]
pub struct Config {
    /// The arms, 1 to 8, TCP first: experiments go through them in this order, and TCP arms are fallen back
    /// to in this order.
    pub arms: Vec<Arm>,
    /// How to choose.
    pub strategy: Strategy,
    /// The constants.
    pub parameters: Parameters,
}

/// Why a selector can't be made.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// None or too many arms.
    #[error("a selector has 1 to 8 arms, not {0}")]
    Arms(usize),
    /// An arm is listed twice.
    #[error("the arm {0} is listed twice")]
    Twice(Arm),
    /// The strategy's fixed arm is not listed.
    #[error("the fixed arm {0} is not in the list of arms")]
    NotListed(Arm),
    /// A parameter is wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl Config {
    /// A configuration with default parameters.
    pub fn new(arms: Vec<Arm>, strategy: Strategy) -> Self {
        Self {
            arms,
            strategy,
            parameters: Parameters::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_ARMS).contains(&self.arms.len()) {
            return Err(ConfigError::Arms(self.arms.len()));
        }
        for (position, arm) in self.arms.iter().enumerate() {
            if self.arms[..position].contains(arm) {
                return Err(ConfigError::Twice(arm.clone()));
            }
        }
        if let Strategy::Fixed(arm) = &self.strategy
            && !self.arms.contains(arm)
        {
            return Err(ConfigError::NotListed(arm.clone()));
        }
        Ok(self.parameters.check()?)
    }
}
