//! Following a peer to a new address (RFC 9000, section 9).
//!
//! A change of port alone is taken for a NAT rebinding: the path stays the same, so RTT and window
//! are kept. A change of IP address starts them anew (section 9.4).

use swiftwater_units::Instant;

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::receive::Origin;

impl Connection {
    /// The newest packet came from another address with more than probing frames.
    pub(super) fn follow_peer(&mut self, now: Instant, origin: &Origin) {
        if self.identity.side.is_client() {
            // Only our own address can look different to a client, and that needs no answer.
            let local_ip = origin.address.local_ip;
            self.paths.first_mut().path.address.local_ip = local_ip;
            return;
        }
        let from = origin.address;
        let challenge = self.random_8();
        let old_challenge = self.random_8();
        let pto = self.pto().max(self.identity.config.initial_rtt * 3);
        let entry = self.paths.first_mut();
        let old = entry.path.address;
        if old.remote == from.remote {
            entry.path.address.local_ip = from.local_ip;
            return;
        }
        if entry
            .path
            .previous
            .as_ref()
            .is_some_and(|previous| previous.address.remote == from.remote)
        {
            // The old address is back: the move was a forgery or a route flapping.
            entry.path.move_back();
            self.sync_reset_token();
            return;
        }
        entry.path.move_to(from, challenge, old_challenge, pto);
        entry.path.amplification.on_received(origin.datagram_len);
        if old.remote.ip() != from.remote.ip() {
            entry
                .recovery
                .reset_for_new_path(now, &self.identity.config, &mut self.rng);
            let usable = self.identity.config.ecn;
            let codepoint = entry.recovery.controller().ecn_codepoint();
            entry.path.ecn.restart(usable, codepoint);
            // Another connection ID keeps observers from linking the two addresses (section 9.5).
            self.rotate_remote_cid();
        }
        self.sync_reset_token();
    }

    /// A PATH_RESPONSE arrived.
    pub(super) fn on_path_response(&mut self, now: Instant, data: [u8; 8]) {
        let path = &mut self.paths.first_mut().path;
        if path.on_response(now, data) {
            let remote = path.address.remote;
            self.outbox.events.push_back(Event::PeerMoved { remote });
        }
    }

    /// The new address never answered: back to the old one, or the end (section 9.3.2).
    pub(super) fn on_validation_failed(&mut self, now: Instant) {
        let path = &mut self.paths.first_mut().path;
        if path.move_back() {
            self.sync_reset_token();
        } else if !path.amplification.is_validated() {
            self.vanish(now, crate::error::ConnectionError::TimedOut);
        }
    }

    /// Tells the endpoint which token resets the connection from which address, after either may
    /// have changed. There is one at a time, so nothing piles up.
    pub(super) fn sync_reset_token(&mut self) {
        let path = &mut self.paths.first_mut().path;
        let remote = path.address.remote;
        let current = path.remote_cids.token().map(|token| (remote, token));
        let events = &mut self.outbox.endpoint_events;
        if current == path.registered_token {
            return;
        }
        if let Some((remote, token)) = path.registered_token {
            events.push_back(EndpointEvent::PeerResetTokenRetired { remote, token });
        }
        if let Some((remote, token)) = current {
            events.push_back(EndpointEvent::PeerResetToken { remote, token });
        }
        path.registered_token = current;
    }
}
