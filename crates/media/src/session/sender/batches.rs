//! Retransmission by batch, as in Hairpin: the fates of all packets of a batch are awaited, within
//! limits, and the missing ones are retransmitted together with new repair packets.

use swiftwater_quic::policy::RepairCause;
use swiftwater_units::Instant;

use super::Sender;
use crate::protection::Protector;
use crate::session::sent_frames::{Outgoing, PacketState};

impl Sender {
    fn has_batches(&self) -> bool {
        matches!(self.protector, Protector::Hairpin(_))
    }

    /// A packet of a batch is lost: the others' fates are known when the whole batch could have
    /// arrived.
    pub(super) fn on_batch_loss(&mut self, now: Instant, index: u64, number: u32) {
        let dispersion = self.dispersion;
        let Some(frame) = self.frames.get_mut(index) else {
            return;
        };
        if let Some(packet) = frame.packet_mut(number) {
            packet.lost_at.get_or_insert(now);
        }
        let due = now + dispersion.saturating_mul(frame.batch.packets);
        frame.batch.due = Some(frame.batch.due.map_or(due, |before| before.min(due)));
    }

    /// When a batch is to be checked.
    pub(super) fn batch_time(&self) -> Option<Instant> {
        if !self.has_batches() {
            return None;
        }
        let frames = self.frames.iter().filter(|frame| !frame.is_complete());
        frames.filter_map(|frame| self.batch_due(frame)).min()
    }

    fn batch_due(&self, frame: &Outgoing) -> Option<Instant> {
        let waited_for = |packet: &PacketState| packet.is_open() && !packet.queued;
        let is_waiting = frame
            .packets
            .iter()
            .any(|packet| waited_for(packet) && packet.in_flight);
        if !is_waiting {
            // All fates are known.
            return frame.batch.due.map(|due| due.min(self.last_sent));
        }
        let recovery = frame.batch.last_sent? + self.timing().recovery_timeout(!frame.batch.again);
        Some(frame.batch.due.map_or(recovery, |due| due.min(recovery)))
    }

    /// Retransmits the missing packets of batches whose time has passed.
    pub(super) fn flush_batches(&mut self, now: Instant) {
        if !self.has_batches() {
            return;
        }
        for index in self.frames.indices() {
            let Some(frame) = self.frames.get(index).filter(|frame| !frame.is_complete()) else {
                continue;
            };
            if self.batch_due(frame).is_some_and(|due| due <= now) {
                self.resend_batch(now, index);
            }
        }
    }

    fn resend_batch(&mut self, now: Instant, index: u64) {
        let timing = self.timing();
        let Some(frame) = self.frames.get_mut(index) else {
            return;
        };
        // After the recovery timeout, packets in flight count as missing too.
        let timed_out = frame
            .batch
            .last_sent
            .is_some_and(|at| at + timing.recovery_timeout(!frame.batch.again) <= now);
        let is_missing = |packet: &PacketState| {
            let was_sent = packet.first_sent.is_some();
            was_sent && packet.is_open() && !packet.queued && (timed_out || !packet.in_flight)
        };
        let missing: Vec<u32> = (0..)
            .zip(&frame.packets)
            .filter(|(_, packet)| is_missing(packet))
            .map(|(number, _)| number)
            .collect();
        let (size, born) = (frame.packets.len(), frame.born);
        frame.batch.due = None;
        frame.batch.last_sent = None;
        if !self.can_be_in_time(now, born) {
            self.abandon_frame(now, index);
            return;
        }
        let queued = missing
            .into_iter()
            .filter(|&number| self.queue_resend(now, index, number, RepairCause::Loss))
            .count();
        if let Some(frame) = self.frames.get_mut(index) {
            frame.batch.packets = queued as u32;
            frame.batch.again = true;
        }
        if queued == 0 {
            return;
        }
        let left = self.time_left(now, born);
        let repairs = match &mut self.protector {
            Protector::Hairpin(policy) => policy.on_resend(now, size, queued, left, &timing),
            _ => 0,
        };
        self.queue_repairs(index, repairs, true);
    }
}
