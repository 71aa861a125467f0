//! Loss detection in one packet number space: acknowledgements and the loss timer, what they mean for
//! the recovery of the path, and the facts that result (RFC 9002, sections 5 to 7 and appendix A).
//!
//! What lost and acknowledged packets carried is the connection's to route.

use std::time::Duration;

use rand_core::Rng;
use swiftwater_congestion::{EcnCounts, EpisodeId, LossCause};
use swiftwater_units::{Instant, PacketNumber};
use swiftwater_wire::frame::Ack;

use crate::policy::{LossCandidate, RttSample};
use crate::recovery::{LostRecord, MAX_WAIT_PTOS, PathRecovery};
use crate::space::{AckOutcome, LargestAcked, SentPacket, Space, SpaceId};

use super::NetworkPath;

/// A space, with the recovery and the network path that its packets use.
#[derive(Debug)]
pub(crate) struct LossDetection<'a> {
    pub(crate) id: SpaceId,
    pub(crate) space: &'a mut Space,
    pub(crate) recovery: &'a mut PathRecovery,
    pub(crate) network: &'a mut NetworkPath,
}

/// What the connection adds to an ACK frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Instant,
    /// The peer's delay as far as it counts (RFC 9002, section 5.3).
    pub(crate) ack_delay: Duration,
    /// Packets sent before give no RTT sample: the driver did not run since then.
    pub(crate) running_since: Instant,
    /// The delay that the peer may add to acknowledgements.
    pub(crate) max_ack_delay: Duration,
    /// An acknowledgement ends the back-off of the probe timeout (RFC 9002, section 6.2.1).
    pub(crate) resets_pto: bool,
}

/// What acknowledgements and losses brought about. The vectors keep their capacity.
#[derive(Debug, Default)]
pub(crate) struct LossFacts {
    /// What is newly acknowledged.
    pub(crate) acked: AckOutcome,
    /// Numbers of newly lost packets.
    pub(crate) lost_numbers: Vec<PacketNumber>,
    /// Those of them that counted in flight, MTU probes left out.
    pub(crate) lost: Vec<LostRecord>,
    /// Lost MTU probes, which are no sign of congestion (RFC 9000, section 14.4).
    pub(crate) lost_mtu_probes: Vec<LostRecord>,
    /// Those that an element on the path has reacted to already, which are no sign of congestion.
    pub(crate) abandoned: Vec<LostRecord>,
    /// Packet numbers in the order of sending; room for the caller.
    pub(crate) rising: Vec<PacketNumber>,
}

impl LossFacts {
    fn clear(&mut self) {
        self.acked.clear();
        self.lost_numbers.clear();
        self.lost.clear();
        self.lost_mtu_probes.clear();
        self.abandoned.clear();
        self.rising.clear();
    }
}

/// The frame acknowledged a packet number that was never sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NeverSent;

