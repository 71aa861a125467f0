//! What was sent and not yet acknowledged, and what is known about it from SACK blocks.

use std::collections::VecDeque;
use std::ops::Range;

use swiftwater_units::Instant;

use super::segment::Acknowledgement;

/// A segment that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentSegment {
    /// Offsets of its payload, and of FIN if it has one.
    pub payload: Range<u64>,
    /// When it was last sent.
    pub sent_at: Instant,
    /// Whether it was sent more than once.
    pub retransmitted: bool,
    /// Whether a SACK block covers it.
    pub sacked: bool,
    /// Whether it counts as lost and was not sent again since.
    pub lost: bool,
    /// Whether it counted as lost at any time, sent again or not.
    pub was_lost: bool,
    /// Whether its latest transmission is a repetition that neither arrived nor counts as lost.
    pub repeating: bool,
}

/// Segments that an acknowledgement reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Those before the next expected offset, some of which were covered by SACK before.
    pub acked: Vec<SentSegment>,
    /// Those that are newly covered by SACK.
    pub sacked: Vec<SentSegment>,
}

impl Arrived {
    /// The segments of which this is the first report, in order of their offsets.
    pub fn newly(&self) -> impl Iterator<Item = &SentSegment> {
        let acked = self.acked.iter().filter(|segment| !segment.sacked);
        acked.chain(&self.sacked)
    }

    /// Their number.
    pub fn delivered(&self) -> u64 {
        self.newly().count() as u64
    }
}

/// The segments in flight, in order of their offsets.
#[derive(Debug, Clone, Default)]
pub struct Scoreboard {
    segments: VecDeque<SentSegment>,
    sent: u64,
    sacked: usize,
    lost: usize,
    was_lost: usize,
    repeating: usize,
    lost_ever: u64,
}

impl Scoreboard {
    /// Nothing was sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// The end of what was sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Records that the next `bytes` offsets are sent for the first time, and returns them.
    pub fn send_new(&mut self, now: Instant, bytes: u64) -> Range<u64> {
        let payload = self.sent..self.sent + bytes;
        if !payload.is_empty() {
            self.sent = payload.end;
            self.segments.push_back(SentSegment {
                payload: payload.clone(),
                sent_at: now,
                retransmitted: false,
                sacked: false,
                lost: false,
                was_lost: false,
                repeating: false,
            });
        }
        payload
    }

    /// Sends the first lost segment again, and returns its offsets; nothing when none is lost.
    pub fn retransmit(&mut self, now: Instant) -> Option<Range<u64>> {
        if self.lost == 0 {
            return None;
        }
        let segment = self.segments.iter_mut().find(|segment| segment.lost)?;
        segment.lost = false;
        segment.repeating = true;
        segment.retransmitted = true;
        segment.sent_at = now;
        self.lost -= 1;
        self.repeating += 1;
        Some(segment.payload.clone())
    }

    /// Sends the last segment again although it does not count as lost, and returns its offsets.
    pub fn probe(&mut self, now: Instant) -> Option<Range<u64>> {
        let last = self.segments.back_mut()?;
        self.lost -= usize::from(last.lost);
        self.repeating += usize::from(!last.repeating);
        last.lost = false;
        last.repeating = true;
        last.retransmitted = true;
        last.sent_at = now;
        Some(last.payload.clone())
    }

    /// Takes an acknowledgement, and returns the segments that it reports. Offsets that were never
    /// sent are ignored.
    pub fn on_ack(&mut self, ack: &Acknowledgement) -> Arrived {
        let mut arrived = Arrived::default();
        while let Some(first) = self.segments.front_mut() {
            if first.payload.end > ack.next {
                first.payload.start = first.payload.start.max(ack.next);
                break;
            }
            if let Some(first) = self.segments.pop_front() {
                self.sacked -= usize::from(first.sacked);
                self.lost -= usize::from(first.lost);
                self.was_lost -= usize::from(first.was_lost);
                self.repeating -= usize::from(first.repeating);
                arrived.acked.push(first);
            }
        }
        if ack.blocks.iter().all(|block| block.end <= ack.next) {
            return arrived;
        }
        for segment in self.segments.iter_mut().filter(|each| !each.sacked) {
            let is_covered = ack.blocks.iter().any(|block| {
                block.start <= segment.payload.start && segment.payload.end <= block.end
            });
            if is_covered {
                arrived.sacked.push(segment.clone());
                self.lost -= usize::from(segment.lost);
                self.was_lost -= usize::from(segment.was_lost);
                self.repeating -= usize::from(segment.repeating);
                self.sacked += 1;
                segment.sacked = true;
                segment.lost = false;
                segment.was_lost = false;
                segment.repeating = false;
            }
        }
        arrived
    }

    /// Counts segments that have not arrived as lost if `is_lost` says so of them.
    pub fn mark_lost(&mut self, mut is_lost: impl FnMut(&SentSegment) -> bool) {
        for segment in &mut self.segments {
            if !segment.sacked && !segment.lost && is_lost(segment) {
                self.was_lost += usize::from(!segment.was_lost);
                segment.lost = true;
                segment.was_lost = true;
                self.lost += 1;
                self.lost_ever += 1;
                self.repeating -= usize::from(segment.repeating);
                segment.repeating = false;
            }
        }
    }

    /// Counts no segment as lost any more: a timeout was spurious.
    pub fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            segment.lost = false;
            segment.was_lost = false;
        }
        self.lost = 0;
        self.was_lost = 0;
    }

    /// The earliest segment that is not acknowledged.
    pub fn first(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    /// Segments that are not acknowledged, those covered by SACK included.
    pub fn len(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Whether everything sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segments sent that are neither acknowledged, nor covered by SACK, nor lost.
    pub fn in_flight(&self) -> u64 {
        (self.segments.len() - self.sacked - self.lost) as u64
    }

    /// Segments covered by SACK and not by the cumulative acknowledgement.
    pub fn sacked(&self) -> usize {
        self.sacked
    }

    /// Segments that count as lost and were not sent again since.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// Segments that count as lost, sent again or not (`lost_out`).
    pub fn was_lost(&self) -> usize {
        self.was_lost
    }

    /// Repetitions in flight.
    pub fn repeating(&self) -> usize {
        self.repeating
    }

    /// How often a segment was counted as lost so far.
    pub fn lost_ever(&self) -> u64 {
        self.lost_ever
    }

    /// Whether all segments were sent in the order of their offsets and none has arrived early: then
    /// none can be lost by what has arrived.
    pub(super) fn is_in_order(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.repeating == 0
    }
}
