//! The ways to choose an arm, and their names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::arm::Arm;
use crate::window::Window;

/// A linear boundary between TCP and QUIC over the network's conditions, the paper's strawman.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boundary {
    /// The constant.
    pub bias: f32,
    /// Per millisecond of mean round-trip time.
    pub rtt: f32,
    /// Per Mbit/s of the greatest rate at which a response came.
    pub bandwidth: f32,
    /// Per unit of retransmission rate, 0 to 1.
    pub loss: f32,
}

impl Boundary {
    /// The value of the linear function for the requests of a window: QUIC if it is positive. `None` if
    /// neither round-trip time nor bandwidth is known; an unknown loss counts as none.
    pub fn value(&self, window: &Window) -> Option<f32> {
        let rtt = window.mean_rtt().or(window.mean_first_byte())?;
        let bandwidth = window.bandwidth()? * 8.0 / 1e3;
        let loss = window.retransmission_rate().unwrap_or(0.0);
        Some(self.bias + self.rtt * rtt + self.bandwidth * bandwidth + self.loss * loss)
    }
}

/// How arms are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// Always this arm.
    Fixed(Arm),
    /// The arm that connects first, until it fails or the network changes: what clients do today.
    Race,
    /// A linear boundary, looked up for each request.
    Strawman(Boundary),
    /// WiseTrans, first version: the model decides.
    WiseV1 {
        /// Whether switches to the worse are undone.
        rollback: bool,
    },
    /// WiseTrans, second version: experiments decide, the model starts them.
    WiseV2 {
        /// Whether the model's score starts experiments; otherwise only new connections and networks do.
        trigger: bool,
        /// Whether switches to the worse are undone.
        rollback: bool,
    },
    /// `select+`: learns online what is quicker, without a trained model.
    Plus,
}

/// A text names no strategy.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{0}` is no strategy: wise, wise1, plus, race, or an arm such as h2 or h3")]
pub struct UnknownStrategy(pub String);

impl Strategy {
    /// WiseTrans as it should be used: its second version.
    pub fn wise() -> Self {
        Self::WiseV2 {
            trigger: true,
            rollback: true,
        }
    }

    /// WiseTrans, first version.
    pub fn wise_v1() -> Self {
        Self::WiseV1 { rollback: true }
    }

    /// Whether requests on QUIC are hedged: strategies that stand for today's clients don't.
    pub(crate) fn hedges(&self) -> bool {
        matches!(self, Self::WiseV2 { .. } | Self::Plus)
    }

    /// Whether the application's requests are sent over other arms, too, to find out which is the quickest.
    pub fn compares(&self) -> bool {
        matches!(self, Self::WiseV2 { .. } | Self::Plus)
    }

    /// Whether switches are compared afterwards.
    pub(crate) fn rolls_back(&self) -> bool {
        matches!(
            self,
            Self::WiseV1 { rollback: true } | Self::WiseV2 { rollback: true, .. }
        )
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        match text {
            "wise" | "wise2" => Ok(Self::wise()),
            "wise1" => Ok(Self::wise_v1()),
            "plus" => Ok(Self::Plus),
            "race" => Ok(Self::Race),
            other => match other.parse() {
                Ok(arm) => Ok(Self::Fixed(arm)),
                Err(_) => Err(UnknownStrategy(other.to_owned())),
            },
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(arm) => arm.name(),
            Self::Race => "race",
            Self::Strawman(_) => "strawman",
            Self::WiseV1 { rollback: true } => "wise1",
            Self::WiseV1 { rollback: false } => "wise1-no-rollback",
            Self::WiseV2 {
                trigger: true,
                rollback: true,
            } => "wise",
            Self::WiseV2 {
                trigger: false,
                rollback: true,
            } => "wise-no-trigger",
            Self::WiseV2 {
                trigger: true,
                rollback: false,
            } => "wise-no-rollback",
            Self::WiseV2 {
                trigger: false,
                rollback: false,
            } => "wise-no-trigger-no-rollback",
            Self::Plus => "plus",
        })
    }
}
