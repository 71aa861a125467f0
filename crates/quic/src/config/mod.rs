//! Configuration: every knob with its range, unit, default and source.

mod accept;

pub use accept::{AcceptDecision, AcceptPolicy, Incoming};

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{ControllerFactory, CouplingRule};
use swiftwater_units::{Bandwidth, ByteCount};
use swiftwater_wire::MultipathVersion;

use crate::address_token::UsedTokens;
use crate::cid::{ConnectionIdGenerator, Worker};
use crate::crypto::{ClientCrypto, EndpointKey, ServerCrypto};
use crate::observe::ObserverFactory;
use crate::policy::PolicyFactory;

/// What a connection declares to its peer and how it behaves. Cheap to clone, shared between
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
    /// Stream bytes that the peer may send on average, by credit that is given no faster; `None` (the
    /// default) and zero for no limit. See [`Connection::set_receive_rate`](crate::Connection).
    pub receive_rate: Option<Bandwidth>,
    /// Ceiling of `stream_receive_window`; default 16 MiB.
    pub max_stream_receive_window: ByteCount,
    /// Ceiling of `receive_window`; default 24 MiB.
    pub max_receive_window: ByteCount,
    /// Bytes written by the application but not yet acknowledged, over all streams; a writer blocks
    /// beyond it. Default 16 MiB.
    pub send_window: ByteCount,
    /// Bytes among them that were not sent yet, unless the congestion window is larger: then as many as that.
    /// Slow paths and peers that acknowledge little hold little memory. Of bytes that the peer's flow control of
    /// the connection does not permit when they are written, 64 KiB at most wait. Beyond both each stream may have 8 KiB. Default
    /// 256 KiB.
    pub unsent_window: ByteCount,
    /// One turn of a packet in this many goes to streams that are not the most urgent, so that an
    /// endless urgent stream starves no other; 2 or more, smaller values keep strictly to urgency.
    /// Default 16: 1/16 of the bytes while less urgent streams wait.
    pub starvation_share: u32,
    /// The connection ends silently when nothing is received for this long; `None` never. Default
    /// 30 s. The smaller of both ends' values counts (RFC 9000, section 10.1).
    pub max_idle_timeout: Option<Duration>,
    /// Time after which an incomplete handshake is abandoned; default 10 s.
    pub handshake_timeout: Duration,
    /// Send a PING when nothing was sent for this long; `None` (default) and zero never.
    pub keep_alive_interval: Option<Duration>,
    /// RTT assumed before the first sample; default 333 ms (RFC 9002, section 6.2.2).
    pub initial_rtt: Duration,
    /// Probe timeout before the first RTT sample, 1 ms at least; `None` (default) is three times
    /// `initial_rtt`, as RFC 9002 computes it. Shorter ones repeat a lost first packet sooner, and
    /// cost one needless packet on paths that are slower.
    pub initial_pto: Option<Duration>,
    /// Factor by which each probe timeout in a row is longer than the one before, 1 to 8; default 2
    /// (RFC 9002, section 6.2.1). Below 2 it departs from the RFC: only for paths whose losses are
    /// known not to come from congestion.
    pub pto_backoff: f64,
    /// Longest probe timeout, back-off included; default 60 s (the least maximum of RFC 6298,
    /// section 2.5; RFC 9002 has none).
    pub max_pto: Duration,
    /// Bounds the back-off of probe timeouts for a while after the last packet received on the path, so that sending
    /// resumes soon after it works again; `None` (default) backs off from the first timeout on, as
    /// RFC 9002 says. Departs from section 6.2.1 of it; what it costs is in [`PtoLimit`].
    pub pto_limit: Option<PtoLimit>,
    /// Copies of the oldest handshake data that are sent when a probe timeout expires before the
    /// handshake is confirmed, 1 to 3; default 2, so that neither of the two datagrams of RFC 9002,
    /// section 6.2.4, is sent empty. Copies beyond those wait for room in the window; all keep to
    /// the amplification limit.
    pub handshake_pto_copies: u8,
    /// Times that handshake data is repeated before its timeout, because what the peer sends shows
    /// that it misses some; default 1 (RFC 9002, section 6.2.3), zero never. Each time needs another
    /// packet of the peer.
    pub handshake_retransmissions_before_timeout: u8,
    /// Longest time an acknowledgement is held back; default 25 ms, below 2^14 ms.
    pub max_ack_delay: Duration,
    /// Scale of `ack_delay` on the wire, 0 to 20; default 3.
    pub ack_delay_exponent: u8,
    /// Ack-eliciting packets after which an acknowledgement goes out at once; default 2 (RFC 9000,
    /// section 13.2.2).
    pub ack_eliciting_threshold: u64,
    /// Shortest delay of acknowledgements that the peer may request (ACK_FREQUENCY), at most
    /// `max_ack_delay`; the granularity of the driver's timers. `None` refuses the extension.
    /// Default 1 ms (draft-ietf-quic-ack-frequency, section 3).
    pub min_ack_delay: Option<Duration>,
    /// What to ask of peers that let this end choose how often they acknowledge; `None` (default) asks
    /// nothing: RFC 9000's every other packet.
    pub ack_frequency: Option<AckFrequencyConfig>,
    /// UDP payload used until a larger one is known to work, 1200 to 65527; default 1200. Raise it
    /// only where the path is known to carry it.
    pub initial_max_datagram_size: u16,
    /// UDP payload of a client's datagrams with Initial packets, 1200 to `initial_max_datagram_size`; default 1200
    /// (RFC 9000, section 14.1). Those that answer a probe timeout have 1200 bytes unless `mtu_discovery` is `None`, and so
    /// has a close.
    pub initial_padding: u16,
    /// A server's connection starts with `initial_max_datagram_size` or the size of the client's first datagram, whichever
    /// is larger, up to the bound of `mtu_discovery` (`None`: it adopts nothing): the first path carries that much in one direction at
    /// least. Holds for later paths as well: what is nested in the connection does not get smaller. Default false.
    pub adopt_client_datagram_size: bool,
    /// Look for the largest datagrams that the path carries; default [`MtuDiscovery::default`].
    /// `None` stays with `initial_max_datagram_size` whatever happens to packets of that size.
    pub mtu_discovery: Option<MtuDiscovery>,
    /// Largest UDP payload that the peer may send (`max_udp_payload_size`), 1200 to 65527; default 65527, no limit
    /// (RFC 9000, section 18.2).
    pub max_udp_payload_size: u16,
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
    /// Largest feedback of the peer's policies that is accepted (FEEDBACK frames, a private extension),
    /// bytes, at most 64; 0 (default) refuses it. This end's own policy
    /// ([`PolicyFactory::feedback`](crate::policy::PolicyFactory::feedback)) sends what the peer accepts.
    pub max_feedback_size: u8,
    /// Accept streams that are reset but for their first bytes
    /// (draft-ietf-quic-reliable-stream-reset-09); default true.
    pub reset_stream_at: bool,
    /// Bytes of datagrams queued for sending, and separately for reading; default 1 MiB. Beyond
    /// it, sending blocks and the oldest unread datagram is dropped.
    pub datagram_queue: ByteCount,
    /// Connection IDs that the peer may issue, 2 to 8; default 4.
    pub active_connection_id_limit: u64,
    /// Allow the peer to move to another address (RFC 9000, section 9); default true.
    pub migration: bool,
    /// Use several paths at once, if the peer can (RFC 10069); default none. It needs connection IDs that
    /// are not empty, and a scheduler that chooses among paths
    /// ([`TransportConfig::policies`]).
    pub multipath: Option<MultipathConfig>,
    /// Move to the server's preferred address if it has one and it answers (RFC 9000, section 9.6);
    /// default true. Clients only; one with empty connection IDs never moves there.
    pub use_preferred_address: bool,
    /// Packets after which this end updates its keys; default below every AEAD's limit (2^23). Lower it
    /// in tests.
    pub key_update_interval: u64,
    /// Show the round-trip time to observers on the path by the spin bit (RFC 9000, section 17.4), but
    /// for one connection ID in 16; default true.
    pub spin_bit: bool,
    /// Pace packets instead of sending a window at once; default true.
    pub pacing: bool,
    /// Window to start with; `None` takes the controller's value, or RFC 9002's 10 packets if it has
    /// none.
    pub initial_window: Option<ByteCount>,
    /// Makes the congestion controller of each path; default CUBIC.
    pub controller: Arc<dyn ControllerFactory>,
    /// Makes scheduler, re-injector and acknowledgement policy; default RFC behaviour.
    pub policies: Arc<dyn PolicyFactory>,
    /// Makes an observer for each connection; default none.
    pub observer: Option<Arc<dyn ObserverFactory>>,
}

