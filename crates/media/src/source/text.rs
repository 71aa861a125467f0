//! Formatting of quantities so that parsing them returns the same value: `4mbit`, `1.5s`.

use std::fmt;
use std::time::Duration;

use swiftwater_units::Bandwidth;

/// A rate in the largest unit that leaves a whole number.
pub(super) struct Rate(pub(super) Bandwidth);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];
        write_in(f, self.0.as_bps(), &units)
    }
}

/// A duration in the largest unit that leaves a whole number.
pub(super) struct Length(pub(super) Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        let units = [
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        write_in(f, nanos, &units)
    }
}

fn write_in(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (factor, unit) = units
        .iter()
        .find(|(factor, _)| value.is_multiple_of(*factor))
        .unwrap_or(&(1, ""));
    write!(f, "{}{unit}", value / factor)
}
