//! Hosts re-injection policies for QUIC: a frame corresponds to a stream, its packets to data
//! ranges. The same rules apply: no more copies than requested, none of acknowledged data, and
//! copies are paced.

use swiftwater_quic::policy::{
    DataRange, Hints, Occasion, OutstandingRange, PathView, Reinjection,
};
use swiftwater_units::{ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

use super::Sender;
use super::transmit::Job;
use crate::protection::Protector;
use crate::session::content::Cut;
use crate::session::sent_packets::{Content, Copy};

/// Most queued copies; a policy that requests more is ahead of what can be sent.
const MAX_COPIES: usize = 4096;
/// Least interval between calls of a policy whose timer has expired.
const MIN_PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// A packet of a frame as a data range for policies.
pub(super) fn data_range(frame: u64, cut: &Cut, number: u32) -> DataRange {
    DataRange {
        stream: StreamId::new(Side::Server, Dir::Uni, frame),
        offset: cut.offset(number),
        len: cut.len(number),
    }
}

impl Sender {
    pub(super) fn path_view(&self) -> PathView {
        PathView::builder(PathId::ZERO)
            .has_rtt_sample(self.rtt.min.is_some())
            .smoothed_rtt(self.rtt.smoothed)
            .latest_rtt(self.rtt.smoothed)
            .rtt_var(self.rtt.variation)
            .min_rtt(self.rtt.min.unwrap_or(self.rtt.smoothed))
            .cwnd(ByteCount::MAX)
            .bytes_in_flight(ByteCount::new(self.sent_packets.bytes_in_flight()))
            .pacing_release(self.release)
            .build()
    }

    /// When the policy is to be called.
    pub(super) fn policy_time(&self) -> Option<Instant> {
        let Protector::Reinject(policy) = &self.protector else {
            return None;
        };
        let at = policy.next_deadline()?;
        // A policy whose deadline stays in the past must not stop time.
        Some(match self.policy_asked {
            Some(asked) if at <= asked => asked + MIN_PAUSE,
            _ => at,
        })
    }

    /// Requests a copy from the policy when there is nothing else to send. True if there is one.
    pub(super) fn use_spare_room(&mut self, now: Instant) -> bool {
        let wants = self
            .policy_mut()
            .is_some_and(|policy| policy.can_use_spare_room());
        if wants {
            self.consult(now, Occasion::SpareRoom);
        }
        !self.copies.is_empty()
    }

    /// Requests copies from the policy.
    pub(super) fn consult(&mut self, now: Instant, occasion: Occasion) {
        let view = self.path_view();
        let Protector::Reinject(policy) = &mut self.protector else {
            return;
        };
        let always = matches!(occasion, Occasion::SpareRoom | Occasion::Timer);
        if policy.is_inert() || !(always || policy.is_asked_on(occasion)) {
            return;
        }
        let frames = &self.frames;
        let mut reinjections = Vec::new();
        let mut outstanding = self
            .sent_packets
            .in_flight()
            .filter_map(|(sequence, sent)| {
                let Content::Data {
                    frame,
                    number,
                    copy,
                } = sent.content
                else {
                    return None;
                };
                let frame = frames.get(frame)?;
                frame
                    .packets
                    .get(number as usize)
                    .filter(|packet| packet.is_open())?;
                let range = data_range(frame.frame.index, &frame.cut, number);
                let range = OutstandingRange::new(
                    PathId::ZERO,
                    PacketNumber::new(sequence),
                    sent.at,
                    range.stream,
                    range.offset,
                    range.len,
                );
                Some(
                    range
                        .fin(number + 1 == frame.cut.packets())
                        .retransmission(copy != Copy::First),
                )
            });
        let hints = Hints::default();
        policy.reinject(
            now,
            occasion,
            &mut outstanding,
            &[view],
            &hints,
            &mut reinjections,
        );
        drop(outstanding);
        for reinjection in reinjections {
            self.queue_copies(reinjection);
        }
    }

    fn queue_copies(&mut self, reinjection: Reinjection) {
        let is_frame =
            reinjection.stream == StreamId::new(Side::Server, Dir::Uni, reinjection.stream.index());
        let index = reinjection.stream.index();
        let Some(frame) = self
            .frames
            .get(index)
            .filter(|_| is_frame && reinjection.len > 0)
        else {
            return;
        };
        let len = u64::from(frame.cut.packet_len());
        let first = reinjection.offset / len;
        let end = reinjection
            .offset
            .saturating_add(u64::from(reinjection.len))
            .div_ceil(len);
        for number in first..end.min(u64::from(frame.cut.packets())) {
            let number = number as u32;
            let packet = &frame.packets[number as usize];
            let was_sent = packet.first_sent.is_some();
            if was_sent && packet.is_open() && self.copies.len() < MAX_COPIES {
                self.copies.push_back(Job::Replica {
                    frame: index,
                    number,
                });
            }
        }
    }
}
