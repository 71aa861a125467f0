//! Which path the bytes of a chunk came on.

use std::collections::BTreeMap;

use swiftwater_units::PathId;

use super::predictor::PathBytes;

/// `bytes` of content, divided in proportion to what each path received between `before` and `after`, totals of received
/// bytes by path: a connection does not record which path stream data came on. The parts add up to `bytes`; what
/// arrived while no path received anything counts as path 0.
pub fn divide_by_path(
    bytes: u64,
    before: &BTreeMap<PathId, u64>,
    after: &BTreeMap<PathId, u64>,
) -> Vec<PathBytes> {
    let grown = after.iter().map(|(path, total)| {
        let earlier = before.get(path).copied().unwrap_or_default();
        (*path, total.saturating_sub(earlier))
    });
    let grown: Vec<_> = grown.filter(|(_, growth)| *growth > 0).collect();
    let total: u64 = grown.iter().map(|(_, growth)| growth).sum();
    let Some((last, others)) = grown.split_last() else {
        let path = PathId::ZERO;
        return vec![PathBytes { path, bytes }];
    };
    let mut left = bytes;
    let mut divided = Vec::with_capacity(grown.len());
    for (path, growth) in others {
        let share = (u128::from(bytes) * u128::from(*growth) / u128::from(total)) as u64;
        left -= share;
        divided.push(PathBytes {
            path: *path,
            bytes: share,
        });
    }
    divided.push(PathBytes {
        path: last.0,
        bytes: left,
    });
    divided
}
