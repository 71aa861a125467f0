//! Loss judgement of one path: the policy that judges which packets are lost, the limits of its verdicts,
//! and what its reports of spurious losses need (RFC 9002, section 6.1).

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_congestion::RttView;
use swiftwater_units::{Instant, PacketNumber, PathId};

use super::rtt::GRANULARITY;
use super::{AckedPacket, LostRecord};
use crate::config::TransportConfig;
use crate::policy::{
    LossCandidate, LossJudge, LossVerdict, ReceivedFeedback, ReorderingThresholds, RttSample,
    SpuriousLoss,
};

/// Probe timeouts after sending for which a judge may let a packet wait; then it is lost.
pub(crate) const MAX_WAIT_PTOS: u32 = 3;

/// A judge other than the configured thresholds, and the losses that it may still be asked about.
#[derive(Debug)]
pub(crate) struct LossJudgement {
    judge: Box<dyn LossJudge>,
    /// Packets declared lost, until their loss can no longer turn out to be spurious.
    lost: BTreeMap<PacketNumber, LostMark>,
    /// Packets of the present run of loss detection that are lost, but are no sign of congestion.
    abandoned: Vec<PacketNumber>,
}

/// The record of a packet that was declared lost.
#[derive(Clone, Copy, Debug)]
struct LostMark {
    sent_at: Instant,
    /// See [`SpuriousLoss::distance`].
    distance: u64,
}

/// The thresholds of the configuration, within what RFC 9002 permits a judge.
fn configured(config: &TransportConfig) -> ReorderingThresholds {
    ReorderingThresholds {
        packets: Some(config.packet_threshold),
        time_eighths: config.time_threshold_eighths,
    }
}

impl LossJudgement {
    /// The judgement for a new path; `None` if the configured thresholds hold as they are, so that
    /// loss detection needs no judge.
    pub(super) fn for_path(path: PathId, config: &TransportConfig) -> Option<Box<Self>> {
        let configured = configured(config);
        let judge = config.policies.loss_judge(path, configured);
        let is_plain = judge.is_inert() && judge.thresholds() == configured;
        (!is_plain).then(|| {
            Box::new(Self {
                judge,
                lost: BTreeMap::new(),
                abandoned: Vec::new(),
            })
        })
    }

    /// The thresholds that hold now, at least one packet and eight eighths.
    pub(super) fn thresholds(&self) -> ReorderingThresholds {
        let thresholds = self.judge.thresholds();
        ReorderingThresholds {
            packets: thresholds.packets.map(|packets| packets.max(1)),
            time_eighths: thresholds.time_eighths.max(8),
        }
    }

    /// Time by which the probe timeout is longer.
    pub(super) fn extra_probe_timeout(&self, rtt: &RttView) -> Duration {
        self.judge.extra_probe_timeout(rtt)
    }

    /// True if [`LossJudgement::judge`] has to be asked about each candidate.
    pub(crate) fn judges_packets(&self) -> bool {
        self.judge.judges_packets()
    }

    /// Judges a packet; `None` if it is lost, else when it is judged again. After `lost_at` it is lost
    /// without a question.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        candidate: &LossCandidate,
        lost_at: Instant,
    ) -> Option<Instant> {
        if now >= lost_at {
            return None;
        }
        match self.judge.judge(now, candidate) {
            LossVerdict::Lost => None,
            LossVerdict::AbandonedUpstream => {
                self.abandoned.push(candidate.number);
                None
            }
            LossVerdict::NotYet(at) => {
                let at = if at > now { at } else { now + GRANULARITY };
                Some(at.min(lost_at))
            }
        }
    }

    /// Moves the lost packets that are no sign of congestion from `lost` to `abandoned`.
    pub(crate) fn set_aside(
        &mut self,
        lost: &mut Vec<LostRecord>,
        abandoned: &mut Vec<LostRecord>,
    ) {
        if self.abandoned.is_empty() {
            return;
        }
        let numbers = &self.abandoned;
        let is_abandoned = |record: &LostRecord| numbers.binary_search(&record.number).is_ok();
        abandoned.extend(lost.iter().filter(|record| is_abandoned(record)));
        lost.retain(|record| !is_abandoned(record));
        self.abandoned.clear();
    }

    /// Records packets that were declared lost while `largest_acked` was the largest acknowledged
    /// one, and discards those that were sent before `horizon`.
    pub(crate) fn on_lost(
        &mut self,
        lost: &[LostRecord],
        largest_acked: PacketNumber,
        horizon: Instant,
    ) {
        while let Some(oldest) = self.lost.first_entry()
            && oldest.get().sent_at < horizon
        {
            oldest.remove();
        }
        let threshold = self.thresholds().packets;
        for record in lost {
            let behind = largest_acked.get().saturating_sub(record.number.get());
            let by_packets = threshold.is_some_and(|packets| behind >= packets);
            let mark = LostMark {
                sent_at: record.sent_at,
                distance: if by_packets { behind } else { 0 },
            };
            self.lost.insert(record.number, mark);
        }
    }

    /// Reports those of the newly acknowledged packets to the judge that had been declared lost.
    pub(crate) fn report_spurious(&mut self, now: Instant, acked: &[AckedPacket], rtt: &RttView) {
        for packet in acked.iter().filter(|packet| packet.lost_in.is_some()) {
            let Some(mark) = self.lost.remove(&packet.number) else {
                continue;
            };
            let loss = SpuriousLoss {
                number: packet.number,
                distance: mark.distance,
                delay: now.saturating_since(mark.sent_at),
            };
            self.judge.on_spurious(now, &loss, rtt);
        }
    }

    /// False if the sample must not be taken.
    pub(crate) fn takes_rtt_sample(&mut self, now: Instant, sample: &RttSample) -> bool {
        self.judge.takes_rtt_sample(now, sample)
    }

    /// A congestion episode began with a loss.
    pub(super) fn on_loss_episode(&mut self, now: Instant) {
        self.judge.on_loss_episode(now);
    }

    /// The peer's feedback arrived.
    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        self.judge.on_feedback(now, feedback);
    }
}