impl LossDetection<'_> {
    /// An ACK frame arrived: RTT sample, ECN, losses, congestion control, datagram size. True if packets are newly
    /// acknowledged.
    pub(crate) fn on_ack(
        &mut self,
        context: &AckContext,
        ack: &Ack<'_>,
        facts: &mut LossFacts,
        rng: &mut dyn Rng,
    ) -> Result<bool, NeverSent> {
        facts.clear();
        let previous_largest = self.space.ledger.largest_acked();
        let largest = PacketNumber::new(ack.largest);
        let ledger = &mut self.space.ledger;
        ledger.on_ack(largest, ack.ranges(), &mut facts.acked);
        if facts.acked.bogus {
            return Err(NeverSent);
        }
        let Some(newly_largest) = facts.acked.largest else {
            return Ok(false);
        };
        // Only the largest acknowledged packet gives a sample of the path that it was sent on (RFC
        // 9002, section 5.1; RFC 9000, section 9.4).
        let is_sample = newly_largest.number == largest
            && newly_largest.on_path
            && facts.acked.ack_eliciting
            && newly_largest.sent_at >= context.running_since
            && self.takes_rtt_sample(context, newly_largest);
        if is_sample {
            self.recovery
                .on_rtt_sample(context.now, newly_largest.sent_at, context.ack_delay);
        }
        let rtt = self.recovery.rtt();
        if let Some(judgement) = self.recovery.loss_judgement.as_deref_mut()
            && self.id.is_data()
        {
            judgement.report_spurious(context.now, &facts.acked.acked, &rtt);
        }
        // Counts in reordered ACKs look like falling ones: only those of a new largest are valid.
        let ecn = if previous_largest.is_none_or(|previous| largest > previous) {
            let (level, marked) = (self.id.level(), facts.acked.ecn_marked);
            let sent_at = newly_largest.sent_at;
            self.network
                .ecn
                .on_ack(context.now, sent_at, level, marked, ack.ecn)
        } else {
            EcnCounts::default()
        };
        let persistent = self.detect(context.now, context.max_ack_delay, facts);
        self.set_abandoned_aside(context.now, facts, rng);
        self.set_mtu_probes_aside(context.now, facts, rng);
        let (acked, lost) = (&facts.acked.acked, &facts.lost);
        let episode = self
            .recovery
            .on_ack_batch(context.now, acked, lost, persistent, ecn, rng);
        self.set_episode(facts, episode);
        self.update_datagram_size(context.now, facts);
        self.recovery.on_acknowledged(context.now);
        if context.resets_pto {
            self.recovery.reset_pto_count();
        }
        Ok(true)
    }

    /// The loss timer expired (RFC 9002, section 6.1.2).
    pub(crate) fn on_loss_timeout(
        &mut self,
        now: Instant,
        max_ack_delay: Duration,
        facts: &mut LossFacts,
        rng: &mut dyn Rng,
    ) {
        facts.clear();
        let persistent = self.detect(now, max_ack_delay, facts);
        self.set_abandoned_aside(now, facts, rng);
        self.set_mtu_probes_aside(now, facts, rng);
        let episode = self
            .recovery
            .on_losses(now, &facts.lost, LossCause::Time, persistent, rng);
        self.set_episode(facts, episode);
        self.update_datagram_size(now, facts);
    }

    /// Runs loss detection on the ledger; true if it shows persistent congestion.
    fn detect(&mut self, now: Instant, max_ack_delay: Duration, facts: &mut LossFacts) -> bool {
        let thresholds = self.recovery.loss_thresholds();
        let first_sample = self.recovery.first_rtt_sample_at();
        let period = self.recovery.persistent_congestion_duration(max_ack_delay);
        if self.recovery.loss_judgement.is_some() && self.id.is_data() {
            self.detect_judged(now, max_ack_delay, facts);
            // What is no sign of congestion is none of persistent congestion.
            let numbers: Vec<_> = facts.lost.iter().map(|lost| lost.number).collect();
            let ledger = &self.space.ledger;
            return first_sample.is_some_and(|since| ledger.is_persistent(&numbers, since, period));
        }
        let ledger = &mut self.space.ledger;
        let (numbers, lost) = (&mut facts.lost_numbers, &mut facts.lost);
        self.space.loss_time = ledger.detect_lost(now, thresholds, numbers, lost);
        first_sample.is_some_and(|since| ledger.is_persistent(numbers, since, period))
    }

    /// Runs loss detection under a judge.
    fn detect_judged(&mut self, now: Instant, max_ack_delay: Duration, facts: &mut LossFacts) {
        let (recovery, ledger) = (&mut *self.recovery, &mut self.space.ledger);
        let thresholds = recovery.loss_thresholds();
        let pto = recovery.pto_base() + max_ack_delay;
        let longest = pto.saturating_add(recovery.extra_probe_timeout()) * MAX_WAIT_PTOS;
        let path = recovery.path();
        let view = recovery.rtt();
        let rtt = view.smoothed.max(view.latest);
        let (Some(largest_acked), Some(judgement)) = (
            ledger.largest_acked_on_path(),
            recovery.loss_judgement.as_deref_mut(),
        ) else {
            self.space.loss_time = None;
            return;
        };
        let (numbers, lost) = (&mut facts.lost_numbers, &mut facts.lost);
        self.space.loss_time = if judgement.judges_packets() {
            let judge = |number, packet: &SentPacket, cause| {
                let candidate = LossCandidate {
                    path,
                    number,
                    sent_at: packet.sent_at,
                    size: packet.size,
                    largest_acked,
                    cause,
                    rtt,
                };
                judgement.judge(now, &candidate, packet.sent_at + longest)
            };
            ledger.detect_judged(now, thresholds, judge, numbers, lost)
        } else {
            ledger.detect_lost(now, thresholds, numbers, lost)
        };
        judgement.on_lost(lost, largest_acked, now - longest);
        judgement.set_aside(lost, &mut facts.abandoned);
    }

    /// False if the loss judge refuses the sample that `acked` gives.
    fn takes_rtt_sample(&mut self, context: &AckContext, acked: LargestAcked) -> bool {
        let Some(judgement) = self.recovery.loss_judgement.as_deref_mut() else {
            return true;
        };
        let sample = RttSample {
            number: acked.number,
            sent_at: acked.sent_at,
            latest: context.now.saturating_since(acked.sent_at),
            ack_delay: context.ack_delay,
        };
        !self.id.is_data() || judgement.takes_rtt_sample(context.now, &sample)
    }

    /// Takes out of flight what an element on the path has reacted to already.
    fn set_abandoned_aside(&mut self, now: Instant, facts: &LossFacts, rng: &mut dyn Rng) {
        if !facts.abandoned.is_empty() {
            let cause = LossCause::Abandoned;
            self.recovery
                .on_losses(now, &facts.abandoned, cause, false, rng);
        }
    }

    /// Stamps the lost packets with their congestion episode.
    fn set_episode(&mut self, facts: &LossFacts, episode: Option<EpisodeId>) {
        let ledger = &mut self.space.ledger;
        if let Some(episode) = episode {
            ledger.set_episode(&facts.lost_numbers, episode);
        }
        // They belong to none, so their acknowledgement refutes none.
        for record in &facts.abandoned {
            ledger.set_episode(&[record.number], EpisodeId::default());
        }
    }

    /// Takes lost MTU probes off the list of lost packets: they leave flight, and their loss is no sign
    /// of congestion (RFC 9000, section 14.4).
    fn set_mtu_probes_aside(&mut self, now: Instant, facts: &mut LossFacts, rng: &mut dyn Rng) {
        if !self.id.is_data() {
            return;
        }
        // One at a time is in flight, so two are rare.
        let ledger = &self.space.ledger;
        while let Some(at) = (facts.lost.iter()).position(|lost| ledger.is_mtu_probe(lost.number)) {
            let record = facts.lost.remove(at);
            self.network.mtu.on_probe_lost(now, record.number);
            self.recovery
                .on_losses(now, &[record], LossCause::Abandoned, false, rng);
            facts.lost_mtu_probes.push(record);
        }
    }

    /// What fates of 1-RTT packets, MTU probes set aside, imply for the size of datagrams.
    fn update_datagram_size(&mut self, now: Instant, facts: &LossFacts) {
        if !self.id.is_data() {
            return;
        }
        let (mtu, ledger) = (&mut self.network.mtu, &self.space.ledger);
        if !facts.acked.numbers.is_empty() {
            let acked = &facts.acked;
            mtu.on_acked(now, &acked.numbers, &acked.acked);
            self.network.acked_datagram_size.on_acked(&acked.acked);
        }
        mtu.on_lost(now, &facts.lost, |number, size| {
            ledger.has_acked_after(number, size)
        });
    }
}
