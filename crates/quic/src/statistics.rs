//! The statistics of a connection, gathered from the owners of what they count.

use std::time::Duration;

use swiftwater_units::PacketCount;

use crate::datagrams::Datagrams;
use crate::frame_counts::FrameCounter;
use crate::handshake::Handshake;
use crate::lifecycle::Lifecycle;
use crate::monitor::Monitor;
use crate::observe::EarlyDataOutcome;
use crate::path::{PathSet, PathState};
use crate::policy_host::PolicyHost;
use crate::stats::{ConnectionStats, PathStats};
use crate::streams::Streams;

/// What statistics are read from.
pub(crate) struct Statistics<'a> {
    pub(crate) monitor: &'a Monitor,
    pub(crate) frames_sent: &'a FrameCounter,
    pub(crate) lifecycle: &'a Lifecycle,
    pub(crate) handshake: &'a Handshake,
    pub(crate) early_data: Option<EarlyDataOutcome>,
    /// The TLS session of an earlier connection was resumed.
    pub(crate) resumed: bool,
    pub(crate) streams: &'a Streams,
    pub(crate) datagrams: &'a Datagrams,
    pub(crate) paths: &'a PathSet,
    pub(crate) policies: &'a PolicyHost,
    pub(crate) peer_max_ack_delay: Duration,
    /// Paths that are over.
    pub(crate) ended_paths: &'a [PathStats],
}

impl Statistics<'_> {
    /// All of them, as they are now.
    pub(crate) fn gather(&self) -> ConnectionStats {
        let totals = &self.monitor.stats;
        let mut stats = totals.snapshot(self.lifecycle.started_at());
        self.add_streams(&mut stats);
        self.add_datagrams(&mut stats);
        stats.flow_blocked = self.monitor.flow_blocked(self.lifecycle.last_packet_at);
        stats.frames_sent = self.frames_sent.totals();
        let spaces = self.paths.spaces();
        let awaiting = spaces
            .map(|(_, space)| space.ledger.eliciting_in_flight())
            .sum();
        stats.packets_awaiting_acks = PacketCount::new(awaiting);
        stats.reinjector = self.policies.reinjector.report();
        stats.version = self.handshake.version();
        stats.peer_max_ack_delay = self.peer_max_ack_delay;
        stats.key_updates = self.handshake.keys().generation();
        stats.resumed = self.resumed;
        stats.early_data = self.early_data;
        stats.paths = self.paths.iter().map(path_stats).collect();
        stats.ended_paths = self.ended_paths.to_vec();
        stats
    }

    fn add_streams(&self, stats: &mut ConnectionStats) {
        let streams = self.streams.stats();
        stats.stream_bytes_sent = streams.sent_bytes.into();
        stats.stream_bytes_retransmitted = streams.retransmitted_bytes.into();
        stats.stream_bytes_received = streams.received_bytes.into();
        stats.send_buffered = streams.send_buffered.into();
        stats.receive_buffered = streams.receive_buffered.into();
        stats.streams_reset = streams.resets_sent;
        stats.streams_reset_by_peer = streams.resets_received;
        stats.streams_expired = streams.expired_streams;
        stats.expired_bytes = streams.expired_bytes.into();
        stats.streams_open = streams.open;
        stats.streams_opened = streams.opened;
        stats.streams_opened_by_peer = streams.opened_by_peer;
        stats.repair = self.streams.repair_stats();
    }

    fn add_datagrams(&self, stats: &mut ConnectionStats) {
        let datagrams = self.datagrams.totals();
        stats.datagrams_dropped = datagrams.dropped_unread;
        stats.datagrams_too_large = datagrams.too_large;
        stats.datagrams_expired = datagrams.expired;
        stats.datagrams_unsent = self.datagrams.unsent();
        stats.datagram_bytes_unsent = self.datagrams.unsent_bytes().into();
    }
}

/// State and totals of one path.
pub(crate) fn path_stats(path: &PathState) -> PathStats {
    let recovery = &path.recovery;
    let (rtt, totals) = (recovery.rtt(), recovery.stats());
    let snapshot = recovery.controller().snapshot();
    PathStats {
        id: path.id,
        remote: path.network.address.remote,
        local: path.network.address.local,
        validated: path.network.amplification.is_validated(),
        controller: recovery.controller().name(),
        congestion_state: snapshot.state,
        smoothed_rtt: rtt.smoothed,
        rtt_var: rtt.var,
        latest_rtt: rtt.latest,
        min_rtt: if rtt.has_sample {
            rtt.min
        } else {
            Duration::ZERO
        },
        mean_rtt: recovery.mean_rtt(),
        cwnd: snapshot.cwnd,
        ssthresh: snapshot.ssthresh,
        bytes_in_flight: recovery.bytes_in_flight(),
        pacing_rate: recovery.pacing_rate(),
        delivery_rate: recovery.delivery_rate(),
        bandwidth: recovery.controller().bandwidth(),
        app_limited: recovery.is_app_limited(),
        sent_bytes: totals.sent,
        sent_packets: totals.sent_packets,
        received_bytes: path.received_bytes,
        arrivals: path.space.received.arrivals(),
        retransmitted: totals.retransmitted,
        copies: totals.copies,
        delivered: totals.delivered,
        lost_packets: totals.lost_packets,
        lost_bytes: totals.lost_bytes,
        spurious_losses: totals.spurious_packets,
        congestion_events: totals.congestion_events,
        spurious_events: totals.spurious_events,
        pto_count: totals.pto_count,
        ecn: path.network.ecn.is_usable(),
        ecn_state: path.network.ecn.state(),
        ecn_ce: path.network.ecn.ce_total().into(),
        max_datagram_size: path.network.mtu.current(),
        mtu_state: path.network.mtu.state(),
        mtu_probes_sent: path.network.mtu.totals().probes_sent.into(),
        mtu_probes_lost: path.network.mtu.totals().probes_lost.into(),
        mtu_black_holes: path.network.mtu.totals().black_holes.into(),
    }
}
