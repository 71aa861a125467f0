//! Data rates.

use std::fmt;
use std::time::Duration;

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A data rate in bits per second (10^0 bit/s resolution, up to 18 Ebit/s).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Above the rate of any link.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate of `kbps` kilobits (1000 bits) per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps.saturating_mul(1_000))
    }

    /// A rate of `mbps` megabits (10^6 bits) per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps.saturating_mul(1_000_000))
    }

    /// A rate of `bytes` bytes per second.
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }

    /// The rate of `bytes` transferred in `interval`; [`Bandwidth::MAX`] for a zero interval.
    pub fn from_transfer(bytes: u64, interval: Duration) -> Self {
        let nanos = interval.as_nanos();
        if nanos == 0 {
            return Self::MAX;
        }
        let bps = u128::from(bytes) * 8 * NANOS_PER_SEC / nanos;
        Self(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Whole bytes per second.
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// Megabits per second, for reports only.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// True for a rate of zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Transmission time of `bytes` at this rate, rounded up to a nanosecond; [`Duration::MAX`] at
    /// rate zero.
    pub fn time_to_send(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes) * 8 * NANOS_PER_SEC).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whole bytes transmitted in `interval`, rounded down.
    pub fn bytes_in(self, interval: Duration) -> u64 {
        let bytes = u128::from(self.0) * interval.as_nanos() / (8 * NANOS_PER_SEC);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// This rate times `gain` (a dimensionless factor; negative and NaN count as zero).
    #[must_use]
    pub fn scaled(self, gain: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to zero.
        Self((self.0 as f64 * gain) as u64)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kbit/s", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} Mbit/s", self.0 as f64 / 1e6),
            _ => write!(f, "{:.3} Gbit/s", self.0 as f64 / 1e9),
        }
    }
}