/// How often this end requests to be acknowledged (draft-ietf-quic-ack-frequency). Fewer cost
/// both ends and the way back less; losses are found and windows opened later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckFrequencyConfig {
    /// Ack-eliciting packets that may wait for an acknowledgement; one more makes it due. Default 9:
    /// one for ten packets. A quarter of the congestion window at most is asked for.
    pub ack_eliciting_threshold: u64,
    /// Longest delay of an acknowledgement: the round-trip time divided by this, 1 at least;
    /// default 4.
    pub rtt_divisor: u32,
    /// Ceiling of that delay; default 25 ms.
    pub max_ack_delay: Duration,
    /// Distance in packet numbers at which a missing packet is reported at once; default 3, the packet
    /// threshold of loss detection. 0: never.
    pub reordering_threshold: u64,
}

impl Default for AckFrequencyConfig {
    fn default() -> Self {
        Self {
            ack_eliciting_threshold: 9,
            rtt_divisor: 4,
            max_ack_delay: Duration::from_millis(25),
            reordering_threshold: 3,
        }
    }
}

/// A bound of the probe timeout for as long as an outage is young.
///
/// With exponential back-off alone the first packet after an outage may leave as long after its end as
/// the outage lasted. With this bound it leaves after the smoothed RTT plus [`beyond_rtt`](Self::beyond_rtt)
/// at the latest. Once the outage is older than [`period`](Self::period) the timeout grows again by
/// [`pto_backoff`](TransportConfig::pto_backoff), up to [`max_pto`](TransportConfig::max_pto).
///
/// A path that delivers nothing then carries two packets per timeout, each a smoothed RTT apart at least: no more than
/// the least congestion window, two packets per round trip (RFC 9002, section 7.2), would let go.
/// Before the first answer nothing is known of the path, and the limit does not hold.
/// Probes count as in flight as always (section 7.5). Timeouts are never shorter than
/// the first one of section 6.2.1, so that none comes sooner after a packet than its answer is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PtoLimit {
    /// What a timeout may be longer than the smoothed RTT; default 150 ms.
    pub beyond_rtt: Duration,
    /// Age up to which an outage counts as young: the sum of the timeouts since the last packet that
    /// was sent before the first of them. Default 12 s.
    pub period: Duration,
}

