//! Counters and measurements of a connection; cheap enough to poll.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount, PathId};

use crate::frame_counts::{FrameCounter, FrameCounts};
use crate::lazy_box::LazyBox;
use crate::observe::EarlyDataOutcome;
use crate::observe::EcnState;
use crate::path::MtuState;
use crate::policy::ReinjectorReport;
use crate::space::Arrivals;
use crate::streams::RepairStats;
use crate::transmit::LocalAddress;

/// Totals of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionStats {
    /// Version of QUIC; may change until the handshake is complete.
    pub version: u32,
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
    /// Ack-eliciting packets sent that are neither acknowledged nor lost, MTU probes left out (RFC 9002,
    /// section 2). Bytes in flight without any are those of padded acknowledgements, which no peer
    /// acknowledges until something else is sent.
    pub packets_awaiting_acks: PacketCount,
    /// Packets that were thrown away: undecryptable, duplicate, malformed.
    pub packets_dropped: PacketCount,
    /// The same by reason, in words, the first reason first; at most some twenty.
    pub drops: Vec<(&'static str, u64)>,
    /// Frames sent, by kind; padding is not counted.
    pub frames_sent: FrameCounts,
    /// Frames received, by kind; those of packets that broke the rules up to the frame that did.
    pub frames_received: FrameCounts,
    /// Streams that have state.
    pub streams_open: usize,
    /// Streams that this end opened.
    pub streams_opened: u64,
    /// Streams that the peer opened.
    pub streams_opened_by_peer: u64,
    /// Time for which the peer's flow control, of the connection or of a stream, held stream data
    /// back; until the last datagram or timeout if it does now.
    pub flow_blocked: Duration,
    /// Stream bytes sent, retransmissions included.
    pub stream_bytes_sent: ByteCount,
    /// Stream bytes sent again after a loss, and re-injected copies.
    pub stream_bytes_retransmitted: ByteCount,
    /// Repair of lost stream data.
    pub repair: RepairStats,
    /// State of the re-injector.
    pub reinjector: ReinjectorReport,
    /// Stream bytes received, duplicates included.
    pub stream_bytes_received: ByteCount,
    /// Stream bytes written and kept until the peer acknowledges them; at most
    /// [`TransportConfig::send_window`](crate::TransportConfig::send_window).
    pub send_buffered: ByteCount,
    /// Stream bytes that wait to be read, gaps included; bounded by the receive windows.
    pub receive_buffered: ByteCount,
    /// Streams whose sending was abandoned here, by the application, by a `STOP_SENDING` or because
    /// they expired.
    pub streams_reset: u64,
    /// Streams whose sending the peer gave up.
    pub streams_reset_by_peer: u64,
    /// Of `streams_reset`, those that expired.
    pub streams_expired: u64,
    /// Stream bytes that were abandoned when their streams expired, unsent ones included.
    pub expired_bytes: ByteCount,
    /// DATAGRAM frames that were dropped unread because the queue was full.
    pub datagrams_dropped: u64,
    /// Queued datagrams that were dropped unsent because the path carries none of their size any more.
    pub datagrams_too_large: u64,
    /// Queued datagrams that were dropped unsent because their deadline came.
    pub datagrams_expired: u64,
    /// Datagrams that wait to be sent.
    pub datagrams_unsent: usize,
    /// Their payload bytes.
    pub datagram_bytes_unsent: ByteCount,
    /// Changes of the path in use by either end, those included that were reverted.
    pub path_changes: u64,
    /// Key updates, by either end.
    pub key_updates: u64,
    /// Longest delay of acknowledgements that is assumed of the peer: what it declared, or what
    /// this end requested (RFC 9000, section 18.2; draft-ietf-quic-ack-frequency).
    pub peer_max_ack_delay: Duration,
    /// Decisions of policies that were invalid and replaced by the default.
    pub invalid_decisions: u64,
    /// Time from the first packet to the completed handshake.
    pub handshake_duration: Option<Duration>,
    /// The TLS session of an earlier connection was resumed.
    pub resumed: bool,
    /// What became of early data; `None` if there were none, and on a client until the server has
    /// answered.
    pub early_data: Option<EarlyDataOutcome>,
    /// Time from the first packet to the confirmed handshake (RFC 9001, section 4.1.2).
    pub confirmed_after: Option<Duration>,
    /// One entry per path, by identifier.
    pub paths: Vec<PathStats>,
    /// Paths that were abandoned and are over, as they were at their end, in that order; the last 16.
    pub ended_paths: Vec<PathStats>,
}

/// What a connection counts itself; all else in [`ConnectionStats`] is read from its parts.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) datagrams_sent: u64,
    pub(crate) datagrams_received: u64,
    pub(crate) bytes_sent: ByteCount,
    pub(crate) bytes_received: ByteCount,
    pub(crate) packets_sent: PacketCount,
    pub(crate) packets_received: PacketCount,
    pub(crate) packets_dropped: PacketCount,
    pub(crate) drops: LazyBox<Vec<(&'static str, u64)>>,
    pub(crate) frames_received: FrameCounter,
    pub(crate) path_changes: u64,
    pub(crate) invalid_decisions: u64,
    pub(crate) flow_blocked: Duration,
    pub(crate) handshake_completed_at: Option<Instant>,
    pub(crate) handshake_confirmed_at: Option<Instant>,
}

