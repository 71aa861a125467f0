//! The history of stream ranges that were declared lost or probed for, or of which a re-injector asked
//! for a copy, until they are acknowledged.
//!
//! Several copies of such a range may be in flight, on one path or several. A copy is identified by
//! path and packet number, and is live until its packet is acknowledged or declared lost. A range is
//! sent again when no live copy is left, and is delivered when any copy is acknowledged: else every copy
//! that gets lost would be retransmitted on its own (AutoRec, section VIII-C), or the loss of the copy
//! on a fast path would repeat what is about to arrive on a slow one. There is no history while nothing
//! is lost, and each event costs O(log n) of the ranges.
//!
//! Events for policies and observers leave through [`RetransmissionHistory::poll_event`]. What is to be
//! sent again is kept in `send_buffer.rs`. Bare FINs are not tracked: they have no bytes to name.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use swiftwater_units::{PathId, StreamId};

use super::range_history::{Carrier, CarrierFate, CopySent, RangeHistory, RangeUse};
use super::repair_stats::RepairStats;
use crate::frame_writer::Fate;
use crate::idle_memory::IdleMemory;
use crate::observe::Purpose;
use crate::policy::{Copied, DataRange, Repair, RepairCause};

/// A recovered data range, for observers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(crate) range: DataRange,
    pub(crate) by: Copied,
    pub(crate) latency: Duration,
    pub(crate) detection_time: Duration,
    pub(crate) retransmissions: u32,
    pub(crate) replicas: u32,
}

/// An event of data under repair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RepairEvent {
    /// For the re-injector.
    Policy(Repair),
    /// A range was declared lost, or probed for, for the first time.
    Lost {
        range: DataRange,
        detection_time: Duration,
        cause: RepairCause,
    },
    /// A range that had been lost was recovered.
    Recovered(Recovery),
}

/// All ranges under repair of a connection.
#[derive(Debug, Default)]
pub(super) struct RetransmissionHistory {
    ranges: BTreeMap<(StreamId, u64), RangeHistory>,
    events: VecDeque<RepairEvent>,
    /// Scratch memory, empty between calls.
    pub(super) gaps: Vec<Range<u64>>,
    pub(super) resend: Vec<Range<u64>>,
    pub(super) stats: RepairStats,
}

impl RetransmissionHistory {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn poll_event(&mut self) -> Option<RepairEvent> {
        self.events.pop_front()
    }

    /// Where a frame with bytes to send again from `offset` on should end, so that it carries whole
    /// data: the end of the data range there, if there is one.
    pub(super) fn end_of(&self, stream: StreamId, offset: u64) -> Option<u64> {
        if self.ranges.is_empty() {
            return None;
        }
        let (&(_, start), history) = self
            .ranges
            .range((stream, 0)..=(stream, offset))
            .next_back()?;
        let end = start + u64::from(history.len);
        (offset < end).then_some(end)
    }

    /// True if a retransmission of bytes of `range` is in flight on `path`.
    pub(super) fn is_retransmitted_on(
        &self,
        stream: StreamId,
        range: &Range<u64>,
        path: PathId,
    ) -> bool {
        let before_end = self.ranges.range((stream, 0)..(stream, range.end)).rev();
        let mut overlapping = before_end
            .take_while(|((_, start), history)| start + u64::from(history.len) > range.start);
        overlapping.any(|(_, history)| history.is_retransmitted_on(path))
    }

    /// `gap` of a stream, not acknowledged, was in a packet that was declared lost or is probed for.
    /// Appends to `resend` what must be sent again: a probe repeats whatever is in flight.
    pub(super) fn on_lost(
        &mut self,
        fate: &CarrierFate,
        stream: StreamId,
        gap: Range<u64>,
        resend: &mut Vec<Range<u64>>,
    ) {
        let mut at = gap.start;
        while at < gap.end {
            let known = self
                .at_or_after(stream, at)
                .filter(|range| range.start < gap.end);
            let unknown_end = known.as_ref().map_or(gap.end, |range| range.start.max(at));
            if at < unknown_end {
                self.begin(fate, stream, at..unknown_end);
                resend.push(at..unknown_end);
            }
            let Some(range) = known else { break };
            let range = self.part_in(stream, range, &gap);
            if self.lose_again(fate, stream, &range) {
                resend.push(range.clone());
            }
            at = range.end;
        }
    }

