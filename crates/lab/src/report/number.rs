//! Labels as positions on an axis, and numbers as text.

use crate::scenario::number_and_unit;

/// Units of one dimension, with their size in its base unit.
const UNITS: [&[(&str, f64)]; 3] = [
    &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)],
    &[("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)],
    &[("b", 1.0), ("kb", 1e3), ("mb", 1e6), ("gb", 1e9)],
];

/// The ratio of `unit` to `base`; `None` if they have different dimensions.
fn factor(unit: &str, base: &str) -> Option<f64> {
    if unit == base {
        return Some(1.0);
    }
    let (unit, base) = (unit.to_ascii_lowercase(), base.to_ascii_lowercase());
    UNITS.iter().find_map(|units| {
        let size = |name: &str| units.iter().find(|known| known.0 == name).map(|k| k.1);
        Some(size(&unit)? / size(&base)?)
    })
}

/// Positions of the labels of an axis, in the unit of the first, which is also returned. `None` if
/// a label has no number or another dimension: then they are equally spaced.
pub(super) fn positions(labels: &[String]) -> Option<(Vec<f64>, String)> {
    let numbers: Vec<(f64, &str)> = labels
        .iter()
        .map(|label| number_and_unit(label))
        .collect::<Option<_>>()?;
    let unit = numbers.first()?.1.to_owned();
    let values = numbers
        .iter()
        .map(|(value, own)| Some(value * factor(own, &unit)?))
        .collect::<Option<_>>()?;
    Some((values, unit))
}

/// A number with four significant digits, without trailing zeros.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    if !(-3..=8).contains(&digits) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.*}", digits.max(0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