impl Default for PtoLimit {
    fn default() -> Self {
        Self {
            beyond_rtt: Duration::from_millis(150),
            period: Duration::from_secs(12),
        }
    }
}

/// How several paths are used in one connection (RFC 10069; draft-ietf-quic-multipath-21).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MultipathConfig {
    /// Paths that may be open at once, 1 to 8; default 4. With 1 the extension is supported, but no second
    /// path can be opened.
    pub max_paths: u8,
    /// A path on which probes go unanswered, and nothing was received for this long, is abandoned while
    /// another one works; default 10 s.
    pub abandon_after: Duration,
    /// Which versions of the extension are declared; default that of RFC 10069 alone.
    pub versions: MultipathVersions,
    /// How the congestion windows of the paths depend on each other; default
    /// [`CouplingRule::Uncoupled`]: on a bottleneck that they share, paths then take a share each. BBR and others
    /// that don't grow by acknowledgements stay uncoupled
    /// ([`Controller::can_be_coupled`](swiftwater_congestion::Controller::can_be_coupled)).
    pub coupling: CouplingRule,
}

impl Default for MultipathConfig {
    fn default() -> Self {
        Self {
            max_paths: 4,
            abandon_after: Duration::from_secs(10),
            versions: MultipathVersions::default(),
            coupling: CouplingRule::default(),
        }
    }
}

impl MultipathConfig {
    /// Most paths of a connection.
    const MAX_PATHS: u8 = 8;

    /// The transport parameter (draft-ietf-quic-multipath-21, section 2.1; -10, section 2).
    pub(crate) fn initial_max_path_id(&self) -> u32 {
        u32::from(self.max_paths.clamp(1, Self::MAX_PATHS)) - 1
    }
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

/// The versions of the multipath extension that an end declares. A connection uses one that both ends declare;
/// if they share both, that of the RFC.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MultipathVersions {
    /// RFC 10069.
    #[default]
    Rfc10069,
    /// draft-ietf-quic-multipath-10, which deployed peers of its age speak.
    Draft10,
    /// Either: a server serves clients of both ages, a client adapts to the server.
    Both,
}

impl MultipathVersions {
    /// True if `version` is declared.
    pub const fn includes(self, version: MultipathVersion) -> bool {
        match version {
            MultipathVersion::Rfc10069 => !matches!(self, Self::Draft10),
            MultipathVersion::Draft10 => !matches!(self, Self::Rfc10069),
        }
    }
}

