//! Parameters of controllers moved into their ranges.

/// `value` moved into `low..=high`, or `default` if it isn't a number.
pub(crate) fn clamp_or(value: f64, default: f64, low: f64, high: f64) -> f64 {
    if value.is_nan() {
        default
    } else {
        value.clamp(low, high)
    }
}