    /// The first range that ends after `at`.
    fn at_or_after(&self, stream: StreamId, at: u64) -> Option<Range<u64>> {
        let whole = |(&(_, start), history): (&(StreamId, u64), &RangeHistory)| {
            start..start + u64::from(history.len)
        };
        let before = self
            .ranges
            .range((stream, 0)..=(stream, at))
            .next_back()
            .map(whole)
            .filter(|range| range.end > at);
        before.or_else(|| {
            self.ranges
                .range((stream, at)..=(stream, u64::MAX))
                .next()
                .map(whole)
        })
    }

    /// The part of a known range that is in `gap`. Cuts the range there if several packets carried parts
    /// of it: each part has copies of its own from then on.
    fn part_in(&mut self, stream: StreamId, range: Range<u64>, gap: &Range<u64>) -> Range<u64> {
        self.cut(stream, gap.start);
        self.cut(stream, gap.end);
        range.start.max(gap.start)..range.end.min(gap.end)
    }

    /// Replicas that were sent of the first bytes of `range`.
    pub(super) fn replicas_of(&self, stream: StreamId, range: Range<u64>) -> u32 {
        if self.ranges.is_empty() {
            return 0;
        }
        let known = self.at_or_after(stream, range.start);
        let known = known.filter(|known| known.start < range.end);
        let history = known.and_then(|known| self.ranges.get(&(stream, known.start)));
        history.map_or(0, |history| history.replicas)
    }

    fn begin(&mut self, fate: &CarrierFate, stream: StreamId, range: Range<u64>) {
        let len = (range.end - range.start) as u32;
        let mut history = RangeHistory::new(len);
        history.first_sent_at = Some(fate.carrier.sent_at);
        history.lost_at = Some(fate.now);
        history.pending = Some(fate.cause());
        // A probe timeout repeats what may arrive yet.
        history.original_is_live = fate.fate == Fate::Probed;
        self.ranges.insert((stream, range.start), history);
        let range = DataRange {
            stream,
            offset: range.start,
            len,
        };
        self.count_lost(fate, range);
    }

    fn count_lost(&mut self, fate: &CarrierFate, range: DataRange) {
        self.stats.lost_data += 1;
        self.stats.lost_bytes += u64::from(range.len).into();
        self.events.push_back(RepairEvent::Lost {
            range,
            detection_time: fate.now.saturating_since(fate.carrier.sent_at),
            cause: fate.cause(),
        });
    }

    /// A copy of a known range is lost; true if the range must be sent again.
    fn lose_again(&mut self, fate: &CarrierFate, stream: StreamId, range: &Range<u64>) -> bool {
        let Some(history) = self.ranges.get_mut(&(stream, range.start)) else {
            return false;
        };
        if fate.fate == Fate::Lost {
            history.on_copy_lost(&fate.carrier);
        }
        if history.pending.is_some() {
            return false;
        }
        let is_loss = fate.fate == Fate::Lost;
        if is_loss && fate.live_copies_defer_retransmission && history.has_live_copy() {
            return false;
        }
        history.pending = Some(fate.cause());
        if history.lost_at.is_none() {
            history.lost_at = Some(fate.now);
            history.first_sent_at.get_or_insert(fate.carrier.sent_at);
            let len = history.len;
            let offset = range.start;
            let range = DataRange {
                stream,
                offset,
                len,
            };
            self.count_lost(fate, range);
        }
        true
    }

