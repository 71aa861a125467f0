//! Predictors by name.

use std::fmt;
use std::str::FromStr;

use swiftwater_units::text::ParseError;

use super::{
    HarmonicMean, ReceiveRate, RobustHarmonicMean, RobustReceiveRate, SendRate,
    SendRateHarmonicMean, ThroughputPredictor,
};

/// A predictor by name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PredictorKind {
    /// `hm`: [`HarmonicMean`].
    HarmonicMean,
    /// `robust-hm`: [`RobustHarmonicMean`]. With model predictive control, this is RobustMPC.
    #[default]
    RobustHarmonicMean,
    /// `recv-rate`: [`ReceiveRate`], Chorus' own.
    ReceiveRate,
    /// `robust-recv-rate`: [`RobustReceiveRate`].
    RobustReceiveRate,
    /// `send-rate`: [`SendRate`].
    SendRate,
    /// `send-rate-hm`: [`SendRateHarmonicMean`].
    SendRateHarmonicMean,
}

impl PredictorKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::HarmonicMean,
        Self::RobustHarmonicMean,
        Self::ReceiveRate,
        Self::RobustReceiveRate,
        Self::SendRate,
        Self::SendRateHarmonicMean,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HarmonicMean => "hm",
            Self::RobustHarmonicMean => "robust-hm",
            Self::ReceiveRate => "recv-rate",
            Self::RobustReceiveRate => "robust-recv-rate",
            Self::SendRate => "send-rate",
            Self::SendRateHarmonicMean => "send-rate-hm",
        }
    }

    /// A predictor of this kind without history.
    pub fn build(self) -> Box<dyn ThroughputPredictor> {
        match self {
            Self::HarmonicMean => Box::new(HarmonicMean::new()),
            Self::RobustHarmonicMean => Box::new(RobustHarmonicMean::new()),
            Self::ReceiveRate => Box::new(ReceiveRate::new()),
            Self::RobustReceiveRate => Box::new(RobustReceiveRate::new()),
            Self::SendRate => Box::new(SendRate::new()),
            Self::SendRateHarmonicMean => Box::new(SendRateHarmonicMean::new()),
        }
    }
}

impl fmt::Display for PredictorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PredictorKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let expected = "use hm, robust-hm, recv-rate, robust-recv-rate, send-rate or send-rate-hm";
        let found = Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text.trim());
        found.ok_or_else(|| ParseError::new("throughput predictor", text, expected))
    }
}
