//! The transport parameters that an endpoint declares (RFC 9000, section 18.2), except for the versions.

use std::time::Duration;

use swiftwater_wire::frame::MAX_STREAMS;
use swiftwater_wire::{ConnectionId, MultipathVersion, TransportParameters, VarInt};

use crate::ack_frequency;
use crate::config::TransportConfig;
use crate::datagram_size::MIN_MAX_DATAGRAM_SIZE;
use crate::feedback_exchange;
use crate::path::DECLARED_LIMITS;
use crate::streams::first_limit;

/// Values above it would be refused by peers.
const MAX_ACK_DELAY_EXPONENT: u8 = 20;

/// What either side declares, from its configuration; values outside their ranges are moved to the
/// nearest valid one. `local_cid` is the source of this end's first packets. What only servers declare is
/// left out. `grease`: the QUIC bit may be 0 (RFC 9287).
pub(super) fn local_parameters(
    config: &TransportConfig,
    local_cid: ConnectionId,
    grease: bool,
) -> TransportParameters {
    let stream_window = VarInt::saturating(config.stream_receive_window.get()).get();
    let max_ack_delay = config.max_ack_delay.min(ack_frequency::MAX_DECLARED);
    // Paths are distinguished by connection IDs.
    let multipath = config.multipath.filter(|_| !local_cid.is_empty());
    let max_path_id = |version: MultipathVersion| {
        let offered = multipath.filter(|multipath| multipath.versions.includes(version));
        offered.map(|multipath| multipath.initial_max_path_id())
    };
    TransportParameters {
        max_idle_timeout: config.max_idle_timeout.unwrap_or(Duration::ZERO),
        max_udp_payload_size: config
            .max_udp_payload_size
            .clamp(MIN_MAX_DATAGRAM_SIZE, 65_527)
            .into(),
        initial_max_data: VarInt::saturating(first_limit(config)).get(),
        initial_max_stream_data_bidi_local: stream_window,
        initial_max_stream_data_bidi_remote: stream_window,
        initial_max_stream_data_uni: stream_window,
        initial_max_streams_bidi: config.max_concurrent_bidi_streams.min(MAX_STREAMS),
        initial_max_streams_uni: config.max_concurrent_uni_streams.min(MAX_STREAMS),
        ack_delay_exponent: config.ack_delay_exponent.min(MAX_ACK_DELAY_EXPONENT),
        max_ack_delay,
        min_ack_delay: ack_frequency::offered(config),
        disable_active_migration: !config.migration,
        active_connection_id_limit: config
            .active_connection_id_limit
            .clamp(*DECLARED_LIMITS.start(), *DECLARED_LIMITS.end()),
        initial_source_connection_id: Some(local_cid),
        reset_stream_at: config.reset_stream_at,
        max_datagram_frame_size: config
            .max_datagram_frame_size
            .map_or(0, |size| VarInt::saturating(size).get()),
        max_feedback_size: feedback_exchange::accepted_size(config),
        grease_quic_bit: grease,
        initial_max_path_id: max_path_id(MultipathVersion::Rfc10069),
        initial_max_path_id_draft10: max_path_id(MultipathVersion::Draft10),
        ..TransportParameters::default()
    }
}
