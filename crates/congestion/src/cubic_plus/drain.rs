//! When Cubic+ drains a queue (section 3.3): one decision per period, so many drains in a row, then
//! a drain left out, because the queue must be that of others.

use std::time::Duration;

use swiftwater_units::Instant;

use super::config::CubicPlusConfig;
use crate::sample::AckBatch;

/// What a period ends with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Decision {
    /// The period isn't over, or something in it forbids a decision.
    None,
    /// The queue is short enough.
    Calm,
    /// Reduce the window.
    Drain {
        /// The drains before it, if any, are no longer in doubt.
        first: bool,
    },
    /// A drain is left out.
    Skip {
        /// The first since the last drain: the drains before it did not help.
        first: bool,
    },
}

/// Periods and counts of drains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DrainTimer {
    period_rtts: f64,
    limit: u32,
    backoff: u32,
    /// Share of the expected relief that a drain must bring; 0 for the paper's rule.
    relief: f64,
    /// Decide by the longest queue of the period instead of that at its end.
    joint: bool,
    /// Longest queue of the running period, seconds, and whether it was too long.
    longest: f64,
    was_too_long: bool,
    /// Longest queue of the period before, seconds.
    drained: f64,
    /// What the last drain in a row was expected to leave, at most, if the queue is our own.
    promised: Option<f64>,
    /// End of the running period; `None` until an ACK begins one.
    ends_at: Option<Instant>,
    /// False once the running period saw a loss, a mark, or a window that was not used.
    clean: bool,
    /// The last reduction, until an ACK shows its effect.
    reduced_at: Option<Instant>,
    /// Drains in a row.
    drains: u32,
    /// How often in a row drains did not help.
    futile: u32,
    /// Drains still to be left out.
    skips_left: u32,
}

impl DrainTimer {
    pub(super) fn new(config: &CubicPlusConfig) -> Self {
        Self {
            period_rtts: config.period_rtts,
            limit: config.drain_limit,
            backoff: config.drain_backoff,
            relief: config.drain_relief,
            joint: config.joint_drain,
            longest: 0.0,
            was_too_long: false,
            drained: 0.0,
            promised: None,
            ends_at: None,
            clean: true,
            reduced_at: None,
            drains: 0,
            futile: 0,
            skips_left: 0,
        }
    }

    /// Packets were lost or marked.
    pub(super) fn on_congestion(&mut self) {
        self.clean = false;
    }

    /// The window was reduced, for whatever reason: no decision before an ACK shows what came of it.
    pub(super) fn on_reduction(&mut self, now: Instant) {
        self.reduced_at = Some(now);
    }

    /// True while the effect of the last reduction can't be seen yet.
    pub(super) fn awaits_effect(&self) -> bool {
        self.reduced_at.is_some()
    }

    /// What the running period saw is out of date: the next ACK begins another one.
    pub(super) fn restart(&mut self) {
        self.ends_at = None;
        (self.longest, self.was_too_long) = (0.0, false);
    }

    /// Discards the drains so far.
    pub(super) fn clear(&mut self) {
        (self.drains, self.futile, self.skips_left) = (0, 0, 0);
        self.promised = None;
    }

    /// A drain multiplies by `factor` a window that takes `queue` seconds of waiting on top of
    /// `base`. If all that waits is our own, the whole round-trip time shrinks by that factor.
    pub(super) fn on_drain(&mut self, factor: f64, queue: f64, base: f64) {
        let expected = ((1.0 - factor) * (base + queue)).min(queue);
        self.promised = Some(self.relief.mul_add(-expected, queue));
    }

    /// The queue that is to be drained, seconds: `queue`, or with joint drains the longest of the
    /// period that has just ended.
    pub(super) fn queue_to_drain(&self, queue: f64) -> f64 {
        if self.joint {
            queue.max(self.drained)
        } else {
            queue
        }
    }

    /// Drains in a row.
    pub(super) fn drains(&self) -> u32 {
        self.drains
    }

    /// Takes in an ACK; `queue` is the delay of the queue in seconds, `too_long` is true if it is too long.
    pub(super) fn on_ack(&mut self, ack: &AckBatch, queue: f64, too_long: bool) -> Decision {
        if self
            .reduced_at
            .is_some_and(|at| ack.largest_acked_sent_at >= at)
        {
            self.reduced_at = None;
            if self.joint {
                // What the queue was before the reduction is not to count again.
                self.restart();
            }
        }
        // A queue is no business of a flow that doesn't use its window.
        self.clean &= ack.cwnd_limited_in_round || !ack.app_limited;
        self.longest = self.longest.max(queue);
        self.was_too_long |= too_long;
        let over = self.ends_at.is_some_and(|end| ack.now >= end);
        if self.ends_at.is_some() && (!over || self.awaits_effect()) {
            return Decision::None;
        }
        let decides = over && self.clean;
        self.ends_at = Some(ack.now + self.period(ack));
        self.clean = true;
        let was_too_long = std::mem::take(&mut self.was_too_long);
        self.drained = std::mem::take(&mut self.longest);
        if decides {
            self.decide(queue, too_long || (self.joint && was_too_long))
        } else {
            Decision::None
        }
    }

    fn period(&self, ack: &AckBatch) -> Duration {
        let rtt = ack.rtt.known_smoothed().unwrap_or_default();
        Duration::try_from_secs_f64(rtt.as_secs_f64() * self.period_rtts).unwrap_or(Duration::MAX)
    }

    /// True if the drains in a row didn't help: there were too many of them, or the last one made
    /// the queue hardly shorter.
    fn is_futile(&self, queue: f64) -> bool {
        if self.relief > 0.0 {
            self.promised.is_some_and(|promised| queue > promised)
        } else {
            self.drains >= self.limit
        }
    }

    fn decide(&mut self, queue: f64, too_long: bool) -> Decision {
        if !too_long {
            self.clear();
            return Decision::Calm;
        }
        if self.skips_left > 0 {
            self.skips_left -= 1;
            return Decision::Skip { first: false };
        }
        if !self.is_futile(queue) {
            self.drains = self.drains.saturating_add(1);
            // With the relief measured, a drain that helped stands; only the last one is in doubt.
            return Decision::Drain {
                first: self.drains == 1 || self.relief > 0.0,
            };
        }
        self.promised = None;
        self.drains = 0;
        let skips = 1_u32.checked_shl(self.futile).unwrap_or(u32::MAX);
        self.futile = self.futile.saturating_add(1);
        self.skips_left = skips.min(self.backoff) - 1;
        Decision::Skip { first: true }
    }
}
