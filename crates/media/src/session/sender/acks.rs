//! Processing of acknowledgements, loss detection and probe timeouts.

use swiftwater_quic::policy::{Copied, Occasion, PacketFate, PacketOutcome, Repair, RepairCause};
use swiftwater_units::{Instant, PacketNumber, PathId};

use super::transmit::Job;
use super::{Sender, policy_host};
use crate::protection::Protector;
use crate::session::feedback::Ack;
use crate::session::sent_packets::{Content, Copy, Settled};

/// Most doublings of the probe timeout.
const MAX_BACKOFF: u32 = 10;

impl Sender {
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let mut settled = std::mem::take(&mut self.settled);
        settled.clear();
        self.sent_packets.on_ack(&ack.ranges, &mut settled);
        if let Some(newest) = settled.last() {
            self.probes = 0;
            if newest.sequence == ack.largest() {
                self.rtt.on_sample(now.saturating_since(newest.sent.at));
            }
            self.measure_dispersion(now, newest);
        }
        for packet in &settled {
            self.stats.spurious_losses += u64::from(packet.was_lost);
            self.on_packet_acked(now, packet);
        }
        for index in ack.complete_frames() {
            self.on_frame_complete(now, index);
        }
        let acked = settled.len();
        self.settled = settled;
        self.detect_losses(now, acked);
    }

    /// Detects losses by now. The first `acked` entries of `settled` are newly acknowledged.
    pub(super) fn detect_losses(&mut self, now: Instant, acked: usize) {
        let mut settled = std::mem::take(&mut self.settled);
        settled.truncate(acked);
        self.sent_packets.detect(now, &self.rtt, &mut settled);
        let lost = settled.len() - acked;
        self.stats.packets_lost += lost as u64;
        let mut requeued = false;
        for packet in &settled[acked..] {
            requeued |= self.on_packet_lost(now, packet);
        }
        if let Protector::WebRtc(fec) = &mut self.protector {
            fec.on_outcomes(now, acked as u64, lost as u64);
        }
        self.report_outcomes(now, &settled, acked);
        self.settled = settled;
        if acked > 0 {
            self.consult(now, Occasion::Ack);
        }
        if requeued {
            self.consult(now, Occasion::LossRetransmitted);
        }
        self.flush_batches(now);
    }

    /// When a probe is due without an acknowledgement. None while the time threshold timer runs, or
    /// with schemes that have their own timer.
    pub(super) fn probe_time(&self) -> Option<Instant> {
        let has_own_timer = matches!(self.protector, Protector::Hairpin(_));
        if has_own_timer || self.sent_packets.loss_time().is_some() || self.to_probe().is_none() {
            return None;
        }
        let factor = 1 << self.probes.min(MAX_BACKOFF);
        Some(self.last_sent + self.rtt.probe_timeout() * factor)
    }

    /// Retransmits the oldest data in flight as a probe: its acknowledgement determines the fate of
    /// the others.
    pub(super) fn probe(&mut self, now: Instant) {
        let Some((frame, number)) = self.to_probe() else {
            return;
        };
        self.probes += 1;
        self.stats.probes += 1;
        self.queue_resend(now, frame, number, RepairCause::Probe);
        self.consult(now, Occasion::LossRetransmitted);
    }

    fn to_probe(&self) -> Option<(u64, u32)> {
        self.sent_packets.in_flight().find_map(|(sequence, sent)| {
            let Content::Data { frame, number, .. } = sent.content else {
                return None;
            };
            let packet = self.frames.packet(frame, number)?;
            let is_newest = packet.latest == Some(sequence);
            let may = is_newest && packet.is_open() && !packet.queued;
            (may && self.may_resend(frame, number)).then_some((frame, number))
        })
    }

    pub(super) fn may_resend(&self, frame: u64, number: u32) -> bool {
        let packet = self.frames.packet(frame, number);
        let most = self.config.max_retransmissions.unwrap_or(u32::MAX);
        packet.is_some_and(|packet| packet.retransmissions < most)
    }

    /// Queues a retransmission. False if the limit is reached.
    pub(super) fn queue_resend(
        &mut self,
        now: Instant,
        frame: u64,
        number: u32,
        cause: RepairCause,
    ) -> bool {
        let may = self.may_resend(frame, number);
        let packet = self
            .frames
            .get_mut(frame)
            .and_then(|frame| frame.packet_mut(number));
        let Some(packet) = packet else {
            return false;
        };
        packet.lost_at.get_or_insert(now);
        if !may {
            return false;
        }
        packet.queued = true;
        self.urgent.push_back(Job::Resend {
            frame,
            number,
            cause,
        });
        true
    }

    fn on_packet_acked(&mut self, now: Instant, settled: &Settled) {
        let Content::Data {
            frame: index,
            number,
            copy,
        } = settled.sent.content
        else {
            return;
        };
        let by = match copy {
            Copy::First => Copied::Original,
            Copy::Retransmission(round) => Copied::Retransmission(round),
            Copy::Replica => Copied::Replica,
        };
        let Some(frame) = self.frames.get_mut(index) else {
            return;
        };
        let Some(packet) = frame.packet_mut(number) else {
            return;
        };
        if packet.latest == Some(settled.sequence) {
            packet.in_flight = false;
        }
        self.on_range_received(now, index, number, Some((by, settled.sent.at)));
    }

    /// The receiver has a complete frame, from any packets.
    fn on_frame_complete(&mut self, now: Instant, index: u64) {
        let Some(frame) = self.frames.get(index).filter(|frame| !frame.is_complete()) else {
            return;
        };
        for number in 0..frame.cut.packets() {
            self.on_range_received(now, index, number, None);
        }
    }

    fn on_range_received(
        &mut self,
        now: Instant,
        index: u64,
        number: u32,
        by: Option<(Copied, Instant)>,
    ) {
        let Some(frame) = self.frames.get_mut(index) else {
            return;
        };
        let range = policy_host::data_range(index, &frame.cut, number);
        let Some(packet) = frame.packet_mut(number).filter(|packet| !packet.acked) else {
            return;
        };
        let was_open = packet.is_open();
        packet.acked = true;
        packet.queued = false;
        let is_under_repair = packet.is_under_repair();
        let last = Copied::Retransmission(packet.retransmissions);
        frame.unacked -= 1;
        if !is_under_repair {
            return;
        }
        self.count_recovery(index, number, by);
        if was_open && let Some(policy) = self.policy_mut() {
            let by = by.map_or(last, |(by, _)| by);
            policy.on_repair(now, &Repair::Recovered { range, by });
        }
    }

    /// True if a retransmission was queued.
    fn on_packet_lost(&mut self, now: Instant, settled: &Settled) -> bool {
        let Content::Data { frame, number, .. } = settled.sent.content else {
            return false;
        };
        let newest_only = match &self.protector {
            Protector::Reinject(policy) => policy.live_copies_defer_retransmission(),
            _ => true,
        };
        let packet = self
            .frames
            .get_mut(frame)
            .and_then(|frame| frame.packet_mut(number));
        let Some(packet) = packet else {
            return false;
        };
        let is_newest = packet.latest == Some(settled.sequence);
        if is_newest {
            packet.in_flight = false;
        }
        if !packet.is_open() || packet.queued || (newest_only && !is_newest) {
            return false;
        }
        if matches!(self.protector, Protector::Hairpin(_)) {
            self.on_batch_loss(now, frame, number);
            return false;
        }
        self.queue_resend(now, frame, number, RepairCause::Loss)
    }

    fn report_outcomes(&mut self, now: Instant, settled: &[Settled], acked: usize) {
        if settled.is_empty() || self.policy_mut().is_none() {
            return;
        }
        let record = |(place, packet): (usize, &Settled)| PacketOutcome {
            path: PathId::ZERO,
            number: PacketNumber::new(packet.sequence),
            sent_at: packet.sent.at,
            size: u16::try_from(packet.sent.size).unwrap_or(u16::MAX),
            repeated: packet.sent.content.is_repeated(),
            fate: match (place < acked, packet.was_lost) {
                (true, false) => PacketFate::Acked,
                (true, true) => PacketFate::Spurious,
                (false, _) => PacketFate::Lost,
            },
        };
        let mut outcomes: Vec<_> = settled.iter().enumerate().map(record).collect();
        outcomes.sort_unstable_by_key(|outcome| outcome.number);
        let view = self.path_view();
        if let Some(policy) = self.policy_mut() {
            policy.on_outcomes(now, &outcomes, &view);
        }
    }

    /// Spacing of the acknowledgements of packets sent in one burst: the transmission time of a
    /// packet at the bottleneck.
    fn measure_dispersion(&mut self, now: Instant, newest: &Settled) {
        let before = self.last_ack.replace((now, newest.sequence));
        let Some((then, sequence)) = before else {
            return;
        };
        let Some(earlier) = self
            .sent_packets
            .get(sequence)
            .map(|sent| sent.content.frame())
        else {
            return;
        };
        let packets = newest.sequence.saturating_sub(sequence);
        if packets == 0 || earlier != newest.sent.content.frame() {
            return;
        }
        let gap = now.saturating_since(then) / u32::try_from(packets).unwrap_or(u32::MAX);
        self.dispersion = if self.dispersion.is_zero() {
            gap
        } else {
            (self.dispersion * 7 + gap) / 8
        };
    }
}
