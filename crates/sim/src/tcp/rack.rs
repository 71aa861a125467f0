//! Detection of loss by time: RACK (RFC 8985, section 6.2).
//!
//! Not here: the tail loss probe, and the widening of the reordering window upon duplicates
//! (section 6.2, step 4). The minimum of the round trip is that of the whole connection.

use std::time::Duration;

use swiftwater_units::Instant;

use super::scoreboard::{Arrived, Scoreboard, SentSegment};

/// Segments covered by SACK from which no reordering is waited for, unless it was seen before.
const DUPLICATE_THRESHOLD: usize = 3;

/// State of RACK for one sender.
#[derive(Debug, Clone, Default)]
pub struct Rack {
    /// Transmission time and end of the latest-sent segment that arrived.
    latest: Option<(Instant, u64)>,
    rtt: Duration,
    min_rtt: Option<Duration>,
    highest_arrived: u64,
    has_reordering: bool,
    /// Something arrived since the last detection.
    advanced: bool,
}

impl Rack {
    /// Nothing has arrived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a segment was seen to arrive after one with higher offsets, without a retransmission.
    pub fn has_reordering(&self) -> bool {
        self.has_reordering
    }

    /// The least round trip of the connection.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Takes a round trip that was not measured by a segment with payload: that of the handshake.
    pub fn on_handshake(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// Takes the segments that an acknowledgement newly reported (steps 1 to 3).
    pub fn on_arrived(&mut self, now: Instant, arrived: &Arrived) {
        let highest_before = self.highest_arrived;
        for segment in arrived.newly() {
            let rtt = now.saturating_since(segment.sent_at);
            let end = segment.payload.end;
            if segment.retransmitted && self.min_rtt.is_some_and(|least| rtt < least) {
                // The acknowledgement is likely that of an earlier transmission.
                continue;
            }
            self.advanced = true;
            if !segment.retransmitted {
                self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
                self.has_reordering |= end < highest_before;
            }
            self.highest_arrived = self.highest_arrived.max(end);
            if self
                .latest
                .is_none_or(|latest| latest < (segment.sent_at, end))
            {
                self.latest = Some((segment.sent_at, end));
                self.rtt = rtt;
            }
        }
    }

    /// As [`Rack::detect`], if something arrived since the last detection.
    pub fn detect_after_ack(
        &mut self,
        now: Instant,
        scoreboard: &mut Scoreboard,
        smoothed_rtt: Duration,
        in_recovery: bool,
    ) -> Option<Instant> {
        if !std::mem::take(&mut self.advanced) {
            return None;
        }
        self.detect(now, scoreboard, smoothed_rtt, in_recovery)
    }

    /// Marks segments as lost that were sent before one that arrived, a round trip and the reordering
    /// window ago (step 5). Returns when to call it again, if some may be lost by then.
    ///
    /// `smoothed_rtt` bounds the window; `in_recovery` is whether losses are being repaired.
    pub fn detect(
        &self,
        now: Instant,
        scoreboard: &mut Scoreboard,
        smoothed_rtt: Duration,
        in_recovery: bool,
    ) -> Option<Instant> {
        let latest = self.latest?;
        if scoreboard.is_in_order() {
            return None;
        }
        let is_certain = in_recovery || scoreboard.sacked() >= DUPLICATE_THRESHOLD;
        let window = if is_certain && !self.has_reordering {
            Duration::ZERO
        } else {
            (self.min_rtt.unwrap_or_default() / 4).min(smoothed_rtt)
        };
        let mut again = None;
        scoreboard.mark_lost(|segment| {
            if (segment.sent_at, segment.payload.end) >= latest {
                return false;
            }
            let lost_at = segment.sent_at + self.rtt + window;
            let is_lost = lost_at <= now;
            if !is_lost {
                again = again.max(Some(lost_at));
            }
            is_lost
        });
        again
    }

    /// Whether a segment is so recent that it does not count as lost when the retransmission timer
    /// expires (section 6.3).
    pub fn is_recent(&self, now: Instant, segment: &SentSegment) -> bool {
        self.latest.is_some() && segment.sent_at + self.rtt > now
    }
}
