//! Issues connection IDs to the peer in NEW_CONNECTION_ID frames (RFC 9000, section 5.1.1), each one that no
//! other connection of the endpoint has.

use swiftwater_units::PathId;
use swiftwater_wire::ConnectionId;

use crate::control::{ControlKey, ControlValue};
use crate::path::IssuedCid;

use super::Connection;
use crate::events::{CidCollision, EndpointEvent};

impl Connection {
    /// Handles what [`Endpoint::handle_event`](crate::Endpoint::handle_event) returned: issues another ID in
    /// the place of one that a different connection has. An ID that was sent already is retired along with the
    /// others of its path. If hardly any IDs of the length are left, the peer gets fewer.
    ///
    /// Further events for the endpoint may follow.
    pub fn handle_cid_collision(&mut self, collision: &CidCollision) {
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
            return self.issue_cids();
        }
        self.control.cancel(key);
        if let Some(cid) = self.generate_cid()
            && let Some(path) = self.paths.get_mut(id)
            && let Some(issued) = path.cids.local.reissue(sequence, cid)
        {
            self.offer_cid(id, cid, issued);
        }
    }

    /// Issues connection IDs until the peer has as many as it stores, on every path.
    pub(super) fn issue_cids(&mut self) {
        if !self.identity.cids.is_unlinkable() {
            return;
        }
        while let Some(id) = self.path_without_cids()
            && let Some(cid) = self.generate_cid()
            && let Some(path) = self.paths.get_mut(id)
        {
            let issued = path.cids.local.issue(cid);
            self.offer_cid(id, cid, issued);
        }
    }

    /// A path for which the peer stores more IDs.
    fn path_without_cids(&self) -> Option<PathId> {
        let mut paths = self.paths.iter();
        paths
            .find(|path| path.cids.local.wants_more())
            .map(|path| path.id)
    }

    /// An ID that this connection does not have yet; the endpoint finds out if another one has it. `None` if
    /// the IDs are too short to find one.
    fn generate_cid(&mut self) -> Option<ConnectionId> {
        /// Enough unless nearly all IDs of the length are taken.
        const TRIES: usize = 64;
        let identity = &mut self.identity;
        let is_new = |cid: &ConnectionId| {
            let mut paths = self.paths.iter();
            !paths.any(|path| path.cids.local.sequence_of(cid).is_some())
        };
        (0..TRIES)
            .map(|_| identity.cids.generate(&mut identity.random.generator))
            .find(is_new)
    }

    /// Sends the peer an ID for `path`, and registers it with the endpoint.
    fn offer_cid(&mut self, path: PathId, cid: ConnectionId, issued: IssuedCid) {
        let value = ControlValue::ConnectionId {
            cid,
            reset_token: self.identity.key.reset_token(&cid),
            retire_prior_to: issued.retire_prior_to,
        };
        self.control
            .set(ControlKey::NewConnectionId(path, issued.sequence), value);
        self.outbox.endpoint_event(EndpointEvent::CidIssued(cid));
    }
}
