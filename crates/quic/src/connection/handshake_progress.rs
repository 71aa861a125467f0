//! What steps of the TLS handshake bring about: keys, the peer's transport parameters, completion and
//! confirmation (RFC 9000, section 7; RFC 9001, section 4).

use std::net::IpAddr;

use swiftwater_units::Instant;
use swiftwater_wire::ErrorCode;
use swiftwater_wire::frame::Crypto;

use crate::address_token::issue_address_token;
use crate::control::{ControlKey, ControlValue};
use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::establishment::{Conclusion, PeerParameters, discard_level};
use crate::handshake::Progress;
use crate::lifecycle::{CloseFrame, Termination};
use crate::observe::Observation;

use super::Connection;
use crate::events::{EndpointEvent, Event};

impl Connection {
    /// A client starts its TLS session.
    pub(super) fn start_handshake(&mut self, now: Instant) {
        match self.handshake.start() {
            Ok(progress) if progress.early_keys => self.early_data_exchange(now).offer(),
            Ok(_) => {}
            Err(error) => self.fail(now, error),
        }
    }

    /// Handshake data arrived.
    pub(super) fn on_crypto(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        crypto: &Crypto<'_>,
    ) -> Result<(), TransportError> {
        let progress = (self.handshake).on_crypto(level, crypto.offset, crypto.data)?;
        if progress.repeated {
            let (mut fates, buffers) = self.fates(now);
            fates.speed_up_handshake(&mut buffers.loss);
        }
        self.on_progress(now, progress)
    }

    /// Acts on what a step of the handshake brought about.
    fn on_progress(&mut self, now: Instant, progress: Progress) -> Result<(), TransportError> {
        if let Some(version) = self.handshake.take_settled_version() {
            let original = self.handshake.original_version();
            self.monitor
                .observe(now, &Observation::VersionChosen { original, version });
        }
        if progress.new_keys && self.identity.side.is_server() {
            self.on_server_keys(now, progress)?;
        }
        if progress.completed {
            self.on_handshake_complete(now)?;
        }
        if progress.new_keys || progress.completed {
            self.establishment.buffered.on_new_keys();
        }
        Ok(())
    }

    /// A server has new keys: with those of 1-RTT packets it may send.
    fn on_server_keys(&mut self, now: Instant, progress: Progress) -> Result<(), TransportError> {
        let handshake = &self.handshake;
        if !handshake.keys().has(EncryptionLevel::OneRtt) || handshake.are_parameters_in_use() {
            return Ok(());
        }
        self.use_peer_parameters()?;
        let start = self.identity.start.as_deref();
        let half_rtt = start.is_some_and(|start| start.half_rtt);
        self.early_data_exchange(now)
            .on_server_keys(progress.early_keys, half_rtt);
        Ok(())
    }

    fn on_handshake_complete(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.early_data_exchange(now).conclude()? == Conclusion::Lost {
            let error = TransportError::new(
                ErrorCode::NO_ERROR,
                "early data were rejected and can't be sent anew",
            );
            let (frame, reason) = (CloseFrame::Transport(error), ConnectionError::EarlyDataLost);
            self.terminate(now, Termination::Closing { frame, reason });
            return Ok(());
        }
        self.use_peer_parameters()?;
        self.path_management(now).negotiate()?;
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
            let remote = self.paths.initial().network.address.remote;
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
        self.paths
            .initial_mut()
            .network
            .ecn
            .on_handshake_confirmed();
        self.identity.start = None;
        self.outbox.endpoint_event(EndpointEvent::HandshakeDone);
        self.outbox.event(Event::Confirmed);
        let path = self.paths.primary().id;
        self.with_migration(now, path, |migration| {
            migration.on_handshake_confirmed();
        });
    }

    /// Puts the peer's transport parameters to use, if they are not in use yet.
    fn use_peer_parameters(&mut self) -> Result<(), TransportError> {
        if self.handshake.are_parameters_in_use() {
            return Ok(());
        }
        let mut parameters = PeerParameters {
            identity: &self.identity,
            handshake: &mut self.handshake,
            path: self.paths.initial_mut(),
            streams: &mut self.streams,
            datagrams: &mut self.datagrams,
            policies: &mut self.policies,
            lifecycle: &mut self.lifecycle,
        };
        parameters.apply()?;
        self.connection_ids().sync_reset_tokens();
        Ok(())
    }
}
