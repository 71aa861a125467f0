//! Gains: pure numbers that a rate or an amount of data is multiplied by.

use swiftwater_units::{Bandwidth, ByteCount};

/// A factor without a unit. It multiplies rates and amounts, and can't be compared with either.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Gain(f64);

impl Gain {
    /// Neither faster nor slower.
    pub const UNITY: Self = Self(1.0);

    /// A gain of `factor`.
    pub const fn new(factor: f64) -> Self {
        Self(factor)
    }

    /// The bare factor, for logs.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// `rate` times this gain, saturating.
    #[must_use]
    pub fn of_rate(self, rate: Bandwidth) -> Bandwidth {
        rate.scaled(self.0)
    }

    /// `amount` times this gain, rounded down, saturating.
    #[must_use]
    pub fn of_bytes(self, amount: ByteCount) -> ByteCount {
        amount.scaled(self.0)
    }
}
