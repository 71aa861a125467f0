//! Numbers in labels.

/// The number that a label begins with: 0.1 for `0.1bdp`, 1e-6 for `1e-6`, none for `cubic`.
pub fn number_of_label(label: &str) -> Option<f64> {
    let end = label
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')))
        .unwrap_or(label.len());
    // All of these are ASCII, so that every end is one of a character. The longest that is a number
    // counts: an `e` may begin a unit.
    (1..=end.min(32))
        .rev()
        .find_map(|end| label[..end].parse().ok())
        .filter(|number: &f64| number.is_finite())
}
