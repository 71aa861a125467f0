//! What each path has yet to send of a response.

use swiftwater_units::PathId;

/// Bytes of a response that are allotted to paths and haven't left, by path.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas(Vec<(PathId, u64)>);

impl Quotas {
    /// Allots anew.
    pub(super) fn set(&mut self, quotas: impl Iterator<Item = (PathId, u64)>) {
        self.0.clear();
        self.0.extend(quotas);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn all(&self) -> &[(PathId, u64)] {
        &self.0
    }

    pub(super) fn of(&self, path: PathId) -> u64 {
        let found = self.0.iter().find(|(id, _)| *id == path);
        found.map_or(0, |(_, bytes)| *bytes)
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }

    /// `bytes` left on a path: of its own quota, and beyond that of the largest others.
    pub(super) fn charge(&mut self, path: PathId, mut bytes: u64) {
        self.0
            .sort_unstable_by_key(|(id, left)| (*id != path, u64::MAX - left, *id));
        for (_, left) in &mut self.0 {
            let taken = bytes.min(*left);
            *left -= taken;
            bytes -= taken;
        }
    }
}
