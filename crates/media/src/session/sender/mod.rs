//! The sending end of a session.
//!
//! This file has the state and the driver's interface; acknowledgements are processed in `acks`,
//! packets chosen in `transmit`, retransmission by batch is in `batches`, and the hosting of
//! re-injection policies in `policy_host`.

mod acks;
mod batches;
mod policy_host;
mod stats;
mod transmit;

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_quic::policy::{Copied, Occasion, Reinjector, Repair};
use swiftwater_units::Instant;

use super::config::{SessionConfig, SessionError};
use super::content::Cut;
use super::feedback::Feedback;
use super::packet::PacketError;
use super::rtt::RttEstimate;
use super::sent_frames::{Frames, Outgoing};
use super::sent_packets::{SentPackets, Settled};
use crate::frame::Frame;
use crate::protection::Protector;
use crate::protection::block_code::{MAX_SOURCE_PACKETS, repair_capacity};
use crate::protection::hairpin::PathTiming;

use transmit::{Job, ParityJob, WindowEntry};

pub use stats::{Recovery, SenderStats};

/// How long a frame is stored after its deadline.
const LATE_MEMORY: Duration = Duration::from_secs(1);
/// No deadline: practically infinite.
const NO_DEADLINE: Duration = Duration::from_secs(3600);

/// Sends frames; see [`crate::session`].
#[derive(Debug)]
pub struct Sender {
    config: SessionConfig,
    protector: Protector,
    /// Start of the stream, origin of frame times.
    epoch: Instant,
    frames: Frames,
    sent_packets: SentPackets,
    rtt: RttEstimate,
    /// Spacing of packets of a burst at the receiver, once measured.
    dispersion: Duration,
    /// Retransmissions, and their repair packets.
    urgent: VecDeque<Job>,
    /// Replicas requested by a policy.
    copies: VecDeque<Job>,
    /// New frames.
    fresh: VecDeque<Job>,
    /// Frames covered by parity.
    window: VecDeque<WindowEntry>,
    /// When the pacer permits the next packet.
    release: Instant,
    /// When the driver last polled for a packet.
    last_polled: Instant,
    last_sent: Instant,
    last_ack: Option<(Instant, u64)>,
    probes: u32,
    /// Last time that a policy was called by its timer.
    policy_asked: Option<Instant>,
    wants_key_frame: bool,
    /// The next key frame restarts the stream.
    restart: bool,
    stats: SenderStats,
    settled: Vec<Settled>,
}

impl Sender {
    /// A sender of a stream that starts, with the times of its frames, at `epoch`.
    pub fn new(
        config: SessionConfig,
        protector: Protector,
        epoch: Instant,
    ) -> Result<Self, SessionError> {
        config.validate()?;
        Ok(Self {
            rtt: RttEstimate::new(config.initial_rtt),
            config,
            protector,
            epoch,
            frames: Frames::default(),
            sent_packets: SentPackets::default(),
            dispersion: Duration::ZERO,
            urgent: VecDeque::new(),
            copies: VecDeque::new(),
            fresh: VecDeque::new(),
            window: VecDeque::new(),
            release: epoch,
            last_polled: epoch,
            last_sent: epoch,
            last_ack: None,
            probes: 0,
            policy_asked: None,
            wants_key_frame: false,
            restart: false,
            stats: SenderStats::default(),
            settled: Vec::new(),
        })
    }

    /// Adds an encoded frame; frames must be in order, from index 0.
    pub fn push_frame(&mut self, now: Instant, frame: &Frame) -> Result<(), SessionError> {
        let expected = self.frames.next_index();
        if frame.index != expected {
            return Err(SessionError::FrameOrder {
                got: frame.index,
                expected,
            });
        }
        let cut = Cut::new(frame.size, self.config.payload_size);
        if cut.packets() as usize > MAX_SOURCE_PACKETS {
            return Err(SessionError::FrameTooLarge {
                index: frame.index,
                packets: u64::from(cut.packets()),
            });
        }
        self.discard_frames(now);
        self.check_key_frame_rule(now);
        let restart = self.restart && frame.is_key();
        self.restart &= !restart;
        let born = self.epoch + frame.at;
        let frame = Frame {
            size: cut.size(),
            ..*frame
        };
        self.frames.push(Outgoing::new(frame, born, cut, restart));
        let index = frame.index;
        for number in 0..cut.packets() {
            self.fresh.push_back(Job::First {
                frame: index,
                number,
            });
        }
        self.protect(now, &frame, cut, restart);
        self.stats.frames += 1;
        Ok(())
    }

