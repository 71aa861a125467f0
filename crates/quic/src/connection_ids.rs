//! Connection IDs in both directions: those that are issued to the peer, and the retirement of the
//! peer's (RFC 9000, sections 5.1, 19.15 and 19.16), with the stateless reset tokens that belong to the
//! latter (section 10.3).
//!
//! Each path owns its connection IDs (`path::PathCids`). Here is what concerns other owners as well: the
//! frames to send, and the events by which the endpoint routes datagrams.

use swiftwater_units::PathId;
use swiftwater_wire::frame::{NewConnectionId, types};
use swiftwater_wire::{ConnectionId, ErrorCode};

use crate::control::{Control, ControlKey, ControlValue};
use crate::error::TransportError;
use crate::events::{CidCollision, EndpointEvent};
use crate::identity::Identity;
use crate::outbox::Outbox;
use crate::path::{IssuedCid, PathSet, PathState};

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
        let found = self.paths.iter_mut().find_map(|path| {
            let sequence = path.cids.local.sequence_of(taken)?;
            Some((path, sequence))
        });
        let Some((path, sequence)) = found else {
            return;
        };
        let id = path.id;
        let key = ControlKey::NewConnectionId(id, sequence);
        if !self.control.is_unsent(key) {
            path.cids.local.retire_all();
            return self.issue();
        }
        self.control.cancel(key);
        if let Some(cid) = self.generate()
            && let Some(path) = self.paths.get_mut(id)
            && let Some(issued) = path.cids.local.reissue(sequence, cid)
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
            && let Some(path) = self.paths.get_mut(id)
        {
            let issued = path.cids.local.issue(cid);
            self.register(id, cid, issued);
        }
    }

    /// A path for which the peer stores more IDs.
    fn path_with_room(&self) -> Option<PathId> {
        let mut paths = self.paths.iter();
        paths
            .find(|path| path.cids.local.needs_more())
            .map(|path| path.id)
    }

    /// An ID that this connection does not have yet; the endpoint finds out if another one has it. `None` if
    /// the IDs are too short to find one.
    fn generate(&mut self) -> Option<ConnectionId> {
        /// Enough unless nearly all IDs of the length are taken.
        const TRIES: usize = 64;
        let identity = &mut *self.identity;
        let is_new = |cid: &ConnectionId| {
            let mut paths = self.paths.iter();
            !paths.any(|path| path.cids.local.sequence_of(cid).is_some())
        };
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

    /// A NEW_CONNECTION_ID frame came on a path. Candidate paths may be left without a valid ID.
    pub(crate) fn on_new_connection_id(
        &mut self,
        id: PathId,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        if frame.path.is_some() {
            return Err(
                violation("multipath was not negotiated").in_frame(types::PATH_NEW_CONNECTION_ID)
            );
        }
        let retirements = self.control.retirements();
        if let Some(path) = self.paths.get_mut(id) {
            let retired = path.cids.remote.on_new(frame, retirements)?;
            self.retire(id, retired);
        }
        Ok(())
    }

    /// A RETIRE_CONNECTION_ID frame came on path `id`, in a packet to the local ID `used`. `frame_path` is the
    /// path that the frame names.
    pub(crate) fn on_retire_connection_id(
        &mut self,
        id: PathId,
        used: &ConnectionId,
        frame_path: Option<PathId>,
        sequence: u64,
    ) -> Result<(), TransportError> {
        if frame_path.is_some() {
            return Err(violation("multipath was not negotiated"));
        }
        let issued = ControlKey::NewConnectionId(id, sequence);
        if self.control.is_unsent(issued) {
            // It can only be guessed (section 19.16).
            return Err(violation("retired a connection ID that was not sent yet"));
        }
        let Some(path) = self.paths.get_mut(id) else {
            return Ok(());
        };
        if let Some(cid) = path.cids.local.on_retired(sequence, used)? {
            self.control.cancel(issued);
            self.outbox.endpoint_event(EndpointEvent::CidRetired(cid));
            self.issue();
        }
        Ok(())
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
        let tokens = self.paths.iter().flat_map(PathState::reset_tokens);
        self.outbox.sync_reset_tokens(tokens);
    }
}
