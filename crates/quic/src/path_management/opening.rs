//! How a path begins: opened by a client's application, or by a client's packet; and which one may be next.

use swiftwater_units::PathId;
use swiftwater_wire::ConnectionId;

use super::PathManagement;
use crate::control::{ControlKey, ControlValue};
use crate::error::OpenPathError;
use crate::events::Event;
use crate::multipath::{Multipath, has_blocked_frames};
use crate::observe::{Observation, PathStage};
use crate::path::{
    Address, Amplification, LocalCids, NewPath, PathState, RemoteCids, UnopenedPath,
};
use crate::policy::PathPhase;

/// Connection IDs that a peer has of each path that may be opened (draft-ietf-quic-multipath-21, section 3.2.1).
const UNOPENED_CIDS: u64 = 1;

impl PathManagement<'_> {
    /// Opens the next path; see [`Connection::open_path`](crate::Connection::open_path).
    pub(crate) fn open(&mut self, address: Address) -> Result<PathId, OpenPathError> {
        self.check_opening(&address)?;
        if !self.can_open() {
            return Err(self.report_no_path());
        }
        let unopened = self.paths.unopened_mut().remove(0);
        let id = unopened.id;
        self.insert_path(unopened, address, Amplification::validated());
        self.observe_opened(id);
        self.connection_ids().issue();
        self.report_available_paths();
        Ok(id)
    }

    fn check_opening(&self, address: &Address) -> Result<(), OpenPathError> {
        if self.identity.side.is_server() {
            return Err(OpenPathError::NotClient);
        }
        if !self.is_open {
            return Err(OpenPathError::Closed);
        }
        if !self.handshake.is_confirmed() {
            return Err(OpenPathError::NotConfirmed);
        }
        if self.multipath.is_none() {
            return Err(OpenPathError::NotNegotiated);
        }
        if let Some(ip) = address.local.ip
            && ip.is_ipv4() != address.remote.is_ipv4()
        {
            return Err(OpenPathError::AddressFamilies);
        }
        let terms = self.handshake.peer_terms();
        let is_disabled = terms.is_some_and(|peer| peer.disable_active_migration);
        if is_disabled && self.identity.first_remote() == Some(address.remote) {
            return Err(OpenPathError::Disabled);
        }
        Ok(())
    }

    /// True if the path that is opened next, the one with the smallest identifier, is accepted by both ends,
    /// and both have a connection ID for it.
    fn can_open(&self) -> bool {
        let Some(first) = self.paths.unopened().first() else {
            return false;
        };
        let is_accepted = |multipath: &Multipath| first.id <= multipath.ids.common_max();
        self.multipath.as_deref().is_some_and(is_accepted)
            && first.remote.is_some()
            && first.local.active().next().is_some()
    }

    /// No path can be opened: lets the peer know what is missing (sections 4.7 and 4.8), if the version in use
    /// has frames for it.
    fn report_no_path(&mut self) -> OpenPathError {
        let Some(multipath) = self.multipath.as_deref() else {
            return OpenPathError::NotNegotiated;
        };
        let max = multipath.ids.remote_max();
        let is_reported = has_blocked_frames(multipath.version);
        match self.paths.unopened().first() {
            Some(first) if first.id <= max => {
                if is_reported {
                    let next = (first.remote.as_ref()).map_or(0, RemoteCids::next_sequence);
                    let value = ControlValue::Limit(next);
                    (self.control).set(ControlKey::PathCidsBlocked(first.id), value);
                }
                OpenPathError::NoConnectionId
            }
            _ => {
                // If this end's own limit is lower, the peer's does not matter.
                if is_reported && max <= multipath.ids.local_max() {
                    let value = ControlValue::PathLimit(max);
                    self.control.set(ControlKey::PathsBlocked, value);
                }
                OpenPathError::Limit
            }
        }
    }

    /// A packet came to a connection ID of a path that is not open: the client opens it. The packet is not
    /// authenticated yet: once it is, [`PathManagement::observe_opened`] is due, else
    /// [`PathManagement::take_back_path`]. `None` if the path can't be opened.
    pub(crate) fn open_path_of(
        &mut self,
        from: &Address,
        cid: &ConnectionId,
        datagram_len: usize,
    ) -> Option<PathId> {
        if self.identity.side.is_client() || !self.handshake.is_confirmed() {
            return None;
        }
        let id = self.paths.unopened_path_of(cid)?;
        let at = (self.paths.unopened().iter()).position(|path| path.id == id)?;
        // Without one of the client's there is none to answer with (section 3.2.1).
        self.paths.unopened()[at].remote.as_ref()?;
        let is_validated = (self.paths.open()).any(|path| {
            path.network.address.matches(from) && path.network.amplification.is_validated()
        });
        let unopened = self.paths.unopened_mut().remove(at);
        let limit = Amplification::of_candidate(is_validated, datagram_len);
        self.insert_path(unopened, *from, limit);
        Some(id)
    }

    /// No packet on the path that was opened by [`PathManagement::open_path_of`] was authentic.
    pub(crate) fn take_back_path(&mut self, id: PathId) {
        if let Some(path) = self.paths.remove(id) {
            let mut local = path.cids.local;
            // It could be opened, so that the peer accepts its identifier.
            local.set_limit(UNOPENED_CIDS);
            let unopened = UnopenedPath {
                id,
                local,
                remote: Some(path.cids.remote),
            };
            let all = self.paths.unopened_mut();
            let at = all.partition_point(|path| path.id < id);
            all.insert(at, unopened);
            self.connection_ids().sync_reset_tokens();
        }
    }

    fn insert_path(
        &mut self,
        unopened: UnopenedPath,
        address: Address,
        amplification: Amplification,
    ) {
        let UnopenedPath { id, local, remote } = unopened;
        let Some(remote_cids) = remote else {
            return;
        };
        let identity = &mut *self.identity;
        let new = NewPath {
            id,
            side: identity.side,
            config: &identity.config,
            address,
            amplification,
            local_cids: local,
            remote_cids,
            phase: PathPhase::Validating,
        };
        let mut path = PathState::new(self.now, new, &mut identity.random.generator);
        if let Some(multipath) = self.multipath.as_deref_mut() {
            let limits = multipath.peer_limits;
            path.cids.local.set_limit(limits.active_connection_ids);
            path.network.mtu.set_peer_limit(limits.udp_payload_size);
            path.peer_status = multipath.records.of(id).peer_status;
        }
        path.network.ecn.on_handshake_confirmed();
        let pto = identity.config.initial_rtt * 3;
        path.network.validation.start(pto);
        self.paths.insert(path);
        self.connection_ids().sync_reset_tokens();
    }

    /// Shows observers that path `id` is open. Nothing that is not authentic is shown.
    pub(crate) fn observe_opened(&mut self, id: PathId) {
        if let Some(path) = self.paths.get(id) {
            let progress = Observation::PathProgress {
                path: id,
                address: path.network.address,
                stage: PathStage::Opened,
            };
            self.monitor.observe(self.now, &progress);
        }
    }

    /// This end accepts a path with identifier `id`.
    pub(crate) fn add_unopened(&mut self, id: PathId) {
        let Some(multipath) = self.multipath.as_deref() else {
            return;
        };
        let mut local = LocalCids::unopened();
        local.set_limit(u64::from(id <= multipath.ids.remote_max()));
        self.paths.unopened_mut().push(UnopenedPath {
            id,
            local,
            remote: None,
        });
    }

    /// Lets a client's application know that another path can be opened, if it could not before.
    pub(crate) fn report_available_paths(&mut self) {
        let is_available = self.identity.side.is_client() && self.can_open();
        let Some(multipath) = self.multipath.as_deref_mut() else {
            return;
        };
        if std::mem::replace(&mut multipath.has_reported_available, is_available) != is_available
            && is_available
        {
            self.outbox.event(Event::PathsAvailable);
        }
    }
}
