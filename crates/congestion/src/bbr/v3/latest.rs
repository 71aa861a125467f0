//! What the running round delivered, and whether it met congestion: the signals of the short-term
//! model (draft-ietf-ccwg-bbr, section 5.5.10.3).

use swiftwater_units::{Bandwidth, ByteCount};

use crate::sample::RateSample;

/// When the round of a first loss ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RoundEnd {
    /// With the first packet sent when this much had been delivered.
    Delivered(ByteCount),
    /// The total delivered is known only with the ACK that is being processed.
    FromNextAck,
}

/// Signals of a round that begins anew with the first loss after one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LatestSignals {
    bandwidth: Bandwidth,
    inflight: ByteCount,
    end: RoundEnd,
    has_loss: bool,
    has_marks: bool,
    round_start: bool,
}

impl LatestSignals {
    pub(super) fn new() -> Self {
        Self {
            bandwidth: Bandwidth::ZERO,
            inflight: ByteCount::ZERO,
            end: RoundEnd::Delivered(ByteCount::ZERO),
            has_loss: false,
            has_marks: false,
            round_start: false,
        }
    }

    /// A packet was lost: a round of the signals begins with the first.
    pub(super) fn on_loss(&mut self) {
        if !self.has_loss {
            self.end = RoundEnd::FromNextAck;
        }
        self.has_loss = true;
    }

    /// A packet came back marked, and marks are answered in proportion.
    pub(super) fn on_marks(&mut self) {
        self.has_marks = true;
    }

    /// An ACK begins to be processed. `delivered` had been delivered in all when the losses before
    /// it were detected.
    pub(super) fn settle(&mut self, delivered: ByteCount) {
        if self.end == RoundEnd::FromNextAck {
            self.end = RoundEnd::Delivered(delivered);
        }
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update(&mut self, sample: Option<&RateSample>, delivered: ByteCount) {
        self.round_start = false;
        let Some(sample) = sample else {
            return;
        };
        self.bandwidth = self.bandwidth.max(sample.rate);
        self.inflight = self.inflight.max(sample.delivered);
        if let RoundEnd::Delivered(end) = self.end
            && sample.prior_delivered >= end
        {
            self.end = RoundEnd::Delivered(delivered);
            self.round_start = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance(&mut self, sample: Option<&RateSample>) {
        if let (true, Some(sample)) = (self.round_start, sample) {
            self.bandwidth = sample.rate;
            self.inflight = sample.delivered;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        self.clear_congestion();
        self.bandwidth = Bandwidth::ZERO;
        self.inflight = ByteCount::ZERO;
    }

    pub(super) fn clear_congestion(&mut self) {
        self.has_loss = false;
        self.has_marks = false;
    }

    /// True if the last ACK began a round of the signals.
    pub(super) fn round_start(&self) -> bool {
        self.round_start
    }

    pub(super) fn has_loss(&self) -> bool {
        self.has_loss
    }

    pub(super) fn has_marks(&self) -> bool {
        self.has_marks
    }

    /// Largest delivery rate of the round.
    pub(super) fn bandwidth(&self) -> Bandwidth {
        self.bandwidth
    }

    /// Most that was delivered within a round trip.
    pub(super) fn inflight(&self) -> ByteCount {
        self.inflight
    }
}
