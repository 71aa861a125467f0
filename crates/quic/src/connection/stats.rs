//! Counters and measurements of a connection; cheap enough to poll.

use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, PacketCount, PathId};

use crate::policy::ReinjectorReport;
use crate::streams::RepairStats;

/// Totals of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionStats {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// UDP payload sent.
    pub bytes_sent: ByteCount,
    /// UDP payload received.
    pub bytes_received: ByteCount,
    /// Packets sent.
    pub packets_sent: PacketCount,
    /// Packets received and authenticated.
    pub packets_received: PacketCount,
    /// Packets that were thrown away: undecryptable, duplicate, malformed.
    pub packets_dropped: PacketCount,
    /// Stream bytes sent, retransmissions included.
    pub stream_bytes_sent: ByteCount,
    /// Stream bytes sent again after a loss, and re-injected copies.
    pub stream_bytes_retransmitted: ByteCount,
    /// Repair of lost stream data.
    pub repair: RepairStats,
    /// What the re-injector reckons with.
    pub reinjector: ReinjectorReport,
    /// Stream bytes received, duplicates included.
    pub stream_bytes_received: ByteCount,
    /// Stream bytes written and kept until the peer acknowledges them; at most
    /// [`TransportConfig::send_window`](crate::TransportConfig::send_window).
    pub send_buffered: ByteCount,
    /// Stream bytes that wait to be read, gaps included; bounded by the receive windows.
    pub receive_buffered: ByteCount,
    /// DATAGRAM frames that were dropped unread because the queue was full.
    pub datagrams_dropped: u64,
    /// Key updates, ours and the peer's.
    pub key_updates: u64,
    /// Decisions of policies that were invalid and replaced by the default.
    pub invalid_decisions: u64,
    /// Time from the first packet to the completed handshake.
    pub handshake_duration: Option<Duration>,
    /// One entry per path, by identifier.
    pub paths: Vec<PathStats>,
}

/// State and totals of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// The peer's address on it.
    pub remote: SocketAddr,
    /// Name of the congestion controller.
    pub controller: &'static str,
    /// `smoothed_rtt`; the assumed one before the first sample.
    pub smoothed_rtt: Duration,
    /// `rttvar`.
    pub rtt_var: Duration,
    /// Last sample.
    pub latest_rtt: Duration,
    /// Smallest sample; zero before the first.
    pub min_rtt: Duration,
    /// Mean over all samples; zero before the first.
    pub mean_rtt: Duration,
    /// Congestion window.
    pub cwnd: ByteCount,
    /// Slow-start threshold, if one is set.
    pub ssthresh: Option<ByteCount>,
    /// Bytes in flight.
    pub bytes_in_flight: ByteCount,
    /// Rate that the pacer follows now, whether the controller asks for it or it comes from the
    /// window and the round-trip time; `None` if pacing is off.
    pub pacing_rate: Option<Bandwidth>,
    /// Last delivery-rate sample (draft-ietf-ccwg-bbr, section 4.5); `None` before the first on the
    /// present address. A sample of a flow that its application limits says little about the path,
    /// see `app_limited`.
    pub delivery_rate: Option<Bandwidth>,
    /// True while the application, not the window or the pacer, limits the flow.
    pub app_limited: bool,
    /// Bytes sent in packets that count in flight, packet headers included.
    pub sent_bytes: ByteCount,
    /// Packets sent that count in flight.
    pub sent_packets: PacketCount,
    /// Stream bytes sent again on this path after a loss, and re-injected copies.
    pub retransmitted: ByteCount,
    /// Bytes acknowledged.
    pub delivered: ByteCount,
    /// Packets declared lost.
    pub lost_packets: PacketCount,
    /// Bytes declared lost.
    pub lost_bytes: ByteCount,
    /// Packets declared lost that arrived after all.
    pub spurious_losses: PacketCount,
    /// Congestion events.
    pub congestion_events: u64,
    /// Congestion events that turned out to be spurious as a whole.
    pub spurious_events: u64,
    /// Probe timeouts.
    pub pto_count: u64,
    /// True if sent packets are marked ECT and the path carries marks faithfully, as far as known.
    pub ecn: bool,
    /// CE marks that the peer reported.
    pub ecn_ce: PacketCount,
    /// UDP payload size in use.
    pub max_datagram_size: u16,
}
