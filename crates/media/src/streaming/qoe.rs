//! The QoE score of an adaptive session.

use std::time::Duration;

use swiftwater_units::Bandwidth;

/// Weights of the penalties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QoeWeights {
    /// μ: per second of stall, in Mbit/s. Default 16.
    pub stall: f64,
    /// λ: per Mbit/s between the bitrates of consecutive chunks. Default 1.
    pub switching: f64,
}

impl Default for QoeWeights {
    /// Those of Chorus' evaluation (MobiCom 2024).
    fn default() -> Self {
        Self {
            stall: 16.0,
            switching: 1.0,
        }
    }
}

/// The parts of a score: `Σ R_k - μ Σ T_k - λ Σ |R_(k+1) - R_k|`, without the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Qoe {
    /// Sum of the chunks' nominal bitrates, Mbit/s.
    pub bitrate_mbps: f64,
    /// Sum of the stalls in seconds. The start-up delay is not a stall.
    pub stall_s: f64,
    /// Sum of the changes of bitrate, Mbit/s.
    pub switching_mbps: f64,
}

impl Qoe {
    /// The parts of a session that downloaded chunks with these nominal bitrates in order, and
    /// stalled for `stall` in all.
    pub fn of(rates: impl IntoIterator<Item = Bandwidth>, stall: Duration) -> Self {
        let mut previous = None;
        let mut sum = Self {
            stall_s: stall.as_secs_f64(),
            ..Self::default()
        };
        for rate in rates {
            sum = sum.plus(Self::of_chunk(rate, previous, Duration::ZERO));
            previous = Some(rate);
        }
        sum
    }

    /// What one chunk adds, the one before it having the nominal bitrate `previous`.
    pub fn of_chunk(rate: Bandwidth, previous: Option<Bandwidth>, stall: Duration) -> Self {
        let rate = rate.as_mbps_f64();
        let previous = previous.map_or(rate, Bandwidth::as_mbps_f64);
        Self {
            bitrate_mbps: rate,
            stall_s: stall.as_secs_f64(),
            switching_mbps: (rate - previous).abs(),
        }
    }

    /// The sum of both, part by part.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bitrate_mbps: self.bitrate_mbps + other.bitrate_mbps,
            stall_s: self.stall_s + other.stall_s,
            switching_mbps: self.switching_mbps + other.switching_mbps,
        }
    }

    /// The score in Mbit/s summed over chunks.
    pub fn score(&self, weights: &QoeWeights) -> f64 {
        self.bitrate_mbps - weights.stall * self.stall_s - weights.switching * self.switching_mbps
    }
}
