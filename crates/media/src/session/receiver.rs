//! The receiving end of a session: reassembles frames, acknowledges packets, reports losses.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use swiftwater_units::Instant;

use super::config::{Coding, Datagram, SessionConfig, SessionError};
use super::content::Cut;
use super::feedback::{Ack, Feedback, MAX_ACK_RANGES, Report};
use super::packet::{Kind, PacketError, VideoPacket};
use super::reassembly::{PartialFrame, Progress};
use crate::frame::{Frame, FrameKind};
use crate::protection::tambur::{Parity, StreamDecoder, Symbol};

/// Frames further before the newest are dropped; over a minute at 60 frames/s.
const KEPT_FRAMES: u64 = 4096;
/// No frame can be further ahead of the newest: a sender doesn't skip frames.
const MAX_JUMP: u64 = 65_536;

/// A complete frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Completed {
    /// The frame.
    pub frame: Frame,
    /// When its last needed packet arrived.
    pub at: Instant,
    /// Packets that were restored by an erasure code.
    pub restored: u32,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReceiverStats {
    /// Packets of all kinds.
    pub packets: u64,
    /// Data packets whose content was already received.
    pub duplicates: u64,
    /// Frames that were completed.
    pub frames: u64,
    /// Those of them that needed an erasure code.
    pub restored_frames: u64,
    /// Packets that an erasure code restored.
    pub restored_packets: u64,
    /// Attempts to restore a frame with an incorrect result. A value above 0 indicates a bug in a
    /// code, or tampering.
    pub failed_frames: u64,
    /// Malformed packets.
    pub malformed: u64,
}

/// Receives frames; see [`crate::session`].
#[derive(Debug)]
pub struct Receiver {
    coding: Coding,
    report_interval: Duration,
    frames: BTreeMap<u64, PartialFrame>,
    newest: Option<u64>,
    /// Frames before this one won't be completed.
    oldest: u64,
    /// Present in sessions with a code across frames, once parity was received.
    stream_code: Option<StreamDecoder>,
    /// Sequence numbers received: the largest first, at most [`MAX_ACK_RANGES`] ranges.
    ranges: Vec<RangeInclusive<u64>>,
    largest_at: Instant,
    ack_due: bool,
    next_report: Instant,
    report: Report,
    reported: u64,
    report_due: Option<Report>,
    completed: VecDeque<Completed>,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver for a sender with the same settings; starts at `now`.
    pub fn new(config: &SessionConfig, now: Instant) -> Result<Self, SessionError> {
        config.validate()?;
        Ok(Self {
            coding: config.coding,
            report_interval: config.report_interval,
            frames: BTreeMap::new(),
            newest: None,
            oldest: 0,
            stream_code: None,
            ranges: Vec::new(),
            largest_at: now,
            ack_due: false,
            next_report: now + config.report_interval,
            report: Report {
                received: 0,
                lost: 0,
            },
            reported: 0,
            report_due: None,
            completed: VecDeque::new(),
            stats: ReceiverStats::default(),
        })
    }