    /// True once when the encoder should make its next frame a key frame.
    pub fn take_key_frame_request(&mut self) -> bool {
        std::mem::take(&mut self.wants_key_frame)
    }

    /// Processes a datagram of the receiver. A malformed one is ignored after the error.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PacketError> {
        match Feedback::parse(bytes)? {
            Feedback::Ack(ack) => self.on_ack(now, &ack),
            Feedback::Report(report) => {
                if let Protector::Tambur(rate) = &mut self.protector {
                    rate.on_report(report.lost);
                }
            }
        }
        Ok(())
    }

    /// When [`Sender::handle_timeout`] must be called next, unless another call precedes it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waits = !(self.urgent.is_empty() && self.copies.is_empty() && self.fresh.is_empty());
        let wants_room = match &self.protector {
            Protector::Reinject(policy) => !policy.is_inert() && policy.can_use_spare_room(),
            _ => false,
        };
        // Packets that could be sent at the last poll were sent, or the policy didn't use the
        // opportunity.
        let is_held = self.config.pacing.is_some() && self.release > self.last_polled;
        let pacing = (is_held && (waits || wants_room)).then_some(self.release);
        [
            pacing,
            self.sent_packets.loss_time(),
            self.probe_time(),
            self.batch_time(),
            self.policy_time(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The time of [`Sender::poll_timeout`] was reached.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.policy_time().is_some_and(|at| at <= now) {
            self.policy_asked = Some(now);
            self.consult(now, Occasion::Timer);
        }
        if let Some(at) = self.sent_packets.loss_time() {
            if at <= now {
                self.detect_losses(now, 0);
            }
        } else if self.probe_time().is_some_and(|at| at <= now) {
            self.probe(now);
        }
        self.flush_batches(now);
    }

    /// The statistics.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// The present round-trip time estimate.
    pub fn rtt(&self) -> &RttEstimate {
        &self.rtt
    }

    /// The scheme.
    pub fn protector(&self) -> &Protector {
        &self.protector
    }

    fn timing(&self) -> PathTiming {
        PathTiming {
            smoothed_rtt: self.rtt.smoothed,
            rtt_var: self.rtt.variation,
            dispersion: self.dispersion,
        }
    }

    /// Time from `now` to the deadline of a frame that was encoded at `born`.
    fn time_left(&self, now: Instant, born: Instant) -> Duration {
        let Some(deadline) = self.config.deadline else {
            return NO_DEADLINE;
        };
        (born + deadline).saturating_since(now)
    }

    /// Whether data sent now of a frame encoded at `born` can be in time.
    fn can_be_in_time(&self, now: Instant, born: Instant) -> bool {
        let Some(deadline) = self.config.deadline else {
            return true;
        };
        let way = self.rtt.min.unwrap_or_default() / 2;
        now.saturating_since(born) + way <= deadline
    }

    fn policy_mut(&mut self) -> Option<&mut dyn Reinjector> {
        match &mut self.protector {
            Protector::Reinject(policy) if !policy.is_inert() => Some(policy.as_mut()),
            _ => None,
        }
    }

    fn discard_frames(&mut self, now: Instant) {
        let kept = self.config.deadline.map(|deadline| {
            deadline.max(self.config.key_frame_after.unwrap_or_default()) + LATE_MEMORY
        });
        let old =
            |frame: &Outgoing| kept.is_some_and(|kept| now.saturating_since(frame.born) > kept);
        let expired: Vec<u64> = self
            .frames
            .iter()
            .take_while(|frame| frame.is_complete() || old(frame))
            .filter(|frame| !frame.is_complete())
            .map(|frame| frame.frame.index)
            .collect();
        for index in expired {
            self.abandon_frame(now, index);
        }
        self.frames.discard(now, kept);
    }

    /// Abandons the unacknowledged packets of a frame.
    fn abandon_frame(&mut self, now: Instant, index: u64) {
        let count = self
            .frames
            .get(index)
            .map_or(0, |frame| frame.cut.packets());
        for number in 0..count {
            self.abandon(now, index, number);
        }
    }

    fn abandon(&mut self, now: Instant, index: u64, number: u32) {
        let Some(frame) = self.frames.get_mut(index) else {
            return;
        };
        let range = policy_host::data_range(index, &frame.cut, number);
        let Some(packet) = frame.packet_mut(number).filter(|packet| packet.is_open()) else {
            return;
        };
        packet.abandoned = true;
        packet.queued = false;
        let under_repair = packet.is_under_repair();
        self.stats.abandoned_packets += 1;
        if under_repair && let Some(policy) = self.policy_mut() {
            policy.on_repair(now, &Repair::Abandoned { range });
        }
    }

    fn check_key_frame_rule(&mut self, now: Instant) {
        let Some(limit) = self.config.key_frame_after else {
            return;
        };
        let oldest = self
            .frames
            .iter()
            .find(|frame| !frame.is_complete() && frame.packets.iter().any(|packet| !packet.acked));
        if oldest.is_none_or(|frame| now.saturating_since(frame.born) <= limit) {
            return;
        }
        for index in self.frames.indices() {
            self.abandon_frame(now, index);
        }
        self.frames.discard(now, Some(Duration::ZERO));
        self.urgent.clear();
        self.copies.clear();
        self.fresh.clear();
        self.window.clear();
        if let Protector::Tambur(rate) = &mut self.protector {
            rate.restart();
        }
        self.wants_key_frame = true;
        self.restart = true;
        self.stats.key_frames_requested += 1;
    }

    /// Queues the scheme's redundancy for a new frame.
    fn protect(&mut self, now: Instant, frame: &Frame, cut: Cut, restart: bool) {
        let packets = cut.packets() as usize;
        let timing = self.timing();
        let left = self.time_left(now, self.epoch + frame.at);
        let rtt = self.rtt.smoothed;
        let repairs = match &mut self.protector {
            Protector::Rtx | Protector::Reinject(_) => 0,
            Protector::WebRtc(fec) => fec.on_frame(now, packets, rtt, frame.is_key()),
            Protector::Hairpin(policy) => policy.on_frame(now, packets, left, &timing),
            Protector::Tambur(rate) => {
                if restart {
                    rate.restart();
                }
                let share = rate.on_frame(cut.packets() as u16);
                self.queue_parity(frame, cut, share, restart);
                0
            }
        };
        self.queue_repairs(frame.index, repairs, false);
    }

    /// Queues repair packets for a frame, within the limit of its code.
    fn queue_repairs(&mut self, index: u64, count: usize, urgent: bool) {
        let Some(frame) = self.frames.get_mut(index) else {
            return;
        };
        let capacity = repair_capacity(frame.cut.packets() as usize) as u32;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let numbers = frame.repairs_made..capacity.min(frame.repairs_made.saturating_add(count));
        frame.repairs_made = numbers.end;
        let queue = if urgent {
            &mut self.urgent
        } else {
            &mut self.fresh
        };
        queue.extend(numbers.map(|number| Job::Repair {
            frame: index,
            number,
        }));
    }

    fn queue_parity(
        &mut self,
        frame: &Frame,
        cut: Cut,
        share: crate::protection::tambur::FrameParity,
        restart: bool,
    ) {
        if restart {
            self.window.clear();
        }
        let jobs = ParityJob::for_frame(&mut self.window, frame, cut, share);
        self.fresh
            .extend(jobs.into_iter().map(|job| Job::Parity(Box::new(job))));
    }

    /// A data range was received: `by` which copy, sent when; `None` if the code restored it.
    fn count_recovery(&mut self, index: u64, number: u32, by: Option<(Copied, Instant)>) {
        let Some(packet) = self.frames.packet(index, number) else {
            return;
        };
        let (Some(first_sent), Some(first_resent)) = (packet.first_sent, packet.first_resent)
        else {
            return;
        };
        self.stats.recoveries.push(Recovery {
            frame: index,
            detection_time: first_resent.saturating_since(first_sent),
            latency: by.map(|(_, sent_at)| sent_at.saturating_since(first_resent)),
            by: by.map(|(by, _)| by),
            retransmissions: packet.retransmissions,
            replicas: packet.replicas,
        });
    }
}
