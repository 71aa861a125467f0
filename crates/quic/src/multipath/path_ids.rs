//! Which path identifiers may be used (draft-ietf-quic-multipath-21, sections 3.1, 4.6 and 4.7).
//!
//! Each end accepts identifiers up to a maximum that only grows; identifiers are never used again.

use swiftwater_units::PathId;
use swiftwater_wire::MultipathVersion;

use crate::error::TransportError;

use super::violation_code;

/// The largest path identifiers that both ends accept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathIds {
    version: MultipathVersion,
    local_max: u32,
    remote_max: u32,
    /// What the peer declared in the handshake.
    remote_initial: u32,
}

impl PathIds {
    pub(crate) fn new(version: MultipathVersion, local_max: u32, remote_max: u32) -> Self {
        Self {
            version,
            local_max,
            remote_max,
            remote_initial: remote_max,
        }
    }

    fn violation(&self, reason: &'static str) -> TransportError {
        TransportError::new(violation_code(self.version), reason)
    }

    /// The largest identifier that this end accepts.
    pub(crate) fn local_max(&self) -> PathId {
        PathId::new(self.local_max)
    }

    /// The largest identifier that the peer accepts.
    pub(crate) fn remote_max(&self) -> PathId {
        PathId::new(self.remote_max)
    }

    /// The largest identifier that a path can have now.
    pub(crate) fn common_max(&self) -> PathId {
        self.local_max().min(self.remote_max())
    }

    /// A frame names path `id`.
    ///
    /// # Errors
    ///
    /// This end does not accept the identifier.
    pub(crate) fn check(&self, id: PathId) -> Result<(), TransportError> {
        if id > self.local_max() {
            return Err(self.violation("a path identifier above the limit"));
        }
        Ok(())
    }

    /// A path has ended: one more identifier is accepted, so that as many paths as before may be open.
    /// Returns it; `None` at the end of all identifiers.
    pub(crate) fn grow(&mut self) -> Option<PathId> {
        self.local_max = self.local_max.checked_add(1)?;
        Some(self.local_max())
    }

    /// A MAX_PATH_ID frame came. True if the limit grew.
    ///
    /// # Errors
    ///
    /// It is below what the peer declared in the handshake.
    pub(crate) fn on_max_path_id(&mut self, max: PathId) -> Result<bool, TransportError> {
        if max.get() < self.remote_initial {
            return Err(self.violation("MAX_PATH_ID below initial_max_path_id"));
        }
        let grows = max.get() > self.remote_max;
        self.remote_max = self.remote_max.max(max.get());
        Ok(grows)
    }

    /// A PATHS_BLOCKED frame came.
    ///
    /// # Errors
    ///
    /// It names a limit that this end never gave.
    pub(crate) fn on_paths_blocked(&self, max: PathId) -> Result<(), TransportError> {
        if max > self.local_max() {
            return Err(self.violation("PATHS_BLOCKED above the limit"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_only_grow() {
        let mut ids = PathIds::new(MultipathVersion::default(), 2, 4);
        assert_eq!(ids.common_max(), PathId::new(2));
        assert_eq!(ids.grow(), Some(PathId::new(3)));
        assert_eq!(ids.common_max(), PathId::new(3));
        assert_eq!(ids.on_max_path_id(PathId::new(4)).ok(), Some(false));
        assert_eq!(ids.on_max_path_id(PathId::new(9)).ok(), Some(true));
        assert_eq!(ids.on_max_path_id(PathId::new(5)).ok(), Some(false));
        assert_eq!(ids.remote_max(), PathId::new(9));
        assert!(ids.on_max_path_id(PathId::new(3)).is_err());
    }

    #[test]
    fn identifiers_above_the_limit_are_violations() {
        let ids = PathIds::new(MultipathVersion::default(), 2, 4);
        assert!(ids.check(PathId::new(2)).is_ok() && ids.check(PathId::new(3)).is_err());
        assert!(ids.on_paths_blocked(PathId::new(2)).is_ok());
        assert!(ids.on_paths_blocked(PathId::new(3)).is_err());
    }
}
