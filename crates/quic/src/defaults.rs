//! Default values of the configuration, with their sources.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::ByteCount;

use crate::config::TransportConfig;
use crate::policy::DefaultPolicies;

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_concurrent_bidi_streams: 100,
            max_concurrent_uni_streams: 100,
            stream_receive_window: ByteCount::new(1 << 20),
            receive_window: ByteCount::new(3 << 19),
            max_stream_receive_window: ByteCount::new(16 << 20),
            max_receive_window: ByteCount::new(24 << 20),
            send_window: ByteCount::new(16 << 20),
            max_idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(10),
            keep_alive_interval: None,
            initial_rtt: Duration::from_millis(333),
            max_ack_delay: Duration::from_millis(25),
            ack_delay_exponent: 3,
            ack_eliciting_threshold: 2,
            initial_max_datagram_size: 1200,
            packet_threshold: 3,
            time_threshold_eighths: 9,
            persistent_congestion_threshold: 3,
            ecn: true,
            max_datagram_frame_size: Some(65_535),
            datagram_queue: ByteCount::new(1 << 20),
            active_connection_id_limit: 4,
            migration: true,
            key_update_interval: 1 << 23,
            pacing: true,
            initial_window: None,
            controller: Arc::new(swiftwater_congestion::CubicConfig::default()),
            policies: Arc::new(DefaultPolicies),
            observer: None,
        }
    }
}
