//! Thinning of curves without visible change.

/// The indices of `values` to keep, at most `limit` (at least 8): the first, the last, and of each
/// interval between them the smallest, the largest and one gap, if it has any. Indices are
/// ascending. The smallest and the largest of all are always among them; up to `limit` values all
/// are kept.
pub fn decimate(values: &[Option<f64>], limit: usize) -> Vec<usize> {
    let limit = limit.max(8);
    if values.len() <= limit {
        return (0..values.len()).collect();
    }
    let inner = 1..values.len() - 1;
    let stretches = (limit - 2) / 3;
    let mut kept = vec![0, values.len() - 1];
    for stretch in 0..stretches {
        let from = inner.start + inner.len() * stretch / stretches;
        let to = inner.start + inner.len() * (stretch + 1) / stretches;
        let by_value = |a: &usize, b: &usize| {
            let value = |place: usize| values[place].unwrap_or(f64::NAN);
            value(*a).total_cmp(&value(*b))
        };
        let present = || (from..to).filter(|&place| values[place].is_some_and(|v| !v.is_nan()));
        kept.extend(present().min_by(by_value));
        kept.extend(present().max_by(by_value));
        kept.extend((from..to).find(|&place| values[place].is_none()));
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}
