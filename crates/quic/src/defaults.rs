//! Default values of the configuration, with their sources.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::ByteCount;

use crate::config::{MtuDiscovery, TransportConfig};
use crate::policy::DefaultPolicies;

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_concurrent_bidi_streams: 100,
            max_concurrent_uni_streams: 100,
            stream_receive_window: ByteCount::new(1 << 20),
            receive_window: ByteCount::new(3 << 19),
            receive_rate: None,
            max_stream_receive_window: ByteCount::new(16 << 20),
            max_receive_window: ByteCount::new(24 << 20),
            send_window: ByteCount::new(16 << 20),
            unsent_window: ByteCount::new(256 << 10),
            starvation_share: 16,
            max_idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(10),
            keep_alive_interval: None,
            initial_rtt: Duration::from_millis(333),
            initial_pto: None,
            pto_backoff: 2.0,
            max_pto: Duration::from_secs(60),
            pto_limit: None,
            handshake_pto_copies: 2,
            handshake_retransmissions_before_timeout: 1,
            max_ack_delay: Duration::from_millis(25),
            ack_delay_exponent: 3,
            ack_eliciting_threshold: 2,
            min_ack_delay: Some(Duration::from_millis(1)),
            ack_frequency: None,
            initial_max_datagram_size: 1200,
            initial_padding: 1200,
            adopt_client_datagram_size: false,
            mtu_discovery: Some(MtuDiscovery::default()),
            max_udp_payload_size: 65_527,
            packet_threshold: 3,
            time_threshold_eighths: 9,
            persistent_congestion_threshold: 3,
            ecn: true,
            max_datagram_frame_size: Some(65_535),
            max_feedback_size: 0,
            reset_stream_at: true,
            datagram_queue: ByteCount::new(1 << 20),
            active_connection_id_limit: 4,
            migration: true,
            multipath: None,
            use_preferred_address: true,
            key_update_interval: 1 << 23,
            spin_bit: true,
            pacing: true,
            initial_window: None,
            controller: Arc::new(swiftwater_congestion::CubicConfig::default()),
            policies: Arc::new(DefaultPolicies),
            observer: None,
        }
    }
}
