//! Distinct types for counts of bytes and packets.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

macro_rules! count {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(u64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);
            /// The largest count.
            pub const MAX: Self = Self(u64::MAX);

            /// A count of `n`.
            pub const fn new(n: u64) -> Self {
                Self(n)
            }

            /// The plain number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// True if the count is zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// `self - rhs`, at least zero. The same as `-`; explicit where it matters.
            #[must_use]
            pub const fn saturating_sub(self, rhs: Self) -> Self {
                Self(self.0.saturating_sub(rhs.0))
            }

            /// This count times a dimensionless `gain`, rounded down, saturating; NaN counts as
            /// zero.
            #[must_use]
            pub fn scaled(self, gain: f64) -> Self {
                Self((self.0 as f64 * gain) as u64)
            }

            /// `n` times this count, saturating.
            #[must_use]
            pub const fn times(self, n: u64) -> Self {
                Self(self.0.saturating_mul(n))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, rhs: Self) -> Self {
                Self(self.0.saturating_add(rhs.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, rhs: Self) {
                *self = *self + rhs;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, rhs: Self) -> Self {
                self.saturating_sub(rhs)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, rhs: Self) {
                *self = *self - rhs;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }

        impl From<u64> for $name {
            fn from(n: u64) -> Self {
                Self(n)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{} ", $unit), self.0)
            }
        }
    };
}

count! {
    /// A number of bytes: window, bytes in flight, queue length. Arithmetic saturates.
    ByteCount, "B"
}

count! {
    /// A number of packets. Arithmetic saturates.
    PacketCount, "packets"
}
