//! The transport parameters that early data rely on (RFC 9000, section 7.4.1; RFC 9221, section 3;
//! draft-ietf-quic-reliable-stream-reset-09, section 3).
//!
//! A client stores the server's and keeps to them until the handshake is complete; a server that
//! accepts early data must not have lowered one of them meanwhile.

use swiftwater_units::Side;
use swiftwater_wire::TransportParameters;

/// The limits of a server that a client may use for early data.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EarlyLimits([u64; LIMITS]);

/// How many there are.
const LIMITS: usize = 9;

impl EarlyLimits {
    /// Bytes of [`EarlyLimits::to_bytes`].
    pub const ENCODED_LEN: usize = 8 * LIMITS;

    /// Those of a server with these `parameters`.
    pub fn of(parameters: &TransportParameters) -> Self {
        Self([
            parameters.active_connection_id_limit,
            parameters.initial_max_data,
            parameters.initial_max_stream_data_bidi_local,
            parameters.initial_max_stream_data_bidi_remote,
            parameters.initial_max_stream_data_uni,
            parameters.initial_max_streams_bidi,
            parameters.initial_max_streams_uni,
            parameters.max_datagram_frame_size,
            u64::from(parameters.reset_stream_at),
        ])
    }

    /// As [`EarlyLimits::of`], from a server's parameters as they are on the wire; `None` if they are
    /// malformed.
    pub fn of_encoded(parameters: &[u8]) -> Option<Self> {
        TransportParameters::decode(parameters, Side::Server)
            .ok()
            .map(|parameters| Self::of(&parameters))
    }

    /// True if none of these is lower than its counterpart in `earlier`.
    pub fn cover(&self, earlier: &Self) -> bool {
        self.0.iter().zip(earlier.0).all(|(now, then)| *now >= then)
    }

    /// A form to keep in a ticket.
    pub fn to_bytes(&self) -> [u8; Self::ENCODED_LEN] {
        let mut bytes = [0; Self::ENCODED_LEN];
        for (chunk, limit) in bytes.chunks_mut(8).zip(self.0) {
            chunk.copy_from_slice(&limit.to_be_bytes());
        }
        bytes
    }

    /// Undoes [`EarlyLimits::to_bytes`].
    pub fn from_bytes(bytes: &[u8; Self::ENCODED_LEN]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self(std::array::from_fn(|n| u64::from_be_bytes(words[n])))
    }
}

/// What a client keeps of an earlier session's parameters until the handshake has the present ones;
/// the rest, which must not be stored, is at its default.
pub(crate) fn stored(parameters: &TransportParameters) -> TransportParameters {
    TransportParameters {
        max_idle_timeout: parameters.max_idle_timeout,
        max_udp_payload_size: parameters.max_udp_payload_size,
        initial_max_data: parameters.initial_max_data,
        initial_max_stream_data_bidi_local: parameters.initial_max_stream_data_bidi_local,
        initial_max_stream_data_bidi_remote: parameters.initial_max_stream_data_bidi_remote,
        initial_max_stream_data_uni: parameters.initial_max_stream_data_uni,
        initial_max_streams_bidi: parameters.initial_max_streams_bidi,
        initial_max_streams_uni: parameters.initial_max_streams_uni,
        disable_active_migration: parameters.disable_active_migration,
        active_connection_id_limit: parameters.active_connection_id_limit,
        max_datagram_frame_size: parameters.max_datagram_frame_size,
        reset_stream_at: parameters.reset_stream_at,
        ..TransportParameters::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use swiftwater_wire::{ConnectionId, PreferredAddress, ResetToken};

    use super::*;

    /// A server's parameters, none of them at its default.
    fn declared() -> TransportParameters {
        let cid = Some(ConnectionId::new(b"some id").unwrap());
        let reset_token = ResetToken([1; 16]);
        TransportParameters {
            original_destination_connection_id: cid,
            max_idle_timeout: Duration::from_secs(9),
            stateless_reset_token: Some(reset_token),
            max_udp_payload_size: 1300,
            initial_max_data: 11,
            initial_max_stream_data_bidi_local: 12,
            initial_max_stream_data_bidi_remote: 13,
            initial_max_stream_data_uni: 14,
            initial_max_streams_bidi: 15,
            initial_max_streams_uni: 16,
            ack_delay_exponent: 7,
            max_ack_delay: Duration::from_millis(77),
            disable_active_migration: true,
            preferred_address: Some(PreferredAddress {
                ipv4: Some("192.0.2.1:443".parse().unwrap()),
                ipv6: None,
                cid: ConnectionId::new(b"another").unwrap(),
                reset_token,
            }),
            active_connection_id_limit: 5,
            initial_source_connection_id: cid,
            retry_source_connection_id: cid,
            version_information: None,
            reset_stream_at: true,
            max_datagram_frame_size: 1000,
            initial_max_path_id: Some(3),
            initial_max_path_id_draft10: Some(2),
            grease_quic_bit: true,
            min_ack_delay: Some(Duration::from_millis(1)),
            max_feedback_size: 64,
        }
    }

    /// RFC 9000, section 7.4.1, and extensions whose documents say the same of theirs, or which
    /// early data have no use for.
    #[test]
    fn what_is_stored_is_what_the_rfc_lists() {
        let nothing = TransportParameters::default();
        let expected = TransportParameters {
            original_destination_connection_id: None,
            stateless_reset_token: None,
            ack_delay_exponent: nothing.ack_delay_exponent,
            max_ack_delay: nothing.max_ack_delay,
            preferred_address: None,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            initial_max_path_id: None,
            initial_max_path_id_draft10: None,
            grease_quic_bit: false,
            min_ack_delay: None,
            max_feedback_size: 0,
            ..declared()
        };
        assert_eq!(stored(&declared()), expected);
    }

    #[test]
    fn each_limit_that_falls_is_noticed() {
        let limits: [fn(&mut TransportParameters) -> &mut u64; 8] = [
            |parameters| &mut parameters.active_connection_id_limit,
            |parameters| &mut parameters.initial_max_data,
            |parameters| &mut parameters.initial_max_stream_data_bidi_local,
            |parameters| &mut parameters.initial_max_stream_data_bidi_remote,
            |parameters| &mut parameters.initial_max_stream_data_uni,
            |parameters| &mut parameters.initial_max_streams_bidi,
            |parameters| &mut parameters.initial_max_streams_uni,
            |parameters| &mut parameters.max_datagram_frame_size,
        ];
        let earlier = EarlyLimits::of(&declared());
        assert!(earlier.cover(&earlier));
        for (n, limit) in limits.into_iter().enumerate() {
            for (change, covers) in [(-1, false), (1, true)] {
                let mut now = declared();
                let value = limit(&mut now);
                *value = value.saturating_add_signed(change);
                assert_eq!(EarlyLimits::of(&now).cover(&earlier), covers, "{n}");
            }
        }
        let mut now = declared();
        now.reset_stream_at = false;
        assert!(!EarlyLimits::of(&now).cover(&earlier));
        assert_eq!(EarlyLimits::from_bytes(&earlier.to_bytes()), earlier);
    }
}
