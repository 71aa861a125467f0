//! The paths of a connection beyond its first: those that were opened, and those for which connection IDs
//! are exchanged already so that they can be opened (draft-ietf-quic-multipath-21, section 3).

use swiftwater_units::PathId;

use crate::idle_memory::IdleMemory;
use crate::transmit::SocketId;

use super::{LocalCids, PathState, RemoteCids};

/// What only a connection with multipath has.
#[derive(Debug, Default)]
pub(crate) struct FurtherPaths {
    /// Open paths by identifier, then those that are being closed.
    pub(crate) opened: Vec<PathState>,
    /// By identifier.
    pub(crate) unopened: Vec<UnopenedPath>,
    /// Sockets by which nothing may leave at the moment.
    pub(crate) blocked_sockets: Vec<SocketId>,
}

/// A path that may be opened.
#[derive(Debug)]
pub(crate) struct UnopenedPath {
    pub(crate) id: PathId,
    /// Connection IDs that this end issued for it.
    pub(crate) local: LocalCids,
    /// Those of the peer; `None` before the first.
    pub(crate) remote: Option<RemoteCids>,
}

impl IdleMemory for FurtherPaths {
    fn release_idle_memory(&mut self) {
        let Self {
            opened,
            unopened,
            blocked_sockets,
        } = self;
        for path in &mut *opened {
            path.release_idle_memory();
        }
        for path in &mut *unopened {
            path.release_idle_memory();
        }
        opened.shrink_to_fit();
        unopened.shrink_to_fit();
        blocked_sockets.shrink_to_fit();
    }
}

impl IdleMemory for UnopenedPath {
    fn release_idle_memory(&mut self) {
        let Self {
            id: _,
            local,
            remote,
        } = self;
        local.release_idle_memory();
        if let Some(remote) = remote {
            remote.release_idle_memory();
        }
    }
}

/// The paths of a connection without one of them.
#[derive(Debug)]
pub(crate) struct OtherPaths<'a> {
    primary: Option<&'a mut PathState>,
    before: &'a mut [PathState],
    after: &'a mut [PathState],
}

impl<'a> OtherPaths<'a> {
    /// All paths but the primary one.
    pub(super) fn all(others: &'a mut [PathState]) -> Self {
        Self {
            primary: None,
            before: others,
            after: &mut [],
        }
    }

    /// All paths but one that lies between others.
    pub(super) fn around(
        primary: &'a mut PathState,
        before: &'a mut [PathState],
        after: &'a mut [PathState],
    ) -> Self {
        Self {
            primary: Some(primary),
            before,
            after,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PathState> {
        let primary = self.primary.as_deref().into_iter();
        primary.chain(&*self.before).chain(&*self.after)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PathState> {
        let primary = self.primary.as_deref_mut().into_iter();
        primary.chain(&mut *self.before).chain(&mut *self.after)
    }
}
