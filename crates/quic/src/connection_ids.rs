//! Connection IDs in both directions: those that are issued to the peer, and the retirement of the
//! peer's (RFC 9000, sections 5.1, 19.15 and 19.16), with the stateless reset tokens that belong to the
//! latter (section 10.3).
//!
//! Each path owns its connection IDs (`path::PathCids`). Here is what concerns other owners as well: the
//! frames to send, and the events by which the endpoint routes datagrams.

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::frame::NewConnectionId;
use swiftwater_wire::{ConnectionId, ErrorCode};

use crate::control::{Control, ControlKey, ControlValue};
use crate::error::TransportError;
use crate::events::{CidCollision, EndpointEvent};
use crate::identity::Identity;
use crate::outbox::Outbox;
use crate::path::{IssuedCid, PathSet, PathState, RemoteCids};

/// The owners that connection IDs concern, borrowed for one event.
pub(crate) struct ConnectionIds<'a> {
    pub(crate) identity: &'a mut Identity,
    pub(crate) paths: &'a mut PathSet,
    pub(crate) control: &'a mut Control,
    pub(crate) outbox: &'a mut Outbox,
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason)
}

impl ConnectionIds<'_> {
    /// Another connection of the endpoint has an ID that was issued: issues a different one in its
    /// place. An ID that was sent already is retired along with the others of its path. If hardly any
    /// IDs of the length are left, the peer gets fewer.
    pub(crate) fn on_collision(&mut self, collision: &CidCollision) {
        let taken = &collision.0;
        let found = (self.paths.all_local_cids())
            .find_map(|(id, cids)| Some((id, cids.sequence_of(taken)?)));
        let Some((id, sequence)) = found else {
            return;
        };
        let key = ControlKey::NewConnectionId(id, sequence);
        if !self.control.is_unsent(key) {
            if let Some(cids) = self.paths.local_cids_mut(id) {
                cids.retire_all();
            }
            return self.issue();
        }
        self.control.cancel(key);
        if let Some(cid) = self.generate()
            && let Some(cids) = self.paths.local_cids_mut(id)
            && let Some(issued) = cids.reissue(sequence, cid)
        {
            self.register(id, cid, issued);
        }
    }

    /// Issues connection IDs until the peer has as many as it stores, on every path.
    pub(crate) fn issue(&mut self) {
        if !self.identity.cids.is_unlinkable() {
            return;
        }
        while let Some(id) = self.path_with_room()
            && let Some(cid) = self.generate()
            && let Some(cids) = self.paths.local_cids_mut(id)
        {
            let issued = cids.issue(cid);
            self.register(id, cid, issued);
        }
    }

    /// A path for which the peer stores more IDs.
    fn path_with_room(&self) -> Option<PathId> {
        let mut all = self.paths.all_local_cids();
        let is_closing = |id| self.paths.get(id).is_some_and(PathState::is_closing);
        let with_room = all.find(|(id, cids)| cids.needs_more() && !is_closing(*id));
        with_room.map(|(id, _)| id)
    }

    /// An ID that this connection does not have yet; the endpoint finds out if another one has it. `None` if
    /// the IDs are too short to find one.
    fn generate(&mut self) -> Option<ConnectionId> {
        /// Enough unless nearly all IDs of the length are taken.
        const TRIES: usize = 64;
        let identity = &mut *self.identity;
        let is_new =
            |cid: &ConnectionId| (self.paths.all_local_cids()).all(|(_, cids)| !cids.accepts(cid));
        (0..TRIES)
            .map(|_| identity.cids.generate(&mut identity.random.generator))
            .find(is_new)
    }

    /// Sends the peer an ID for `path`, and registers it with the endpoint.
    fn register(&mut self, path: PathId, cid: ConnectionId, issued: IssuedCid) {
        let value = ControlValue::ConnectionId {
            cid,
            reset_token: self.identity.key.reset_token(&cid),
            retire_prior_to: issued.retire_prior_to,
        };
        self.control
            .set(ControlKey::NewConnectionId(path, issued.sequence), value);
        self.outbox.endpoint_event(EndpointEvent::CidIssued(cid));
    }

    /// Asks the peer to use fresh connection IDs on a path, and uses a fresh one of the peer's there, if
    /// there is a spare one.
    pub(crate) fn rotate(&mut self, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        path.cids.local.retire_all();
        let retired = path.cids.remote.rotate();
        self.issue();
        self.retire(id, retired);
    }

    /// A connection ID for path `id` came. Candidate paths may be left without a valid ID.
    ///
    /// # Errors
    ///
    /// It contradicts another one (RFC 9000, section 19.15).
    pub(crate) fn on_new_connection_id(
        &mut self,
        id: PathId,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        if self.paths.has_remote_cid_besides(id, &frame.cid) {
            return Err(violation("the same connection ID for two paths"));
        }
        let retirements = self.control.retirements(id);
        let limit = self.identity.config.active_connection_id_limit;
        let unopened = self.paths.unopened().iter().position(|path| path.id == id);
        let retired = if let Some(at) = unopened {
            match &mut self.paths.unopened_mut()[at].remote {
                Some(remote) => remote.on_new(frame, retirements)?,
                none => {
                    *none = Some(RemoteCids::first_issued(frame, limit));
                    return Ok(());
                }
            }
        } else if let Some(path) = self.paths.get_mut(id).filter(|path| !path.is_closing()) {
            path.cids.remote.on_new(frame, retirements)?
        } else {
            return Ok(());
        };
        self.retire(id, retired);
        Ok(())
    }

    /// The peer retires the connection ID of path `id` with this number, in a packet to the local ID
    /// `used`. Packets to the retired ID are accepted until `kept_until`.
    ///
    /// # Errors
    ///
    /// It was not issued, or is that of the packet itself (RFC 9000, section 19.16).
    pub(crate) fn on_retire_connection_id(
        &mut self,
        id: PathId,
        used: &ConnectionId,
        sequence: u64,
        kept_until: Option<Instant>,
    ) -> Result<(), TransportError> {
        let issued = ControlKey::NewConnectionId(id, sequence);
        if self.control.is_unsent(issued) {
            // It can only be guessed (section 19.16).
            return Err(violation("retired a connection ID that was not sent yet"));
        }
        let Some(cids) = self.paths.local_cids_mut(id) else {
            return Ok(());
        };
        if let Some(cid) = cids.on_retired(sequence, used)? {
            let over = match kept_until {
                Some(expiry) => cids.keep_retired(cid, expiry),
                None => Some(cid),
            };
            if let Some(over) = over {
                self.outbox.endpoint_event(EndpointEvent::CidRetired(over));
            }
            self.control.cancel(issued);
            self.issue();
        }
        Ok(())
    }

    /// Packets to connection IDs that were retired long enough ago are accepted no more.
    pub(crate) fn forget_retired(&mut self, now: Instant) {
        while let Some(cid) = self.paths.expired_cid(now) {
            self.outbox.endpoint_event(EndpointEvent::CidRetired(cid));
        }
    }

    /// Retires IDs of the peer's for a path; their reset tokens are no longer valid.
    fn retire(&mut self, path: PathId, retired: impl IntoIterator<Item = u64>) {
        for sequence in retired {
            self.control.retire_connection_id(path, sequence);
        }
        self.sync_reset_tokens();
    }

    /// Gives the endpoint the stateless reset tokens in use and their addresses, after either may have
    /// changed.
    pub(crate) fn sync_reset_tokens(&mut self) {
        let tokens = self.paths.open().flat_map(PathState::reset_tokens);
        self.outbox.sync_reset_tokens(tokens);
    }
}
