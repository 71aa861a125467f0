//! The share of packets that the bottleneck marks: measured once per (virtual) round trip, smoothed
//! into `alpha`.
//!
//! draft-briscoe-iccrg-prague-congestion-control-04, "Moving Average of ECN Feedback".

use std::time::Duration;

use swiftwater_units::Instant;

use crate::sample::AckBatch;

/// One period of measurement, of which nothing is known before its first ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Period {
    /// Packets that the peer reported, marked or not.
    reported: u64,
    /// Those of them marked CE.
    marked: u64,
    /// Least round-trip time.
    pub(super) least_rtt: Option<Duration>,
}

impl Period {
    /// Share of marked packets, 0 to 1; `None` if nothing was reported.
    pub(super) fn share(&self) -> Option<f64> {
        (self.reported > 0).then(|| self.marked as f64 / self.reported as f64)
    }
}

/// The average of the marked share, and the period that is being measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alpha {
    gain: f64,
    /// `None` until the first mark shows that there is a marking queue at all; 1 with it.
    average: Option<f64>,
    period: Period,
    since: Option<Instant>,
    /// ACKs of packets sent before this aren't measured.
    not_before: Instant,
}

impl Alpha {
    pub(super) fn new(gain: f64) -> Self {
        Self {
            gain,
            average: None,
            period: Period::default(),
            since: None,
            not_before: Instant::ZERO,
        }
    }

    /// The average; 1 before there is one, which is the answer to the first mark.
    pub(super) fn get(&self) -> f64 {
        self.average.unwrap_or(1.0)
    }

    /// The same for logs: zero before the first mark.
    pub(super) fn shown(&self) -> f64 {
        self.average.unwrap_or_default()
    }

    /// A mark was reported.
    pub(super) fn on_mark(&mut self) {
        self.average.get_or_insert(1.0);
    }

    /// Starts measuring anew with packets sent from `now` on: what is on its way was sent with a
    /// window that no longer is, at the end of slow start for instance.
    pub(super) fn restart(&mut self, now: Instant) {
        self.period = Period::default();
        self.since = None;
        self.not_before = now;
    }

    /// True if what became of packets sent at `sent_at` counts.
    pub(super) fn measures(&self, sent_at: Instant) -> bool {
        sent_at >= self.not_before
    }

    /// Takes in an ACK. Returns the period that it ends: one of `length`, or of a round trip.
    pub(super) fn on_ack(&mut self, ack: &AckBatch, length: Option<Duration>) -> Option<Period> {
        if !self.measures(ack.largest_acked_sent_at) {
            return None;
        }
        let since = *self.since.get_or_insert(ack.now);
        let is_over = length.map_or(ack.round.start, |length| {
            ack.now.saturating_since(since) >= length
        });
        let ended = is_over.then(|| {
            self.since = Some(ack.now);
            std::mem::take(&mut self.period)
        });
        if let Some(share) = ended.and_then(|period| period.share())
            && let Some(average) = &mut self.average
        {
            *average += self.gain * (share - *average);
        }
        let counts = &ack.ecn;
        let marked = counts.ce.get();
        let all = counts
            .ect0
            .get()
            .saturating_add(counts.ect1.get())
            .saturating_add(marked);
        self.period.reported = self.period.reported.saturating_add(all);
        self.period.marked = self.period.marked.saturating_add(marked);
        if ack.rtt.has_sample {
            let latest = ack.rtt.latest;
            let least = self.period.least_rtt.get_or_insert(latest);
            *least = latest.min(*least);
        }
        ended
    }
}
