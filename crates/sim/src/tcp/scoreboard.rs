//! What the sender has sent and not yet seen acknowledged (RFC 6675, section 3).
//!
//! A segment as it was sent is the unit: a SACK block that covers part of one leaves it unchanged.
//! Which segments are lost is decided in the module of RACK.

use std::collections::VecDeque;
use std::ops::Range;

use swiftwater_units::Instant;

use super::segment::Acknowledgement;

/// One segment between the cumulative acknowledgement and the highest offset sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentSegment {
    /// Offsets of the payload.
    pub payload: Range<u64>,
    /// Time of the latest transmission.
    pub sent_at: Instant,
    /// Whether it was sent more than once.
    pub retransmitted: bool,
    /// Whether a SACK block covered it.
    pub sacked: bool,
    /// Whether it counts as lost and has not been sent again since.
    pub lost: bool,
}

/// Segments in order of their offsets, without gaps.
#[derive(Debug, Clone, Default)]
pub struct Scoreboard {
    segments: VecDeque<SentSegment>,
    sent: u64,
}

impl Scoreboard {
    /// Nothing has been sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Offset of the next new byte.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Appends a segment of `bytes` new bytes, and returns their offsets.
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
            });
        }
        payload
    }

    /// Sends the first lost segment again, and returns its offsets; nothing when none is lost.
    pub fn retransmit(&mut self, now: Instant) -> Option<Range<u64>> {
        let segment = self.segments.iter_mut().find(|segment| segment.lost)?;
        segment.lost = false;
        segment.retransmitted = true;
        segment.sent_at = now;
        Some(segment.payload.clone())
    }

    /// Takes an acknowledgement, and returns the segments it newly reports as arrived, in order of
    /// their offsets. Offsets that were never sent are ignored.
    pub fn on_ack(&mut self, ack: &Acknowledgement) -> Vec<SentSegment> {
        let mut arrived = Vec::new();
        while let Some(first) = self.segments.front_mut() {
            if first.payload.end > ack.next {
                first.payload.start = first.payload.start.max(ack.next);
                break;
            }
            let was_sacked = first.sacked;
            let first = self.segments.pop_front();
            arrived.extend(first.filter(|_| !was_sacked));
        }
        for segment in &mut self.segments {
            let is_covered = ack.blocks.iter().any(|block| {
                block.start <= segment.payload.start && segment.payload.end <= block.end
            });
            if is_covered && !segment.sacked {
                arrived.push(segment.clone());
                segment.sacked = true;
                segment.lost = false;
            }
        }
        arrived
    }

    /// Counts every segment that has not arrived as lost, as when the timer expires.
    pub fn mark_all_lost(&mut self) {
        for segment in self.outstanding_mut() {
            segment.lost = true;
        }
    }

    /// Bytes sent that are neither acknowledged, nor covered by SACK, nor lost.
    pub fn in_flight(&self) -> u64 {
        let flying = self.segments.iter().filter(|s| !s.sacked && !s.lost);
        flying.map(|s| s.payload.end - s.payload.start).sum()
    }

    /// Segments covered by SACK and not by the cumulative acknowledgement.
    pub fn sacked(&self) -> usize {
        self.segments.iter().filter(|s| s.sacked).count()
    }

    /// Segments that have not arrived as far as is known, lost ones included.
    pub(super) fn outstanding_mut(&mut self) -> impl Iterator<Item = &mut SentSegment> {
        self.segments.iter_mut().filter(|s| !s.sacked)
    }
}
