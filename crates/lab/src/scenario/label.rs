//! Numbers in labels.

/// The number at the start of a label: 0.1 for `0.1bdp`, 1e-6 for `1e-6`, none for `cubic`.
pub fn number_of_label(label: &str) -> Option<f64> {
    number_and_unit(label).map(|(number, _)| number)
}

/// The number at the start of a label, and the rest: 30 and `ms` for `30ms`.
pub fn number_and_unit(label: &str) -> Option<(f64, &str)> {
    let end = label
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')))
        .unwrap_or(label.len());
    // All of these are ASCII, so every end is a character boundary. The longest valid number is
    // used: an `e` may start a unit.
    (1..=end.min(32))
        .rev()
        .find_map(|end| Some((label[..end].parse().ok()?, label[end..].trim())))
        .filter(|(number, _): &(f64, &str)| number.is_finite())
}
