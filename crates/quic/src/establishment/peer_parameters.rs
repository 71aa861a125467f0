//! The peer's transport parameters: their connection IDs are verified, then they are in use (RFC 9000, sections
//! 7.3 and 7.4).

use swiftwater_wire::{ErrorCode, TransportParameters};

use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::handshake::Handshake;
use crate::identity::{Identity, Start};
use crate::lifecycle::Lifecycle;
use crate::path::PathState;
use crate::policy_host::PolicyHost;
use crate::streams::Streams;

/// The parts of a connection that the peer's transport parameters concern.
pub(crate) struct PeerParameters<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) handshake: &'a mut Handshake,
    /// The initial path.
    pub(crate) path: &'a mut PathState,
    pub(crate) streams: &'a mut Streams,
    pub(crate) datagrams: &'a mut Datagrams,
    pub(crate) policies: &'a mut PolicyHost,
    pub(crate) lifecycle: &'a mut Lifecycle,
}

impl PeerParameters<'_> {
    /// Puts the parameters to use, once they are verified.
    ///
    /// # Errors
    ///
    /// They repeat connection IDs that were not used.
    pub(crate) fn apply(&mut self) -> Result<(), TransportError> {
        let (Some(peer), Some(start)) = (self.handshake.peer_parameters(), &self.identity.start)
        else {
            self.handshake.set_parameters_in_use();
            return Ok(());
        };
        verify_connection_ids(self.identity, start, peer)?;
        self.streams.set_peer_parameters(peer);
        self.datagrams.set_peer_limit(peer.max_datagram_frame_size);
        self.policies
            .ack_frequency_sent
            .set_peer_min(peer.min_ack_delay);
        if let Some(feedback) = &mut self.policies.feedback {
            feedback.set_peer_limit(peer.max_feedback_size);
        }
        self.lifecycle.set_idle_timeout(
            self.identity.config.max_idle_timeout,
            Some(peer.max_idle_timeout),
        );
        let path = &mut *self.path;
        path.cids.local.set_limit(peer.active_connection_id_limit);
        if let Some(token) = peer.stateless_reset_token {
            path.cids.remote.set_handshake_token(token);
        }
        if let Some(preferred) = &peer.preferred_address {
            let (cid, token) = (preferred.cid, preferred.reset_token);
            path.cids.remote.add_preferred(cid, token);
        }
        path.network.mtu.set_peer_limit(peer.max_udp_payload_size);
        self.handshake.set_parameters_in_use();
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
