//! A value for each of a few paths.

use swiftwater_quic::policy::PathView;
use swiftwater_units::PathId;

/// Values of paths, looked up one after the other: a connection has few.
#[derive(Clone, Debug)]
pub(crate) struct PerPath<T>(Vec<(PathId, T)>);

impl<T> Default for PerPath<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerPath<T> {
    pub(crate) fn get(&self, id: PathId) -> Option<&T> {
        let found = self.0.iter().find(|(known, _)| *known == id);
        found.map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut T> {
        let found = self.0.iter_mut().find(|(known, _)| *known == id);
        found.map(|(_, value)| value)
    }

    /// The value of path `id`, which `new` makes if there is none.
    pub(crate) fn get_or_insert_with(&mut self, id: PathId, new: impl FnOnce() -> T) -> &mut T {
        let found = self.0.iter().position(|(known, _)| *known == id);
        let at = found.unwrap_or_else(|| {
            self.0.push((id, new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Drops the values of paths that are not among `paths`.
    pub(crate) fn keep(&mut self, paths: &[PathView]) {
        self.0
            .retain(|(id, _)| paths.iter().any(|path| path.id == *id));
    }
}