impl Totals {
    /// Statistics with these in them, and nothing else.
    pub(crate) fn snapshot(&self, started_at: Instant) -> ConnectionStats {
        let since_start = |at: Option<Instant>| at.map(|at| at - started_at);
        ConnectionStats {
            datagrams_sent: self.datagrams_sent,
            datagrams_received: self.datagrams_received,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            packets_dropped: self.packets_dropped,
            drops: self.drops.get().cloned().unwrap_or_default(),
            frames_received: self.frames_received.totals(),
            path_changes: self.path_changes,
            invalid_decisions: self.invalid_decisions,
            handshake_duration: since_start(self.handshake_completed_at),
            confirmed_after: since_start(self.handshake_confirmed_at),
            ..ConnectionStats::default()
        }
    }
}

/// State and totals of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// The peer's address on it.
    pub remote: SocketAddr,
    /// Its local end.
    pub local: LocalAddress,
    /// True if the peer has proven that it receives there; a client takes that for granted of the
    /// address that it connected to.
    pub validated: bool,
    /// Name of the congestion controller.
    pub controller: &'static str,
    /// State that it is in, in the words of the algorithm.
    pub congestion_state: &'static str,
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
    /// What the path carries, as the controller estimates it; `None` if it has no estimate.
    pub bandwidth: Option<Bandwidth>,
    /// True while the application, not the window or the pacer, limits the flow.
    pub app_limited: bool,
    /// Bytes sent in packets that count in flight, packet headers included.
    pub sent_bytes: ByteCount,
    /// Packets sent that count in flight.
    pub sent_packets: PacketCount,
    /// Bytes received in authenticated packets, packet headers included.
    pub received_bytes: ByteCount,
    /// Packets of the peer that should have come, and those that have not: the receiver's estimate of the loss.
    pub arrivals: Arrivals,
    /// Stream bytes sent again on this path after a loss, and re-injected copies.
    pub retransmitted: ByteCount,
    /// Of `retransmitted`, re-injected copies of what was still in flight.
    pub copies: ByteCount,
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
    /// What is known of the way that the path treats marks.
    pub ecn_state: EcnState,
    /// CE marks that the peer reported.
    pub ecn_ce: PacketCount,
    /// UDP payload size in use.
    pub max_datagram_size: u16,
    /// Where the search for the largest size stands.
    pub mtu_state: MtuState,
    /// Probes of larger sizes that were sent.
    pub mtu_probes_sent: u64,
    /// Probes of larger sizes that were lost; they are no part of `lost_packets`.
    pub mtu_probes_lost: u64,
    /// Times that large packets vanished and the smallest size was taken again.
    pub mtu_black_holes: u64,
}

impl fmt::Display for ConnectionStats {
    /// The main figures on one line, for people and logs; its form may change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "version {:#x}, sent {} packets ({} bytes), received {} ({} bytes), dropped {}",
            self.version,
            self.packets_sent.get(),
            self.bytes_sent.get(),
            self.packets_received.get(),
            self.bytes_received.get(),
            self.packets_dropped.get(),
        )?;
        write!(
            f,
            ", {} streams, {} key updates, {} path changes",
            self.streams_opened + self.streams_opened_by_peer,
            self.key_updates,
            self.path_changes,
        )?;
        if let Some(duration) = self.handshake_duration {
            write!(f, ", handshake {duration:.1?}")?;
        }
        if !self.flow_blocked.is_zero() {
            write!(f, ", {:.1?} blocked by flow control", self.flow_blocked)?;
        }
        self.paths.iter().try_for_each(|path| write!(f, "; {path}"))
    }
}

impl PathStats {
    /// The rate that congestion control grants: the controller's estimate, or a window per round trip.
    pub fn granted_rate(&self) -> Bandwidth {
        self.bandwidth
            .unwrap_or_else(|| Bandwidth::from_transfer(self.cwnd.get(), self.smoothed_rtt))
    }

    /// True while the controller looks for the capacity of the path for the first time: in slow start, or what BBR has
    /// in its place.
    pub fn is_in_startup(&self) -> bool {
        matches!(self.congestion_state, "startup" | "slow_start")
    }
}

impl fmt::Display for PathStats {
    /// The main figures on one line, for people and logs; its form may change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "path {} to {}: rtt {:.1?} (least {:.1?}), {} {}, window {} bytes, lost {} of {} packets \
             ({} spurious), {} probe timeouts, MTU {}",
            self.id.get(),
            self.remote,
            self.smoothed_rtt,
            self.min_rtt,
            self.controller,
            self.congestion_state,
            self.cwnd.get(),
            self.lost_packets.get(),
            self.sent_packets.get(),
            self.spurious_losses.get(),
            self.pto_count,
            self.max_datagram_size,
        )
    }
}
