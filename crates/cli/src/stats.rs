//! Statistics of a connection, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use swiftwater::Connection;
use swiftwater::quic::{ConnectionStats, FrameCounts, PathStats};
use swiftwater::units::{Bandwidth, ByteCount};

/// Totals of a connection. Times are in milliseconds, sizes in bytes, rates in bits per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatsRow {
    /// Version of QUIC.
    pub version: String,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// UDP payload sent.
    pub bytes_sent: u64,
    /// UDP payload received.
    pub bytes_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and authenticated.
    pub packets_received: u64,
    /// Packets discarded, by reason.
    pub packets_dropped: BTreeMap<&'static str, u64>,
    /// Frames sent, by kind.
    pub frames_sent: BTreeMap<&'static str, u64>,
    /// Frames received, by kind.
    pub frames_received: BTreeMap<&'static str, u64>,
    /// Stream bytes sent, retransmissions and replicas included.
    pub stream_bytes_sent: u64,
    /// Of these, retransmissions and replicas.
    pub stream_bytes_retransmitted: u64,
    /// Stream bytes received, duplicates included.
    pub stream_bytes_received: u64,
    /// Streams opened by this end.
    pub streams_opened: u64,
    /// Streams that the peer opened.
    pub streams_opened_by_peer: u64,
    /// Streams reset by this end.
    pub streams_reset: u64,
    /// Streams reset by the peer.
    pub streams_reset_by_peer: u64,
    /// Time during which the peer's flow control blocked data.
    pub flow_blocked_ms: f64,
    /// Key updates, of both ends.
    pub key_updates: u64,
    /// Connection migrations.
    pub path_changes: u64,
    /// From the first packet to the complete handshake.
    pub handshake_ms: Option<f64>,
    /// From the first packet to the confirmed handshake.
    pub confirmed_ms: Option<f64>,
    /// The paths.
    pub paths: Vec<PathRow>,
}

/// State and totals of a path, in the same units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathRow {
    /// The path.
    pub id: u32,
    /// This end's address on it; null if the system chooses.
    pub local: Option<String>,
    /// The peer's address on it.
    pub remote: String,
    /// Bytes sent in packets that count in flight.
    pub bytes_sent: u64,
    /// Bytes received in packets.
    pub bytes_received: u64,
    /// Of the stream bytes sent, retransmissions and copies.
    pub retransmitted: u64,
    /// Of these, re-injected copies of what was still in flight, here or on another path.
    pub copies: u64,
    /// Name of the congestion controller.
    pub controller: &'static str,
    /// Its state.
    pub congestion_state: &'static str,
    /// Smoothed round-trip time.
    pub srtt_ms: f64,
    /// Its variation.
    pub rttvar_ms: f64,
    /// Smallest sample.
    pub min_rtt_ms: f64,
    /// Last sample.
    pub latest_rtt_ms: f64,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold, if one is set.
    pub ssthresh: Option<u64>,
    /// Pacing rate, if it paces.
    pub pacing_bps: Option<u64>,
    /// Last delivery-rate sample.
    pub delivery_bps: Option<u64>,
    /// Packets sent that count as bytes in flight.
    pub packets_sent: u64,
    /// Of these, declared lost.
    pub packets_lost: u64,
    /// Of the lost ones, spurious losses.
    pub spurious_losses: u64,
    /// Congestion events.
    pub congestion_events: u64,
    /// Probe timeouts (PTO).
    pub probe_timeouts: u64,
    /// True if packets are marked ECT.
    pub ecn: bool,
    /// CE marks that the peer reported.
    pub ecn_ce: u64,
    /// UDP payload of full-sized datagrams.
    pub mtu: u16,
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn kinds(counts: &FrameCounts) -> BTreeMap<&'static str, u64> {
    counts.iter().collect()
}

impl From<&ConnectionStats> for StatsRow {
    fn from(stats: &ConnectionStats) -> Self {
        Self {
            version: format!("{:#x}", stats.version),
            datagrams_sent: stats.datagrams_sent,
            datagrams_received: stats.datagrams_received,
            bytes_sent: stats.bytes_sent.get(),
            bytes_received: stats.bytes_received.get(),
            packets_sent: stats.packets_sent.get(),
            packets_received: stats.packets_received.get(),
            packets_dropped: stats.drops.iter().copied().collect(),
            frames_sent: kinds(&stats.frames_sent),
            frames_received: kinds(&stats.frames_received),
            stream_bytes_sent: stats.stream_bytes_sent.get(),
            stream_bytes_retransmitted: stats.stream_bytes_retransmitted.get(),
            stream_bytes_received: stats.stream_bytes_received.get(),
            streams_opened: stats.streams_opened,
            streams_opened_by_peer: stats.streams_opened_by_peer,
            streams_reset: stats.streams_reset,
            streams_reset_by_peer: stats.streams_reset_by_peer,
            flow_blocked_ms: millis(stats.flow_blocked),
            key_updates: stats.key_updates,
            path_changes: stats.path_changes,
            handshake_ms: stats.handshake_duration.map(millis),
            confirmed_ms: stats.confirmed_after.map(millis),
            paths: stats.paths.iter().map(PathRow::from).collect(),
        }
    }
}

impl From<&PathStats> for PathRow {
    fn from(path: &PathStats) -> Self {
        Self {
            id: path.id.get(),
            local: path.local.ip.map(|ip| ip.to_string()),
            remote: path.remote.to_string(),
            bytes_sent: path.sent_bytes.get(),
            bytes_received: path.received_bytes.get(),
            retransmitted: path.retransmitted.get(),
            copies: path.copies.get(),
            controller: path.controller,
            congestion_state: path.congestion_state,
            srtt_ms: millis(path.smoothed_rtt),
            rttvar_ms: millis(path.rtt_var),
            min_rtt_ms: millis(path.min_rtt),
            latest_rtt_ms: millis(path.latest_rtt),
            cwnd: path.cwnd.get(),
            ssthresh: path.ssthresh.map(ByteCount::get),
            pacing_bps: path.pacing_rate.map(Bandwidth::as_bps),
            delivery_bps: path.delivery_rate.map(Bandwidth::as_bps),
            packets_sent: path.sent_packets.get(),
            packets_lost: path.lost_packets.get(),
            spurious_losses: path.spurious_losses.get(),
            congestion_events: path.congestion_events,
            probe_timeouts: path.pto_count,
            ecn: path.ecn,
            ecn_ce: path.ecn_ce.get(),
            mtu: path.max_datagram_size,
        }
    }
}

/// Every path of a connection, those that have ended among them, by identifier.
pub fn path_rows(connection: &Connection) -> Vec<PathRow> {
    let mut all = connection.paths();
    let ended = connection.ended_paths().into_iter();
    let ended: Vec<_> = ended
        .filter(|path| all.iter().all(|other| other.id != path.id))
        .collect();
    all.extend(ended);
    all.sort_by_key(|path| path.id);
    let port = |row: &mut PathRow, path: &PathStats| {
        let address = connection.path_addresses(path.id);
        if let Some((local, _)) = address {
            row.local = Some(local.to_string());
        }
    };
    let rows = all.iter().map(|path| {
        let mut row = PathRow::from(path);
        port(&mut row, path);
        row
    });
    rows.collect()
}
