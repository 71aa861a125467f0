//! When a packet counts as lost (RFC 9002, section 6).

use std::fmt;
use std::time::Duration;

use swiftwater_congestion::{LossCause, RttView};
use swiftwater_units::{Instant, PacketNumber, PathId};

use super::feedback::ReceivedFeedback;

/// Reordering that a path is granted before a packet counts as lost (RFC 9002, section 6.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReorderingThresholds {
    /// kPacketThreshold: packets, at least 1; `None` for no such test.
    pub packets: Option<u64>,
    /// kTimeThreshold: eighths of the larger of `smoothed_rtt` and `latest_rtt`, at least 8.
    pub time_eighths: u32,
}

impl ReorderingThresholds {
    /// Those that RFC 9002 recommends: three packets, 9/8 of the round-trip time.
    pub const RFC_9002: Self = Self {
        packets: Some(3),
        time_eighths: 9,
    };
}

impl Default for ReorderingThresholds {
    fn default() -> Self {
        Self::RFC_9002
    }
}

/// A packet that a threshold would declare lost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LossCandidate {
    /// Path whose packet number space it belongs to.
    pub path: PathId,
    /// Packet number.
    pub number: PacketNumber,
    /// When it was sent.
    pub sent_at: Instant,
    /// Bytes on the wire.
    pub size: u16,
    /// Largest packet number acknowledged in the space.
    pub largest_acked: PacketNumber,
    /// Which threshold is exceeded.
    pub cause: LossCause,
    /// The larger of `smoothed_rtt` and `latest_rtt` of the path.
    pub rtt: Duration,
}

impl LossCandidate {
    /// Packet `number`, sent at `sent_at` on `path`, behind `largest_acked` by more than the packet
    /// threshold.
    pub fn new(
        path: PathId,
        number: PacketNumber,
        sent_at: Instant,
        largest_acked: PacketNumber,
    ) -> Self {
        Self {
            path,
            number,
            sent_at,
            size: 1_200,
            largest_acked,
            cause: LossCause::Reorder,
            rtt: Duration::from_millis(100),
        }
    }

    /// Sets [`LossCandidate::rtt`]; 100 ms without.
    #[must_use]
    pub fn rtt(mut self, rtt: Duration) -> Self {
        self.rtt = rtt;
        self
    }

    /// Sets [`LossCandidate::cause`].
    #[must_use]
    pub fn cause(mut self, cause: LossCause) -> Self {
        self.cause = cause;
        self
    }
}

/// What becomes of a [`LossCandidate`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossVerdict {
    /// Lost: retransmitted, and the congestion controller is given the loss.
    Lost,
    /// An element on the path (a tunnel that retransmits by itself) gave it up and has reacted to the
    /// congestion already: retransmitted, but no signal to the congestion controller.
    AbandonedUpstream,
    /// Not lost yet; judged again at this time at the latest.
    NotYet(Instant),
}

/// A packet that was declared lost was acknowledged after all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SpuriousLoss {
    /// Packet number.
    pub number: PacketNumber,
    /// Largest packet number that had been acknowledged when it was declared lost, minus its own;
    /// zero if it was declared lost by time alone.
    pub distance: u64,
    /// From sending to the acknowledgement.
    pub delay: Duration,
}

/// A round-trip time sample before it is taken (RFC 9002, section 5.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RttSample {
    /// The largest newly acknowledged packet.
    pub number: PacketNumber,
    /// When that was sent.
    pub sent_at: Instant,
    /// From then to the acknowledgement.
    pub latest: Duration,
    /// Delay that the peer reports, already limited to its `max_ack_delay`.
    pub ack_delay: Duration,
}

/// Judges which packets of a path are lost; one per path.
///
/// The rules of RFC 9002, section 6, are the frame: a judge chooses the thresholds, may let a packet
/// that exceeds them wait, and may lengthen the probe timeout. It never shortens anything below what
/// the RFC permits: the connection takes thresholds of at least one packet and eight eighths.
///
/// Thresholds and probe timeout hold for all packet number spaces whose packets leave on the path;
/// everything else is about its application data. Probes of a larger datagram size and packets that
/// don't count in flight are not judged.
pub trait LossJudge: Send + fmt::Debug {
    /// True if the thresholds never change and every other method is the default one: then they are
    /// read once, and nothing else is called.
    fn is_inert(&self) -> bool {
        false
    }

    /// The thresholds that hold now; read before each run of loss detection.
    fn thresholds(&self) -> ReorderingThresholds;

    /// True if [`LossJudge::judge`] has to be asked about each candidate; false if each is lost.
    fn judges_packets(&self) -> bool {
        false
    }

    /// What becomes of a packet that exceeds a threshold. A time that isn't later than `now` counts
    /// as one millisecond after it. A packet that isn't acknowledged three probe timeouts after it
    /// was sent is lost without a question, so that what it carried isn't held up for ever.
    fn judge(&mut self, _now: Instant, _candidate: &LossCandidate) -> LossVerdict {
        LossVerdict::Lost
    }

    /// Time by which the probe timeout is longer than that of RFC 9002, section 6.2.1, before its
    /// back-off.
    fn extra_probe_timeout(&self, _rtt: &RttView) -> Duration {
        Duration::ZERO
    }

    /// False if the sample must not enter the round-trip times of the path.
    fn takes_rtt_sample(&mut self, _now: Instant, _sample: &RttSample) -> bool {
        true
    }

    /// A loss turned out to be spurious.
    fn on_spurious(&mut self, _now: Instant, _loss: &SpuriousLoss, _rtt: &RttView) {}

    /// A congestion episode began: packets were declared lost for the first time in a round trip
    /// (RFC 9002, section 7.3.2).
    fn on_loss_episode(&mut self, _now: Instant) {}

    /// The peer's feedback arrived.
    fn on_feedback(&mut self, _now: Instant, _feedback: &ReceivedFeedback) {}
}

/// RFC 9002, section 6.1: fixed thresholds, and what exceeds one is lost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FixedThresholds(pub ReorderingThresholds);

impl LossJudge for FixedThresholds {
    fn is_inert(&self) -> bool {
        true
    }

    fn thresholds(&self) -> ReorderingThresholds {
        self.0
    }
}
