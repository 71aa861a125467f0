//! What steps of the TLS handshake bring about: keys, the peer's transport parameters, completion and
//! confirmation (RFC 9000, section 7; RFC 9001, section 4).

use std::net::IpAddr;

use swiftwater_units::Instant;
use swiftwater_wire::{ErrorCode, TransportParameters};

use crate::address_token::issue_address_token;
use crate::control::{ControlKey, ControlValue};
use crate::crypto::EncryptionLevel;
use crate::error::TransportError;
use crate::establishment::discard_level;
use crate::handshake::Progress;
use crate::observe::Observation;

use super::Connection;
use crate::events::{EndpointEvent, Event};
use crate::identity::{Identity, Start};

impl Connection {
    /// A client starts its TLS session.
    pub(super) fn start_handshake(&mut self, now: Instant) {
        match self.handshake.start() {
            Ok(progress) if progress.early_keys => self.offer_early_data(),
            Ok(_) => {}
            Err(error) => self.fail(now, error),
        }
    }

    /// Acts on what a step of the handshake brought about.
    pub(super) fn on_progress(
        &mut self,
        now: Instant,
        progress: Progress,
    ) -> Result<(), TransportError> {
        if let Some(version) = self.handshake.take_settled_version() {
            let original = self.handshake.original_version();
            self.monitor
                .observe(now, &Observation::VersionChosen { original, version });
        }
        if progress.new_keys && self.identity.side.is_server() {
            self.on_server_keys(now, progress.early_keys)?;
        }
        if progress.completed {
            self.on_handshake_complete(now)?;
        }
        if progress.new_keys || progress.completed {
            self.establishment.buffered.on_new_keys();
        }
        Ok(())
    }

    fn on_handshake_complete(&mut self, now: Instant) -> Result<(), TransportError> {
        if !self.conclude_early_data(now)? {
            return Ok(());
        }
        self.use_peer_parameters()?;
        let path = self.paths.initial().id;
        if let Some(rate) = self.identity.config.receive_rate {
            // The first sample comes with the very datagram that completes the handshake. Credit for
            // the assumed round trip would be many times too much.
            let rtt = self.paths.initial().recovery.rtt().smoothed;
            self.streams.on_rtt(now, rtt);
            self.streams.set_receive_rate(now, Some(rate));
        }
        self.sync_mtu(now, path);
        self.monitor.stats.handshake_completed_at = Some(now);
        self.outbox.event(Event::Connected);
        if self.identity.side.is_server() {
            self.control
                .set(ControlKey::HandshakeDone, ControlValue::Unit);
            let remote = self.paths.initial().link.address.remote;
            self.issue_token(now, remote.ip());
            self.on_handshake_confirmed(now);
        }
        self.connection_ids().issue();
        Ok(())
    }

    /// Gives the client a token for later connections from `ip`, where it has been validated (RFC 9000,
    /// section 8.1.3), if the server issues tokens.
    pub(super) fn issue_token(&mut self, now: Instant, ip: IpAddr) {
        let identity = &mut self.identity;
        let Some(token_ip) = &mut identity.token_ip else {
            return;
        };
        *token_ip = ip;
        let (version, rng) = (self.handshake.version(), &mut identity.random.generator);
        let token = issue_address_token(&*identity.key, rng, now, version, ip);
        self.control
            .set(ControlKey::NewToken, ControlValue::Token(token));
    }

    pub(super) fn on_handshake_confirmed(&mut self, now: Instant) {
        if self.handshake.is_confirmed() {
            return;
        }
        self.handshake.confirm();
        self.monitor.stats.handshake_confirmed_at = Some(now);
        for level in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
            discard_level(level, &mut self.handshake, &mut self.paths);
        }
        self.paths.initial_mut().link.ecn.on_handshake_confirmed();
        self.identity.start = None;
        self.outbox.endpoint_event(EndpointEvent::HandshakeDone);
        self.outbox.event(Event::Confirmed);
        self.probe_preferred_address(now);
    }

    /// Puts the peer's transport parameters to use once they are verified.
    pub(super) fn apply_peer_parameters(&mut self) -> Result<(), TransportError> {
        let (Some(peer), Some(start)) = (self.handshake.peer_parameters(), &self.identity.start)
        else {
            return Ok(());
        };
        verify_connection_ids(&self.identity, start, peer)?;
        self.streams.set_peer_parameters(peer);
        self.datagrams.set_peer_limit(peer.max_datagram_frame_size);
        self.policies.ack_asked.set_peer_min(peer.min_ack_delay);
        if let Some(feedback) = &mut self.policies.feedback {
            feedback.set_peer_limit(peer.max_feedback_size);
        }
        self.lifecycle.set_idle_timeout(
            self.identity.config.max_idle_timeout,
            Some(peer.max_idle_timeout),
        );
        let path = self.paths.initial_mut();
        path.cids.local.set_limit(peer.active_connection_id_limit);
        if let Some(token) = peer.stateless_reset_token {
            path.cids.remote.set_handshake_token(token);
        }
        if let Some(preferred) = &peer.preferred_address {
            let (cid, token) = (preferred.cid, preferred.reset_token);
            path.cids.remote.add_preferred(cid, token);
        }
        path.link.mtu.set_peer_limit(peer.max_udp_payload_size);
        self.connection_ids().sync_reset_tokens();
        Ok(())
    }
}

/// Checks the connection IDs that the peer's transport parameters repeat (RFC 9000, section 7.3).
fn verify_connection_ids(
    identity: &Identity,
    start: &Start,
    peer: &TransportParameters,
) -> Result<(), TransportError> {
    let bad = |reason: &str| {
        let code = ErrorCode::TRANSPORT_PARAMETER_ERROR;
        Err(TransportError::new(code, reason.to_owned()))
    };
    if peer.initial_source_connection_id.is_none()
        || peer.initial_source_connection_id != identity.peer_handshake_cid
    {
        return bad("initial_source_connection_id is not the one that was used");
    }
    if identity.side.is_server() {
        return Ok(());
    }
    if peer.original_destination_connection_id != Some(start.original_dst_cid) {
        return bad("original_destination_connection_id is not the one that was used");
    }
    if peer.retry_source_connection_id != start.retry_src_cid {
        return bad("retry_source_connection_id is not the one that was used");
    }
    let uses_cids = (identity.peer_handshake_cid).is_some_and(|cid| !cid.is_empty());
    if peer.preferred_address.is_some() && !uses_cids {
        // RFC 9000, section 18.2.
        return bad("preferred_address from a server without connection IDs");
    }
    Ok(())
}
