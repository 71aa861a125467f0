//! The records that the transport hands to a controller: plain data, all of it measured elsewhere.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

/// One congestion event in the sense of RFC 9002, section 7.3.2: all losses of packets sent before
/// the first of them was detected. Numbered from 1 on each path.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct EpisodeId(pub u64);

/// Round-trip times of the path (RFC 9002, section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttView {
    /// The last sample, adjusted for `ack_delay`.
    pub latest: Duration,
    /// `smoothed_rtt`.
    pub smoothed: Duration,
    /// `rttvar`.
    pub var: Duration,
    /// `min_rtt`, not adjusted for `ack_delay`.
    pub min: Duration,
    /// When `min` was last lowered or confirmed.
    pub min_at: Instant,
    /// False until the first sample; the values above are then assumptions.
    pub has_sample: bool,
}

impl RttView {
    /// `smoothed_rtt`, or `None` before the first sample, when it would only be an assumption.
    pub fn known_smoothed(&self) -> Option<Duration> {
        self.has_sample.then_some(self.smoothed)
    }
}

/// Position in the count of round trips: a round ends when a packet sent after its start is acked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// Completed rounds.
    pub count: u64,
    /// True if this batch began a new round.
    pub start: bool,
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered in `interval`.
    pub delivered: ByteCount,
    /// The longer of `send_elapsed` and `ack_elapsed`.
    pub interval: Duration,
    /// `delivered / interval`.
    pub rate: Bandwidth,
    /// True if the sampled packet was sent while the application limited the flow.
    pub is_app_limited: bool,
    /// Total delivered when the sampled packet was sent.
    pub prior_delivered: ByteCount,
    /// Bytes in flight just after the sampled packet was sent, itself included.
    pub tx_in_flight: ByteCount,
    /// Bytes lost since the sampled packet was sent.
    pub lost_since_sent: ByteCount,
    /// Packets marked CE since the sampled packet was sent.
    pub ce_since_sent: PacketCount,
    /// Time over which the sampled packets were sent.
    pub send_elapsed: Duration,
    /// Time over which they were acknowledged.
    pub ack_elapsed: Duration,
}

/// Increases of the peer's ECN counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EcnCounts {
    /// Packets that arrived as ECT(0).
    pub ect0: PacketCount,
    /// Packets that arrived as ECT(1).
    pub ect1: PacketCount,
    /// Packets that arrived marked CE.
    pub ce: PacketCount,
}

/// Everything one ACK frame newly acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckBatch {
    /// When the ACK arrived.
    pub now: Instant,
    /// Bytes newly acknowledged (packets counted in flight only).
    pub acked_bytes: ByteCount,
    /// Packets newly acknowledged.
    pub acked_packets: PacketCount,
    /// Bytes in flight before this ACK.
    pub prior_inflight: ByteCount,
    /// Bytes in flight after this ACK and the losses it revealed.
    pub inflight: ByteCount,
    /// When the largest newly acknowledged packet was sent.
    pub largest_acked_sent_at: Instant,
    /// The path's round-trip times, this ACK included.
    pub rtt: RttView,
    /// Round count, this ACK included.
    pub round: Round,
    /// Delivery-rate sample, if the ACK yields one.
    pub rate: Option<RateSample>,
    /// Total bytes delivered on the path, this ACK included.
    pub delivered: ByteCount,
    /// ECN counts that this ACK added; zero if ECN is off or failed validation.
    pub ecn: EcnCounts,
    /// True if the flow has been limited by the application or by the peer's flow control, not by
    /// the window, the pacer or the controller's own mark
    /// ([`Controller::uses_app_limited_mark`](crate::Controller::uses_app_limited_mark)): the window
    /// is not tested (RFC 9002, section 7.8).
    pub app_limited: bool,
    /// True if the window was filled at any time in the current or the previous round.
    pub cwnd_limited_in_round: bool,
    /// Bytes that this ACK revealed as lost.
    pub newly_lost_bytes: ByteCount,
    /// True while a loss or CE episode is open (RFC 9002, recovery period), after this ACK.
    pub in_recovery: bool,
    /// True if this ACK closed the episode.
    pub recovery_ended: bool,
    /// True if the largest newly acked packet was sent after the last congestion event began, so
    /// that the window may grow (RFC 9002, section 7.3.2).
    pub sent_after_recovery_start: bool,
}

/// Why packets were declared lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossCause {
    /// Packet threshold (RFC 9002, section 6.1.1).
    Reorder,
    /// Time threshold (RFC 9002, section 6.1.2).
    Time,
    /// Path or space abandoned with packets in flight.
    Abandoned,
}

/// One lost packet, as recorded when it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostPacket {
    /// Bytes that it took.
    pub size: ByteCount,
    /// When it was sent.
    pub sent_at: Instant,
    /// Bytes in flight just after it was sent, itself included.
    pub tx_in_flight: ByteCount,
    /// Total lost on the path when it was sent.
    pub lost_prior: ByteCount,
    /// Total delivered on the path when it was sent.
    pub delivered_prior: ByteCount,
    /// True if it was sent while the application limited the flow.
    pub is_app_limited: bool,
}

/// Everything one run of loss detection declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LossBatch<'a> {
    /// When the loss was detected.
    pub now: Instant,
    /// Bytes lost in this run.
    pub lost_bytes: ByteCount,
    /// Packets lost in this run.
    pub lost_packets: PacketCount,
    /// Discontiguous packet-number ranges among them.
    pub lost_ranges: u64,
    /// When the newest of the lost packets was sent.
    pub largest_lost_sent_at: Instant,
    /// True if this run opens a new episode: the signal that loss-based algorithms react to.
    pub new_episode: bool,
    /// The episode these losses belong to.
    pub episode: EpisodeId,
    /// Each lost packet, oldest first.
    pub packets: &'a [LostPacket],
    /// Bytes in flight before the losses were taken out.
    pub prior_inflight: ByteCount,
    /// Bytes in flight now.
    pub inflight: ByteCount,
    /// Bytes lost in the running round, this run included.
    pub round_lost: ByteCount,
    /// Bytes sent in the running round.
    pub round_sent: ByteCount,
    /// Why they were declared lost.
    pub cause: LossCause,
    /// The path's round-trip times.
    pub rtt: RttView,
    /// True if the window was filled at any time in the current or the previous round.
    pub cwnd_limited_in_round: bool,
}

/// More CE marks, reported by one ACK frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnBatch {
    /// When the ACK arrived.
    pub now: Instant,
    /// The increase of each count.
    pub counts: EcnCounts,
    /// When the largest newly acknowledged packet was sent.
    pub largest_acked_sent_at: Instant,
    /// True if the marks open a new episode.
    pub new_episode: bool,
    /// The episode they belong to.
    pub episode: EpisodeId,
    /// Bytes in flight now.
    pub inflight: ByteCount,
    /// The path's round-trip times.
    pub rtt: RttView,
    /// True if the window was filled at any time in the current or the previous round.
    pub cwnd_limited_in_round: bool,
}

/// A packet that has just left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentInfo {
    /// When it left.
    pub now: Instant,
    /// Its size on the wire, UDP payload.
    pub bytes: ByteCount,
    /// Bytes in flight before it.
    pub inflight_before: ByteCount,
    /// True for a probe sent on timeout.
    pub is_probe: bool,
    /// True for an MTU probe.
    pub is_mtu_probe: bool,
    /// True if the peer must acknowledge it.
    pub ack_eliciting: bool,
    /// Set if nothing was in flight before it: for how long nothing was sent or acknowledged.
    pub was_idle: Option<Duration>,
}
