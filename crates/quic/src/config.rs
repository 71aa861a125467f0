//! Configuration: every knob with its range, unit, default and source.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::ControllerFactory;
use swiftwater_units::ByteCount;

use crate::crypto::{ClientCrypto, EndpointKey, ServerCrypto};
use crate::observe::ObserverFactory;
use crate::policy::PolicyFactory;

/// What a connection promises its peer and how it behaves. Cheap to clone, shared between
/// connections.
#[derive(Clone)]
pub struct TransportConfig {
    /// Bidirectional streams that the peer may have open at once; default 100.
    pub max_concurrent_bidi_streams: u64,
    /// Unidirectional streams that the peer may have open at once; default 100.
    pub max_concurrent_uni_streams: u64,
    /// Bytes of one stream that may be buffered here unread; default 1 MiB, grows to
    /// `max_stream_receive_window` while the reader keeps up.
    pub stream_receive_window: ByteCount,
    /// Bytes of all streams that may be buffered here unread; default 1.5 MiB, grows to
    /// `max_receive_window` while the readers keep up.
    pub receive_window: ByteCount,
    /// Ceiling of `stream_receive_window`; default 16 MiB.
    pub max_stream_receive_window: ByteCount,
    /// Ceiling of `receive_window`; default 24 MiB.
    pub max_receive_window: ByteCount,
    /// Bytes written by the application but not yet acknowledged, over all streams; a writer
    /// blocks beyond it. Default 16 MiB.
    pub send_window: ByteCount,
    /// The connection ends silently when nothing is heard for this long; `None` never. Default
    /// 30 s. The smaller of both ends' values counts (RFC 9000, section 10.1).
    pub max_idle_timeout: Option<Duration>,
    /// Give up a handshake after this long; default 10 s.
    pub handshake_timeout: Duration,
    /// Send a PING when nothing was sent for this long; `None` (default) and zero never.
    pub keep_alive_interval: Option<Duration>,
    /// RTT assumed before the first sample; default 333 ms (RFC 9002, section 6.2.2).
    pub initial_rtt: Duration,
    /// Longest time an acknowledgement is held back; default 25 ms, below 2^14 ms.
    pub max_ack_delay: Duration,
    /// Scale of `ack_delay` on the wire, 0 to 20; default 3.
    pub ack_delay_exponent: u8,
    /// Ack-eliciting packets after which an acknowledgement goes out at once; default 2 (RFC 9000,
    /// section 13.2.2).
    pub ack_eliciting_threshold: u64,
    /// UDP payload used until a larger one is known to work, 1200 to 65527; default 1200. Raise it
    /// only where the path is known to carry it.
    pub initial_max_datagram_size: u16,
    /// Reordering in packets before a packet counts as lost; default 3 (RFC 9002, section 6.1.1).
    pub packet_threshold: u64,
    /// Reordering in time before a packet counts as lost, in 1/8 of the RTT; default 9 (RFC 9002,
    /// section 6.1.2).
    pub time_threshold_eighths: u32,
    /// Factor of the RTT variation that makes persistent congestion; default 3 (RFC 9002, 7.6.1).
    pub persistent_congestion_threshold: u32,
    /// Mark packets ECN-capable, with the codepoint that the controller asks for, and validate the
    /// path's handling of ECN; default true.
    pub ecn: bool,
    /// Largest DATAGRAM frame accepted, bytes; `None` refuses them. Default 65535.
    pub max_datagram_frame_size: Option<u64>,
    /// Bytes of datagrams queued for sending, and separately for reading; default 1 MiB. Beyond
    /// it, sending blocks and the oldest unread datagram is dropped.
    pub datagram_queue: ByteCount,
    /// Connection IDs that the peer may give us, 2 to 8; default 4.
    pub active_connection_id_limit: u64,
    /// Allow the peer to move to another address (RFC 9000, section 9); default true.
    pub migration: bool,
    /// Packets after which our keys are updated; default below every AEAD's limit (2^23). Lower it
    /// in tests.
    pub key_update_interval: u64,
    /// Pace packets instead of sending a window at once; default true.
    pub pacing: bool,
    /// Window to start with; `None` takes the controller's wish, or RFC 9002's 10 packets if it has
    /// none.
    pub initial_window: Option<ByteCount>,
    /// Makes the congestion controller of each path; default CUBIC.
    pub controller: Arc<dyn ControllerFactory>,
    /// Makes scheduler, re-injector and acknowledgement policy; default RFC behaviour.
    pub policies: Arc<dyn PolicyFactory>,
    /// Makes an observer for each connection; default none.
    pub observer: Option<Arc<dyn ObserverFactory>>,
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportConfig")
            .field("controller", &self.controller.name())
            .field("receive_window", &self.receive_window)
            .field("max_idle_timeout", &self.max_idle_timeout)
            .finish_non_exhaustive()
    }
}

/// How to connect.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// TLS.
    pub crypto: Arc<dyn ClientCrypto>,
    /// Behaviour.
    pub transport: Arc<TransportConfig>,
}

/// How to accept.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// TLS.
    pub crypto: Arc<dyn ServerCrypto>,
    /// Behaviour.
    pub transport: Arc<TransportConfig>,
    /// When clients must prove their address before state is kept for them.
    pub retry: RetryPolicy,
    /// How long a token of a Retry is good; default 15 s.
    pub retry_token_lifetime: Duration,
    /// How long a token for a later connection is good; default 2 weeks. Zero issues none.
    pub address_token_lifetime: Duration,
}

/// When to answer a client's first packet with Retry (RFC 9000, section 8.1.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RetryPolicy {
    /// Never.
    Never,
    /// While more than this many handshakes are in progress.
    Above(usize),
    /// Always.
    Always,
}

/// What all connections of an endpoint share.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Length of the connection IDs we issue, 0 to 20 bytes; default 8. Zero only for clients.
    pub cid_len: usize,
    /// Makes reset tokens and address tokens.
    pub key: Arc<dyn EndpointKey>,
    /// Connections kept at once; default 1,000,000. Beyond it new ones are refused.
    pub max_connections: usize,
    /// Handshakes in progress at once; default 10,000. Beyond it new ones are refused.
    pub max_handshakes: usize,
    /// Versions that we speak, best first; default QUIC v1 only.
    pub versions: Vec<u32>,
    /// Send stateless resets for packets of unknown connections; default true.
    pub stateless_reset: bool,
}

impl EndpointConfig {
    /// Defaults, with tokens made by `key`.
    pub fn new(key: Arc<dyn EndpointKey>) -> Self {
        Self {
            cid_len: 8,
            key,
            max_connections: 1_000_000,
            max_handshakes: 10_000,
            versions: vec![swiftwater_wire::VERSION_1],
            stateless_reset: true,
        }
    }
}
