//! The transport parameters that we declare (RFC 9000, section 18.2).

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use swiftwater_units::Side;
use swiftwater_wire::frame::MAX_STREAMS;
use swiftwater_wire::{ConnectionId, TransportParameters, VarInt};

use crate::config::TransportConfig;
use crate::path::PROMISED_LIMITS;

/// Values above it would be refused by peers (section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);
/// Values above it would be refused by peers.
const MAX_ACK_DELAY_EXPONENT: u8 = 20;
/// Longest value of the parameter that peers must ignore.
const MAX_GREASE_LEN: usize = 8;

/// What either side declares, from its configuration; values outside their ranges are moved to the
/// nearest valid one. `local_cid` is the source of our first packets. What only servers declare is
/// left out.
pub(super) fn local_parameters(
    config: &TransportConfig,
    local_cid: ConnectionId,
) -> TransportParameters {
    let stream_window = VarInt::saturating(config.stream_receive_window.get()).get();
    TransportParameters {
        max_idle_timeout: config.max_idle_timeout.unwrap_or(Duration::ZERO),
        initial_max_data: VarInt::saturating(config.receive_window.get()).get(),
        initial_max_stream_data_bidi_local: stream_window,
        initial_max_stream_data_bidi_remote: stream_window,
        initial_max_stream_data_uni: stream_window,
        initial_max_streams_bidi: config.max_concurrent_bidi_streams.min(MAX_STREAMS),
        initial_max_streams_uni: config.max_concurrent_uni_streams.min(MAX_STREAMS),
        ack_delay_exponent: config.ack_delay_exponent.min(MAX_ACK_DELAY_EXPONENT),
        max_ack_delay: config.max_ack_delay.min(MAX_ACK_DELAY),
        disable_active_migration: !config.migration,
        active_connection_id_limit: config
            .active_connection_id_limit
            .clamp(*PROMISED_LIMITS.start(), *PROMISED_LIMITS.end()),
        initial_source_connection_id: Some(local_cid),
        max_datagram_frame_size: config
            .max_datagram_frame_size
            .map_or(0, |size| VarInt::saturating(size).get()),
        ..TransportParameters::default()
    }
}

/// Encodes `parameters` with a reserved one among them that peers must ignore (section 18.1).
pub(super) fn encode(
    parameters: &TransportParameters,
    side: Side,
    rng: &mut ChaCha20Rng,
) -> Vec<u8> {
    let id = 31 * u64::from(rng.next_u32()) + 27;
    let mut value = [0; MAX_GREASE_LEN];
    rng.fill_bytes(&mut value);
    let len = rng.next_u32() as usize % (MAX_GREASE_LEN + 1);
    let mut out = Vec::with_capacity(256);
    parameters.encode(side, &mut out, Some((id, &value[..len])));
    out
}
