//! Bytes of a chunk by path.

use std::collections::BTreeMap;

use proptest::prelude::*;
use swiftwater_media::streaming::divide_by_path;
use swiftwater_media::streaming::predictor::PathBytes;
use swiftwater_units::PathId;

fn totals<const N: usize>(paths: [(u32, u64); N]) -> BTreeMap<PathId, u64> {
    let paths = paths.into_iter();
    paths.map(|(id, bytes)| (PathId::new(id), bytes)).collect()
}

fn part(path: u32, bytes: u64) -> PathBytes {
    let path = PathId::new(path);
    PathBytes { path, bytes }
}

#[test]
fn bytes_are_divided_as_the_paths_received() {
    let (before, after) = (totals([(0, 100)]), totals([(0, 400), (1, 600)]));
    let parts = divide_by_path(1_000, &before, &after);
    assert_eq!(parts, [part(0, 333), part(1, 667)]);
    assert_eq!(divide_by_path(7, &after, &after), [part(0, 7)]);
    assert_eq!(divide_by_path(7, &totals([]), &totals([])), [part(0, 7)]);
}

proptest! {
    #[test]
    fn no_byte_is_lost(
        bytes in any::<u64>(),
        before in proptest::collection::btree_map(0_u32..8, any::<u64>(), 0..8),
        after in proptest::collection::btree_map(0_u32..8, 0..u64::MAX / 8, 0..8),
    ) {
        let totals = |map: BTreeMap<u32, u64>| {
            map.into_iter().map(|(id, bytes)| (PathId::new(id), bytes)).collect()
        };
        let parts = divide_by_path(bytes, &totals(before), &totals(after));
        prop_assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), bytes);
    }
}