    /// `range` of a stream was sent again in `carrier`.
    pub(super) fn on_sent(
        &mut self,
        carrier: &Carrier,
        stream: StreamId,
        range: Range<u64>,
        usage: &RangeUse,
    ) {
        if range.is_empty() {
            return;
        }
        if usage.purpose == Purpose::Replica {
            self.cover(stream, range.clone());
        }
        self.cut(stream, range.start);
        self.cut(stream, range.end);
        let mut at = range.start;
        while let Some(known) = self.at_or_after(stream, at).filter(|r| r.start < range.end) {
            self.record_copy(carrier, stream, known.start, usage);
            at = known.end;
        }
    }

    /// Makes room for the history of bytes that are repeated without having been lost.
    fn cover(&mut self, stream: StreamId, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let known = self.at_or_after(stream, at).filter(|r| r.start < range.end);
            let end = known.as_ref().map_or(range.end, |known| known.start);
            if at < end {
                let history = RangeHistory::new((end - at) as u32);
                self.ranges.insert((stream, at), history);
            }
            at = known.map_or(range.end, |known| known.end);
        }
    }

    /// Cuts the range around `at`, if there is one, in two.
    fn cut(&mut self, stream: StreamId, at: u64) {
        let Some((&(_, start), history)) =
            self.ranges.range_mut((stream, 0)..(stream, at)).next_back()
        else {
            return;
        };
        let end = start + u64::from(history.len);
        if end <= at {
            return;
        }
        let range = DataRange {
            stream,
            offset: start,
            len: history.len,
        };
        let mut rest = history.clone();
        history.len = (at - start) as u32;
        rest.len = (end - at) as u32;
        let first = history.len;
        // Its copies are copies of both from now on.
        self.stats.replicas_sent += u64::from(rest.replicas);
        self.ranges.insert((stream, at), rest);
        self.events
            .push_back(RepairEvent::Policy(Repair::Split { range, at: first }));
    }

    /// Records one more copy of the range at `offset`: a retransmission if it waited for one, else a
    /// replica.
    fn record_copy(&mut self, carrier: &Carrier, stream: StreamId, offset: u64, usage: &RangeUse) {
        let Some(history) = self.ranges.get_mut(&(stream, offset)) else {
            return;
        };
        let len = history.len;
        let range = DataRange {
            stream,
            offset,
            len,
        };
        let cause = history.pending.take();
        match cause {
            Some(_) => history.retransmissions += 1,
            None => history.replicas += 1,
        }
        history.copies.push(CopySent {
            path: carrier.path,
            number: carrier.number,
            sent_at: carrier.sent_at,
            replica: cause.is_none(),
            round: history.retransmissions,
            is_live: true,
        });
        let Some(cause) = cause else {
            self.stats.replicas_sent += 1;
            self.stats.replica_bytes += u64::from(len).into();
            self.events
                .push_back(RepairEvent::Policy(Repair::ReplicaSent { range }));
            return;
        };
        self.stats.retransmitted_bytes += u64::from(len).into();
        let first_sent_at = history.first_sent_at.unwrap_or(carrier.sent_at);
        if history.first_retransmitted_at.is_none() {
            history.first_retransmitted_at = Some(carrier.sent_at);
            let time = carrier.sent_at.saturating_since(first_sent_at);
            self.stats.count_detection(cause, time, len);
        }
        let event = Repair::Retransmitted {
            range,
            first_sent_at,
            lost_at: history.lost_at.unwrap_or(carrier.sent_at),
            round: history.retransmissions,
            cause,
            priority: usage.priority,
            deadline: usage.deadline,
        };
        self.events.push_back(RepairEvent::Policy(event));
    }

    /// The copy of `range` in `carrier` was acknowledged.
    pub(super) fn on_acked(&mut self, carrier: &Carrier, stream: StreamId, range: Range<u64>) {
        while let Some(known) = self
            .at_or_after(stream, range.start)
            .filter(|known| known.start < range.end)
        {
            // Frames carry whole ranges, except for ones that were cut since: those are covered too.
            let Some(history) = self.ranges.remove(&(stream, known.start)) else {
                return;
            };
            self.finish(carrier, stream, known.start, &history);
        }
    }

    fn finish(&mut self, carrier: &Carrier, stream: StreamId, offset: u64, history: &RangeHistory) {
        let range = DataRange {
            stream,
            offset,
            len: history.len,
        };
        let bytes = u64::from(history.len);
        let copy = history.copies.iter().find(|copy| copy.is_in(carrier));
        let by = match copy {
            None => Copied::Original,
            Some(copy) if copy.replica => Copied::Replica,
            Some(copy) => Copied::Retransmission(copy.round),
        };
        let useful = u64::from(by == Copied::Replica);
        self.stats.replicas_useful += useful;
        self.stats.replicas_wasted += u64::from(history.replicas) - useful;
        self.events
            .push_back(RepairEvent::Policy(Repair::Recovered { range, by }));
        if history.lost_at.is_none() {
            return;
        }
        let latency = match (copy, history.first_retransmitted_at) {
            (Some(copy), Some(first)) => copy.sent_at.saturating_since(first),
            _ => Duration::ZERO,
        };
        let detection_time = match (history.first_retransmitted_at, history.first_sent_at) {
            (Some(again), Some(first)) => again.saturating_since(first),
            _ => Duration::ZERO,
        };
        let stats = &mut self.stats;
        stats.recovered_bytes += bytes.into();
        match by {
            Copied::Original => stats.spurious_bytes += bytes.into(),
            Copied::Retransmission(1) => {}
            Copied::Retransmission(_) | Copied::Replica => {
                stats.repeated_bytes += bytes.into();
                stats.repeated_data += 1;
                stats.recovery_latency_sum += latency.as_nanos() * u128::from(bytes);
                stats.max_recovery_latency = stats.max_recovery_latency.max(latency);
                if copy.is_some_and(|copy| copy.round >= 2) {
                    stats.deteriorated_bytes += bytes.into();
                }
                if latency >= detection_time {
                    stats.late_bytes += bytes.into();
                }
            }
        }
        self.events.push_back(RepairEvent::Recovered(Recovery {
            range,
            by,
            latency,
            detection_time,
            retransmissions: history.retransmissions,
            replicas: history.replicas,
        }));
    }

    /// Abandons all ranges of a stream that was reset.
    pub(super) fn on_reset(&mut self, stream: StreamId) {
        while let Some(range) = self.at_or_after(stream, 0) {
            let Some(history) = self.ranges.remove(&(stream, range.start)) else {
                return;
            };
            self.abandon(stream, range.start, &history);
        }
    }

    /// Abandons the ranges of a stream from `end` on: only the bytes before are still delivered.
    pub(super) fn on_truncated(&mut self, stream: StreamId, end: u64) {
        if self.ranges.is_empty() {
            return;
        }
        self.cut(stream, end);
        while let Some(range) = self.at_or_after(stream, end) {
            let Some(history) = self.ranges.remove(&(stream, range.start)) else {
                return;
            };
            self.abandon(stream, range.start, &history);
        }
    }

    /// Abandons all ranges: the connection closed.
    pub(super) fn on_closed(&mut self) {
        while let Some(((stream, offset), history)) = self.ranges.pop_first() {
            self.abandon(stream, offset, &history);
        }
    }

    fn abandon(&mut self, stream: StreamId, offset: u64, history: &RangeHistory) {
        self.stats.replicas_wasted += u64::from(history.replicas);
        let range = DataRange {
            stream,
            offset,
            len: history.len,
        };
        self.events
            .push_back(RepairEvent::Policy(Repair::Abandoned { range }));
    }
}

impl IdleMemory for RetransmissionHistory {
    fn release_idle_memory(&mut self) {
        let Self {
            ranges,
            events,
            gaps,
            resend,
            stats: _,
        } = self;
        if ranges.is_empty() {
            // An empty map may keep a node.
            *ranges = BTreeMap::new();
        }
        events.shrink_to_fit();
        *gaps = Vec::new();
        *resend = Vec::new();
    }
}
