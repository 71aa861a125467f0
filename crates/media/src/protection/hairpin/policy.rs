//! Hairpin in a session: measurements and table look-ups.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::Instant;

use super::solver::{HairpinTable, MAX_ROUNDS};

/// Window of the loss rate: two frames at 60 per second.
pub const WINDOW: Duration = Duration::from_millis(34);

/// Measurements of the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathTiming {
    /// Smoothed round-trip time, gain 1/8.
    pub smoothed_rtt: Duration,
    /// Its mean deviation, gain 1/4.
    pub rtt_var: Duration,
    /// Time between two packets of a burst at the receiver.
    pub dispersion: Duration,
}

impl PathTiming {
    /// Time after the last packet of a batch at which its missing packets are retransmitted:
    /// max(srtt + 4 sd, 1.5 srtt) for a retransmitted batch, max(srtt + 4 sd, 2 srtt) for the
    /// first, and the dispersion of a packet.
    pub fn recovery_timeout(&self, is_first: bool) -> Duration {
        let least = self.smoothed_rtt * if is_first { 4 } else { 3 } / 2;
        let four = self.smoothed_rtt + self.rtt_var * 4;
        four.max(least) + self.dispersion
    }

    /// Rounds of transmission that fit in `left`, the time to the deadline: one less than the
    /// round-trip times in it, 1 to 15.
    pub fn rounds(&self, left: Duration) -> usize {
        let rtt = (self.smoothed_rtt + self.rtt_var).as_nanos();
        // Whole milliseconds, as in the paper's code.
        let rtt = rtt.div_ceil(1_000_000).max(1) * 1_000_000;
        let rounds = (left.as_nanos() / rtt).saturating_sub(1);
        usize::try_from(rounds).map_or(MAX_ROUNDS, |rounds| rounds.clamp(1, MAX_ROUNDS))
    }
}

/// Hairpin's state in a session.
#[derive(Debug)]
pub struct HairpinPolicy {
    table: Arc<HairpinTable>,
    window: Duration,
    /// Events in the window: time, packets sent, and data packets to be retransmitted.
    recent: VecDeque<(Instant, u32, u32)>,
    sent: u64,
    resent: u64,
}

impl HairpinPolicy {
    /// A policy with `table` and the loss rate of the last `window` ([`WINDOW`] in its authors'
    /// code).
    pub fn new(table: Arc<HairpinTable>, window: Duration) -> Self {
        Self {
            table,
            window,
            recent: VecDeque::new(),
            sent: 0,
            resent: 0,
        }
    }

    /// Repair packets for a new frame of `size` packets whose deadline is `left` away.
    pub fn on_frame(
        &mut self,
        now: Instant,
        size: usize,
        left: Duration,
        timing: &PathTiming,
    ) -> usize {
        let packets = u32::try_from(size).unwrap_or(u32::MAX);
        let left = left.saturating_sub(timing.dispersion.saturating_mul(packets));
        let repairs = self.repairs(now, size, size, left, timing);
        self.count(now, size + repairs, 0);
        repairs
    }

    /// Repair packets for a batch of `missing` packets that are retransmitted, of a frame of `size`
    /// packets whose deadline is `left` away. The loss rate counts the batch as lost already, but not
    /// yet as sent.
    pub fn on_resend(
        &mut self,
        now: Instant,
        size: usize,
        missing: usize,
        left: Duration,
        timing: &PathTiming,
    ) -> usize {
        self.count(now, 0, missing);
        let repairs = self.repairs(now, size, missing, left, timing);
        self.count(now, missing + repairs, 0);
        repairs
    }

    /// Data packets retransmitted per packet sent, over the window, at most 1; 0 without packets.
    pub fn loss_rate(&mut self, now: Instant) -> f64 {
        while let Some(&(at, sent, resent)) = self.recent.front()
            && now.saturating_since(at) > self.window
        {
            self.recent.pop_front();
            self.sent -= u64::from(sent);
            self.resent -= u64::from(resent);
        }
        if self.resent >= self.sent {
            return if self.resent > 0 { 1.0 } else { 0.0 };
        }
        self.resent as f64 / self.sent as f64
    }

    fn repairs(
        &mut self,
        now: Instant,
        size: usize,
        missing: usize,
        left: Duration,
        timing: &PathTiming,
    ) -> usize {
        let loss = self.loss_rate(now);
        self.table.repairs(loss, size, timing.rounds(left), missing)
    }

    fn count(&mut self, now: Instant, sent: usize, resent: usize) {
        let sent = u32::try_from(sent).unwrap_or(u32::MAX);
        let resent = u32::try_from(resent).unwrap_or(u32::MAX);
        self.recent.push_back((now, sent, resent));
        self.sent += u64::from(sent);
        self.resent += u64::from(resent);
    }
}