    /// Processes a datagram of the sender. A malformed one is ignored after the error, and not
    /// acknowledged.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PacketError> {
        let packet = VideoPacket::parse(bytes).and_then(|packet| {
            self.check(&packet)?;
            Ok(packet)
        });
        let packet = packet.inspect_err(|_| self.stats.malformed += 1)?;
        self.stats.packets += 1;
        self.report.received = self.report.received.saturating_add(1);
        self.note_sequence(now, packet.header.sequence);
        self.ack_due = true;
        let header = packet.header;
        self.note_frame(header.frame.index);
        if header.restart {
            self.restart(header.frame.index);
        }
        let Some(cut) = header.cut() else {
            return Ok(());
        };
        if let Some(parity) = packet.parity() {
            self.on_parity(now, &header.frame, &parity, packet.payload);
            return Ok(());
        }
        let number = u32::from(header.number);
        let Some(frame) = self.frame(header.frame, cut) else {
            return Ok(());
        };
        if header.kind == Kind::Repair {
            let progress = frame.on_repair(number, packet.payload);
            self.on_progress(now, header.frame.index, progress, 0);
            return Ok(());
        }
        let is_new = !frame.has(number);
        let progress = frame.on_source(number, packet.payload);
        self.stats.duplicates += u64::from(!is_new);
        self.on_progress(now, header.frame.index, progress, 0);
        if is_new && let Some(code) = &mut self.stream_code {
            let symbol = Symbol {
                frame: header.frame.index,
                packet: header.number,
            };
            let content = (self.coding == Coding::Real).then(|| packet.payload.to_vec());
            let restored = code.on_source(symbol, content);
            self.on_restored(now, restored);
        }
        Ok(())
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let feedback = if std::mem::take(&mut self.ack_due) {
            Feedback::Ack(self.ack(now))
        } else {
            Feedback::Report(self.report_due.take()?)
        };
        let mut bytes = Vec::new();
        feedback.write(&mut bytes);
        Some(Datagram::whole(bytes))
    }

    /// When [`Receiver::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Instant {
        self.next_report
    }

    /// The time of [`Receiver::poll_timeout`] was reached.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now < self.next_report {
            return;
        }
        self.next_report = now + self.report_interval;
        let end = self.ranges.first().map_or(0, |range| range.end() + 1);
        let expected = u32::try_from(end - self.reported).unwrap_or(u32::MAX);
        self.reported = end;
        self.report.lost = expected.saturating_sub(self.report.received);
        // No report before the stream has started.
        self.report_due = (end > 0).then_some(self.report);
        self.report = Report {
            received: 0,
            lost: 0,
        };
    }

    /// The next frame that was completed, in the order of completion.
    pub fn poll_completed(&mut self) -> Option<Completed> {
        self.completed.pop_front()
    }

    /// Counters so far.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Rejects contradictory values.
    fn check(&self, packet: &VideoPacket<'_>) -> Result<(), PacketError> {
        let header = &packet.header;
        let index = header.frame.index;
        if self.newest.is_some_and(|newest| index > newest + MAX_JUMP) {
            return Err(PacketError::Value("frame index"));
        }
        let cut = header.cut().ok_or(PacketError::Value("packet count"))?;
        if let Some(known) = self.frames.get(&index)
            && known.cut != cut
        {
            return Err(PacketError::Value("frame size"));
        }
        if self.coding == Coding::Counted {
            return Ok(());
        }
        let is_right = match header.kind {
            Kind::Repair => packet.payload.len() == cut.repair_len(),
            Kind::Parity => {
                let len = packet.payload.len();
                let covered = packet.window.iter().flat_map(|window| &window.frames);
                let longest = covered
                    .filter_map(|frame| Cut::from_counts(frame.size, u32::from(frame.packets)))
                    .map(|cut| cut.repair_len())
                    .max();
                Some(len) == longest
            }
            _ => packet.payload.len() == cut.len(u32::from(header.number)) as usize,
        };
        is_right
            .then_some(())
            .ok_or(PacketError::Value("payload length"))
    }

    fn note_frame(&mut self, index: u64) {
        if self.newest.is_some_and(|newest| index <= newest) {
            return;
        }
        self.newest = Some(index);
        self.restart(index.saturating_sub(KEPT_FRAMES));
    }

    fn restart(&mut self, index: u64) {
        if index > self.oldest {
            self.oldest = index;
            self.frames = self.frames.split_off(&index);
        }
    }

    /// The incomplete frame; `None` if it's not needed.
    fn frame(&mut self, frame: Frame, cut: Cut) -> Option<&mut PartialFrame> {
        if frame.index < self.oldest {
            return None;
        }
        let coding = self.coding;
        let known = self.frames.entry(frame.index);
        Some(known.or_insert_with(|| PartialFrame::new(frame, cut, coding)))
    }

    fn on_parity(&mut self, now: Instant, frame: &Frame, parity: &Parity, payload: &[u8]) {
        let real = self.coding == Coding::Real;
        if self.stream_code.is_none() {
            let mut code = StreamDecoder::new();
            for (&index, incoming) in &self.frames {
                for number in incoming.present() {
                    let symbol = Symbol {
                        frame: index,
                        packet: number as u16,
                    };
                    let content = real.then(|| incoming.cut.pattern(index, number));
                    code.on_source(symbol, content);
                }
            }
            self.stream_code = Some(code);
        }
        // Frames without received packets are known from the parity only.
        for (index, of) in parity.window.indexed() {
            if let Some(cut) = Cut::from_counts(of.size, u32::from(of.packets)) {
                let kind = if of.is_key {
                    FrameKind::Key
                } else {
                    FrameKind::Delta
                };
                let covered = Frame {
                    index,
                    kind,
                    size: of.size,
                    at: frame.at.saturating_sub(of.before),
                };
                self.frame(covered, cut);
            }
        }
        let content = real.then(|| payload.to_vec());
        if let Some(code) = &mut self.stream_code {
            let restored = code.on_parity(parity, content);
            self.on_restored(now, restored);
        }
    }

    fn on_restored(&mut self, now: Instant, restored: Vec<(Symbol, Option<Vec<u8>>)>) {
        for (symbol, content) in restored {
            let number = u32::from(symbol.packet);
            let Some(frame) = self.frames.get_mut(&symbol.frame) else {
                continue;
            };
            if frame.has(number) {
                continue;
            }
            let len = frame.cut.len(number) as usize;
            let content = content.unwrap_or_default();
            let content = content.get(..len).unwrap_or(&content);
            let progress = frame.on_source(number, content);
            self.stats.restored_packets += 1;
            self.on_progress(now, symbol.frame, progress, 1);
        }
    }

    /// Processes the effect of a packet on a frame; `restored` packets were restored across frames.
    fn on_progress(&mut self, now: Instant, index: u64, progress: Progress, restored: u32) {
        match progress {
            Progress::Open => {}
            Progress::Failed => self.stats.failed_frames += 1,
            Progress::Complete { restored: in_frame } => {
                let Some(frame) = self.frames.get(&index) else {
                    return;
                };
                let frame = frame.frame;
                let restored = restored + in_frame;
                self.stats.frames += 1;
                self.stats.restored_frames += u64::from(restored > 0);
                self.stats.restored_packets += u64::from(in_frame);
                self.completed.push_back(Completed {
                    frame,
                    at: now,
                    restored,
                });
            }
        }
    }

    fn note_sequence(&mut self, now: Instant, sequence: u64) {
        let largest = self.ranges.first().map(|range| *range.end());
        if largest.is_none_or(|largest| sequence > largest) {
            self.largest_at = now;
        }
        // The first range that isn't completely above the number.
        let at = self
            .ranges
            .iter()
            .position(|range| *range.start() <= sequence + 1)
            .unwrap_or(self.ranges.len());
        if let Some(range) = self.ranges.get_mut(at)
            && *range.end() + 1 >= sequence
        {
            let start = (*range.start()).min(sequence);
            *range = start..=(*range.end()).max(sequence);
            // It may have closed the gap to the range below.
            if let Some(below) = self.ranges.get(at + 1).cloned()
                && *below.end() + 1 == start
            {
                self.ranges[at] = *below.start()..=*self.ranges[at].end();
                self.ranges.remove(at + 1);
            }
        } else {
            self.ranges.insert(at, sequence..=sequence);
            self.ranges.truncate(MAX_ACK_RANGES);
        }
    }

    fn ack(&self, now: Instant) -> Ack {
        let newest = self.newest.unwrap_or(0);
        let complete = (0..64)
            .filter(|bit| {
                let frame = newest.checked_sub(*bit);
                let frame = frame.and_then(|index| self.frames.get(&index));
                frame.is_some_and(PartialFrame::is_complete)
            })
            .fold(0, |mask, bit| mask | 1 << bit);
        Ack {
            ranges: self.ranges.clone(),
            delay: now.saturating_since(self.largest_at),
            newest_frame: newest,
            complete,
        }
    }
}
