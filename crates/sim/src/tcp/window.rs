//! The congestion window: slow start, congestion avoidance, and what of it holds when the application
//! does not use it (RFC 7661 as Linux does it).
//!
//! Windows are in packets. Reduction in recovery is in the module `reduction`.

use std::time::Duration;

use swiftwater_units::Instant;

use super::cubic::Cubic;
use super::hystart::{HyStart, SlowStartView, train_slack};
use super::segment::MSS;

/// A threshold that was never set.
const INFINITE: u64 = u64::MAX;

/// The window of one sender.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    initial: u64,
    window: u64,
    threshold: u64,
    /// Acknowledged packets that have not made the window grow.
    credit: u64,
    cubic: Cubic,
    hystart: HyStart,
    /// Whether the window was filled since `usage_end` was sent, and the most packets in flight.
    is_limited: bool,
    most_out: u64,
    usage_end: u64,
    /// Most packets in flight since the window was last full, and when that was.
    used: u64,
    used_at: Instant,
}

impl CongestionWindow {
    /// A window of `initial` packets.
    pub fn new(now: Instant, initial: u64) -> Self {
        Self {
            initial,
            window: initial,
            threshold: INFINITE,
            credit: 0,
            cubic: Cubic::new(),
            hystart: HyStart::new(),
            is_limited: false,
            most_out: 0,
            usage_end: 0,
            used: 0,
            used_at: now,
        }
    }

    /// Packets that may be in flight.
    pub fn get(&self) -> u64 {
        self.window
    }

    /// Sets the window, as recovery does.
    pub fn set(&mut self, packets: u64) {
        self.window = packets.max(1);
    }

    /// The slow-start threshold, packets; `None` before the first reduction.
    pub fn threshold(&self) -> Option<u64> {
        (self.threshold < INFINITE).then_some(self.threshold)
    }

    /// Whether the window grows by slow start.
    pub fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The threshold that a sender should return to: the present one, or three quarters of the window.
    pub fn worth(&self) -> u64 {
        self.threshold.max(self.window / 2 + self.window / 4)
    }

    /// Restores window and threshold after a reduction without a loss.
    pub fn restore(&mut self, window: u64, threshold: u64) {
        self.window = self.window.max(window);
        self.threshold = self.threshold.max(threshold);
    }

    /// Takes a round trip of a segment: HyStart.
    pub fn on_rtt(
        &mut self,
        now: Instant,
        rtt: Duration,
        smoothed: Duration,
        (acked, sent): (u64, u64),
    ) {
        // Samples right after a reduction are not trusted.
        let began = self.cubic.epoch_began();
        if began.is_some_and(|at| now.saturating_since(at) < Duration::from_secs(1)) {
            return;
        }
        let view = self.is_slow_start().then(|| SlowStartView {
            window: self.window,
            acked,
            sent,
            train_slack: train_slack(self.window, smoothed, MSS),
        });
        if self.hystart.on_rtt(now, rtt, view) {
            self.threshold = self.window;
        }
    }

    /// Grows by `acked` acknowledged packets, if the window is used.
    pub fn on_acked(&mut self, now: Instant, acked: u64) {
        if !self.is_used() {
            return;
        }
        let mut acked = acked;
        if self.is_slow_start() {
            let grown = self.window.saturating_add(acked).min(self.threshold);
            acked -= grown - self.window;
            self.window = grown;
            if acked == 0 {
                return;
            }
        }
        let min_rtt = self.hystart.min_rtt();
        let pace = self.cubic.on_acked(now, self.window, acked, min_rtt);
        if self.credit >= pace {
            self.credit = 0;
            self.window += 1;
        }
        self.credit += acked;
        self.window += self.credit / pace;
        self.credit %= pace;
    }

    /// A loss: the threshold becomes the reduced window, which recovery arrives at.
    pub fn reduce(&mut self) {
        self.credit = 0;
        self.threshold = self.cubic.on_loss(self.window);
    }

    /// A timeout, after [`CongestionWindow::reduce`] if that is due.
    pub fn on_timeout(&mut self, now: Instant, sent: u64) {
        self.cubic.reset();
        self.hystart.reset(now, sent);
        self.credit = 0;
        self.used_at = now;
    }

    /// Recovery is over: the window is the reduced one.
    pub fn end_reduction(&mut self, now: Instant) {
        if self.threshold < INFINITE {
            self.window = self.threshold;
            self.used_at = now;
        }
    }

    /// Whether growth would be of use: the window was filled, or in slow start half of it.
    fn is_used(&self) -> bool {
        self.is_limited || (self.is_slow_start() && self.window < 2 * self.most_out)
    }

    /// What could be sent was sent: `out` packets are not acknowledged, the ends of what is acknowledged
    /// and sent are `acked` and `sent`, and `is_limited` is whether the window prevents more. `can_shrink`
    /// is whether an unused window may be reduced now, after a timeout of `timeout` without use.
    pub fn validate(
        &mut self,
        now: Instant,
        out: u64,
        (acked, sent): (u64, u64),
        is_limited: bool,
        shrink_after: Option<Duration>,
    ) {
        if acked >= self.usage_end || is_limited || (!self.is_limited && out > self.most_out) {
            self.is_limited = is_limited;
            self.most_out = out;
            self.usage_end = sent;
        }
        if self.is_used() {
            self.used = 0;
            self.used_at = now;
            return;
        }
        self.used = self.used.max(out);
        if let Some(timeout) = shrink_after
            && now.saturating_since(self.used_at) >= timeout
        {
            let used = self.used.max(self.initial);
            if used < self.window {
                self.threshold = self.worth();
                self.window = u64::midpoint(self.window, used);
            }
            self.used = 0;
            self.used_at = now;
        }
    }

    /// Sending resumes with nothing in flight, `idle` after the last transmission: the window is halved
    /// for each `timeout` that has passed, if there is one, down to the initial one.
    pub fn on_restart(&mut self, now: Instant, idle: Duration, timeout: Option<Duration>) {
        self.cubic.on_idle(now, idle);
        let Some(timeout) = timeout.filter(|timeout| idle > *timeout) else {
            return;
        };
        self.threshold = self.worth();
        let least = self.initial.min(self.window);
        let mut rest = idle;
        while rest > timeout && self.window > least {
            rest = rest.saturating_sub(timeout);
            self.window /= 2;
        }
        self.window = self.window.max(least);
        self.used = 0;
        self.used_at = now;
    }

    /// The first bytes are about to be sent.
    pub fn begin(&mut self, now: Instant) {
        self.hystart.begin_round(now, 0);
    }
}
