//! The Mann-Whitney test: whether one sample tends to be greater than another.

/// The one-sided p value of "`after` tends to be greater than `before`", by the normal approximation with
/// correction for ties and continuity (good from about five values on each side); 1 if a side is empty or
/// all values are equal.
pub fn p_greater(before: &[f64], after: &[f64]) -> f64 {
    let (first, second) = (before.len() as f64, after.len() as f64);
    if first == 0.0 || second == 0.0 {
        return 1.0;
    }
    let tag = |late: bool| move |value: &f64| (*value, late);
    let mut all: Vec<(f64, bool)> = before.iter().map(tag(false)).collect();
    all.extend(after.iter().map(tag(true)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Ranks count from 1; equal values share their mean rank.
    let (mut rank_sum, mut ties, mut start) = (0.0, 0.0, 0);
    for group in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let size = group.len() as f64;
        let rank = start as f64 + f64::midpoint(1.0, size);
        rank_sum += rank * group.iter().filter(|(_, late)| *late).count() as f64;
        ties += size * size * size - size;
        start += group.len();
    }
    let total = first + second;
    let u = rank_sum - second * (second + 1.0) / 2.0;
    let mean = first * second / 2.0;
    let variance = first * second / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    upper_tail((u - mean - 0.5) / variance.sqrt())
}

/// Probability that a standard normal value is above `z`.
pub(crate) fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}