/// How the largest datagram that a path carries is looked for (RFC 8899).
///
/// Probes leave along with data, one at a time, and never congest: a connection without data to
/// send isn't probed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MtuDiscovery {
    /// Largest UDP payload to try, bytes, 1200 to 65527. Default 1472, which fills Ethernet frames
    /// over IPv4; over IPv6, where 1452 do, the search ends there. The peer's limit, what the socket
    /// takes, and IP headers bound it too.
    pub upper_bound: u16,
    /// Time until a finished search is repeated; default 600 s (`PMTU_RAISE_TIMER` of RFC 8899,
    /// section 5.1.1).
    pub raise_interval: Duration,
    /// Time with smaller datagrams after large ones were found to vanish, before larger ones
    /// are looked for again; default 60 s.
    pub black_hole_pause: Duration,
}

impl Default for MtuDiscovery {
    fn default() -> Self {
        Self {
            upper_bound: 1472,
            raise_interval: Duration::from_secs(600),
            black_hole_pause: Duration::from_secs(60),
        }
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

/// How to accept. Made by [`ServerConfig::new`].
#[derive(Clone)]
pub struct ServerConfig {
    /// TLS.
    pub crypto: Arc<dyn ServerCrypto>,
    /// Behaviour.
    pub transport: Arc<TransportConfig>,
    /// When clients must prove their address before state is kept for them.
    pub retry: RetryPolicy,
    /// How long a token of a Retry is valid; default 15 s. It is valid once.
    pub retry_token_lifetime: Duration,
    /// How long a token for a later connection (`NEW_TOKEN`) is valid; default 2 weeks. It is valid once
    /// ([`EndpointConfig::used_tokens`]). Zero issues none.
    pub address_token_lifetime: Duration,
    /// What to do with data that clients send before the handshake is complete (0-RTT); default
    /// [`EarlyData::Reject`]. To accept them, the TLS adapter must give out tickets that permit it.
    pub early_data: EarlyData,
    /// Let the application send as soon as the client's first flight has arrived (0.5-RTT), a round
    /// trip before the client has proved anything (RFC 9001, section 5.7); default false. It needs no
    /// resumption. Bounded by the amplification limit.
    pub half_rtt: bool,
    /// Asked about each incoming connection; default none, which accepts all.
    pub accept: Option<Arc<dyn AcceptPolicy>>,
}

impl ServerConfig {
    /// Defaults, with Retry while more than 1000 handshakes are in progress.
    pub fn new(crypto: Arc<dyn ServerCrypto>, transport: Arc<TransportConfig>) -> Self {
        Self {
            crypto,
            transport,
            retry: RetryPolicy::Above(1000),
            retry_token_lifetime: Duration::from_secs(15),
            address_token_lifetime: Duration::from_secs(14 * 24 * 60 * 60),
            early_data: EarlyData::Reject,
            half_rtt: false,
            accept: None,
        }
    }
}

/// What a server does with early data (0-RTT).
///
/// They can be recorded and sent again by an attacker on the path, and then they arrive as if the client
/// had sent them twice (RFC 9001, section 9.2). Whether that can happen depends on the tickets that
/// the TLS adapter gives out; within one process that uses each ticket once it can't.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum EarlyData {
    /// Drop them: clients send them anew once the handshake is complete.
    #[default]
    Reject,
    /// Take them. Applications see which streams brought some
    /// ([`RecvStream::is_early_data`](crate::RecvStream::is_early_data)) and hold back what must not
    /// happen twice until the handshake is complete.
    Accept,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("crypto", &self.crypto)
            .field("transport", &self.transport)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// When to answer a client's first packet with Retry (RFC 9000, section 8.1.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RetryPolicy {
    /// Never.
    Never,
    /// While more than this many handshakes are in progress. Each of several workers counts its own
    /// against its share.
    Above(usize),
    /// Always.
    Always,
}

/// What all connections of an endpoint share.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Makes the connection IDs that this end issues; only clients may have empty ones. `None` (default)
    /// makes random ones of 8 bytes, and among several workers such that name the worker
    /// ([`WorkerCids`](crate::WorkerCids)).
    pub cids: Option<Arc<dyn ConnectionIdGenerator>>,
    /// Which of the workers that share an address this is; default the only one.
    pub worker: Worker,
    /// Makes reset tokens and address validation tokens.
    pub key: Arc<dyn EndpointKey>,
    /// Which address validation tokens clients have used, so that each validates an address once; default
    /// 2 MiB of memory, taken when the first token is used ([`UsedTokens`]). Clones of the configuration
    /// share it, as workers and endpoints with the same key must. Servers that accept more than 349,525
    /// connections with a token or after a Retry within
    /// [`address_token_lifetime`](ServerConfig::address_token_lifetime) may need more than the default
    /// to honour each token: 6 bytes for each such connection.
    pub used_tokens: Arc<UsedTokens>,
    /// Connections kept at once, by all workers together; default 1,000,000. Each worker has an equal
    /// share, and refuses new ones beyond it.
    pub max_connections: usize,
    /// Handshakes in progress at once, by all workers together; default 10,000. Each worker has an
    /// equal share, and refuses new ones beyond it.
    pub max_handshakes: usize,
    /// Versions of this end, best first; default QUIC v1, then v2 (RFC 9369). A client begins in the
    /// first one, offers the others, and falls back to them if the server doesn't support the first. A
    /// server goes on in the first one that the client supports too (RFC 9368): v1 clients stay with
    /// v1 unless v2 is before v1 here. Empty means v1. Peers are sent the first 15.
    pub versions: Vec<u32>,
    /// The version that a client begins in, if it is another than the first of [`versions`](Self::versions)
    /// and one of them; default `None`. The list then declares to the server what the client prefers to go on
    /// in (RFC 9368, section 2.3): `versions` with v2 first and v1 here is understood by every server, and
    /// gets to v2 without a further round trip where the server agrees.
    pub first_version: Option<u32>,
    /// Send what means nothing, so that peers and middleboxes don't get used to its absence: reserved
    /// versions and transport parameters (RFC 9000, sections 15 and 18.1), and a random QUIC bit where
    /// the peer accepts it (RFC 9287); default true.
    pub grease: bool,
    /// Send stateless resets for packets of unknown connections; default true.
    pub stateless_reset: bool,
    /// Stateless resets that may be sent in a second, by all workers together, each with an equal share; as
    /// many may leave at once after a second without any. Default 1,000: a server that was restarted informs
    /// that many clients in a second, and a flood of made-up packets has no more than some 63 kB of answers a
    /// second (RFC 9000, section 10.3.3).
    pub stateless_resets_per_second: u32,
    /// No network holds more connections, those that are half open included, than places are free of
    /// [`max_connections`](Self::max_connections), each worker counting its own ([`AddressShares`]); who holds
    /// more is refused (`CONNECTION_REFUSED`). The address is the one that the connection was accepted from,
    /// wherever the client moves later. While an eighth of the places is half open, clients must prove
    /// their address by a Retry first, unless the [`RetryPolicy`] is `Never`: forged addresses take
    /// no client's share.
    /// Default false. For servers with clients of their own, not for those behind a proxy with
    /// one address.
    ///
    /// [`AddressShares`]: crate::AddressShares
    pub share_by_address: bool,
    /// Where servers ask their clients to move after the handshake (RFC 9000, section 9.6); default
    /// nowhere. The driver must receive there, on a socket or address of its own. Needs connection
    /// IDs that are not empty.
    pub preferred_address: PreferredAddresses,
}

/// Addresses that a server prefers, one per family.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PreferredAddresses {
    /// For clients that came over IPv4.
    pub ipv4: Option<SocketAddrV4>,
    /// For clients that came over IPv6.
    pub ipv6: Option<SocketAddrV6>,
}

impl PreferredAddresses {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ipv4.is_none() && self.ipv6.is_none()
    }

    /// The same with `address` in its family's place.
    #[must_use]
    pub fn with(mut self, address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => self.ipv4 = Some(v4),
            SocketAddr::V6(v6) => self.ipv6 = Some(v6),
        }
        self
    }
}

impl EndpointConfig {
    /// Defaults, with tokens made by `key`.
    pub fn new(key: Arc<dyn EndpointKey>) -> Self {
        Self {
            cids: None,
            worker: Worker::default(),
            key,
            used_tokens: Arc::default(),
            max_connections: 1_000_000,
            max_handshakes: 10_000,
            versions: vec![swiftwater_wire::VERSION_1, swiftwater_wire::VERSION_2],
            first_version: None,
            grease: true,
            stateless_reset: true,
            stateless_resets_per_second: 1_000,
            share_by_address: false,
            preferred_address: PreferredAddresses::default(),
        }
    }
}
