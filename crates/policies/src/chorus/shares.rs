//! How bytes are divided among paths: Eq. 3 and Eq. 7 of the Chorus paper for any number of paths.

use crate::schedulers::{PathCapacity, finish_time};

/// Eq. 3, `alpha = B_f / (B_f + B_s)`, for any number of paths: each in proportion to its rate, so that all need the same
/// time. Shares of 0 to 1 that add up to 1; a rate that isn't above 0 counts as 0, and if none is, all are equal.
pub fn proportional(rates: &[f64]) -> Vec<f64> {
    let valid = |rate: f64| if rate > 0.0 { rate.min(1e300) } else { 0.0 };
    let largest = rates.iter().fold(0.0, |most, rate| valid(*rate).max(most));
    if largest <= 0.0 {
        return vec![1.0 / rates.len().max(1) as f64; rates.len()];
    }
    // Divided by the largest first, so that the sum is finite.
    let sum: f64 = rates.iter().map(|rate| valid(*rate) / largest).sum();
    let share = |rate: &f64| valid(*rate) / largest / sum;
    rates.iter().map(share).collect()
}

/// Eq. 7 for any number of paths: the shares with which all finish `bytes` at the same time, where nothing of a path
/// arrives before its delay. A path that would finish later than the others without it has none: for two paths that is
/// the clipping to 0 and 1. The paper's delay is the round-trip time.
pub fn finishing_together(bytes: f64, paths: &[PathCapacity]) -> Vec<f64> {
    let finish = finish_time(bytes, &mut paths.to_vec()).unwrap_or_default();
    let parts: Vec<_> = paths.iter().map(|path| path.share(finish)).collect();
    if parts.iter().any(|part| *part > 0.0) {
        return proportional(&parts);
    }
    // So few bytes that they are lost in rounding: all to the path of the least delay.
    let least = paths.iter().map(|path| path.delay);
    let least = least.fold(f64::INFINITY, f64::min);
    let first = paths.iter().position(|path| path.delay <= least);
    let only = |n| if Some(n) == first { 1.0 } else { 0.0 };
    (0..paths.len()).map(only).collect()
}

/// Whole bytes by `shares`, which add up to `bytes`; the largest share takes what rounding leaves. Empty without shares.
pub fn apportion(bytes: u64, shares: &[f64]) -> Vec<u64> {
    let mut left = bytes;
    let mut parts = Vec::with_capacity(shares.len());
    for share in shares {
        let part = ((share * bytes as f64) as u64).min(left);
        left -= part;
        parts.push(part);
    }
    let largest = (0..shares.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b]));
    if let Some(part) = largest.and_then(|largest| parts.get_mut(largest)) {
        *part += left;
    }
    parts
}
