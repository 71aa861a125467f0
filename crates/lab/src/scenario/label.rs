//! Numbers in labels.

/// The number that a label begins with: 0.1 for `0.1bdp`, 1e-6 for `1e-6`, none for `cubic`.
pub fn number_of_label(label: &str) -> Option<f64> {
    number_and_unit(label).map(|(number, _)| number)
}

/// The number that a label begins with, and what follows it: 30 and `ms` for `30ms`.
pub fn number_and_unit(label: &str) -> Option<(f64, &str)> {
    let end = label
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')))
        .unwrap_or(label.len());
    // All of these are ASCII, so that every end is one of a character. The longest that is a number
    // counts: an `e` may begin a unit.
    (1..=end.min(32))
        .rev()
        .find_map(|end| Some((label[..end].parse().ok()?, label[end..].trim())))
        .filter(|(number, _): &(f64, &str)| number.is_finite())
}
