//! The features of a network that models are given.

use std::fmt;

/// The seven features of the paper's Table I. Times are in milliseconds and rates in bytes per
/// millisecond; a value that is not known is NaN.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Feature {
    /// Sent again / sent in the window, by the server as far as is known, 0 to 1.
    RetranRate = 0,
    /// Mean time to first byte in the window, ms.
    TtfbAvg = 1,
    /// Mean round-trip time in the window, ms.
    RttAvg = 2,
    /// Time to first byte of the last request, ms.
    Ttfb = 3,
    /// Bytes received / (last byte − first byte) of the last request, bytes per ms.
    RespRecG = 4,
    /// Time to first byte / its mean.
    TtfbRate = 5,
    /// Bytes received / completion time of the last request, bytes per ms.
    ReqCmplG = 6,
}

impl Feature {
    /// Number of features.
    pub const COUNT: usize = 7;

    /// All features, in the order of the paper's ranking for TCP.
    pub const ALL: [Self; Self::COUNT] = [
        Self::RetranRate,
        Self::TtfbAvg,
        Self::RttAvg,
        Self::Ttfb,
        Self::RespRecG,
        Self::TtfbRate,
        Self::ReqCmplG,
    ];

    /// The five features of the paper's model for QUIC, in its order.
    pub const QUIC: [Self; 5] = [
        Self::RetranRate,
        Self::TtfbAvg,
        Self::TtfbRate,
        Self::RespRecG,
        Self::RttAvg,
    ];

    /// The name in the paper, which model files use.
    pub fn name(self) -> &'static str {
        match self {
            Self::RetranRate => "Retran_rate",
            Self::TtfbAvg => "TTFB_avg",
            Self::RttAvg => "RTT_avg",
            Self::Ttfb => "TTFB",
            Self::RespRecG => "resp_rec_G",
            Self::TtfbRate => "TTFB_rate",
            Self::ReqCmplG => "req_cmpl_G",
        }
    }

    /// The feature of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name() == name)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of each feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features([f32; Feature::COUNT]);

impl Default for Features {
    fn default() -> Self {
        Self([f32::NAN; Feature::COUNT])
    }
}

impl Features {
    /// Features from their values, in the order of [`Feature::ALL`].
    pub fn from_values(values: [f32; Feature::COUNT]) -> Self {
        Self(values)
    }

    /// The values, in the order of [`Feature::ALL`].
    pub fn values(&self) -> &[f32; Feature::COUNT] {
        &self.0
    }

    /// One of them; NaN if it is not known.
    pub fn get(&self, feature: Feature) -> f32 {
        self.0[feature as usize]
    }

    pub(crate) fn set(&mut self, feature: Feature, value: f32) {
        self.0[feature as usize] = value;
    }
}
