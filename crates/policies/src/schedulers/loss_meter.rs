//! The recent loss rate of a path, from the loss rate since its start.

use std::time::Duration;

use swiftwater_quic::policy::PathView;
use swiftwater_units::Instant;

/// Least datagrams of a period.
const LEAST_DATAGRAMS: u64 = 20;
/// Least length of a period, in smoothed round-trip times: the losses at the end of slow start fall into
/// one.
const PERIOD_RTTS: u32 = 4;
/// The same at least.
const LEAST_PERIOD: Duration = Duration::from_millis(100);

/// Shares of lost datagrams, counted over periods of four round-trip times, 100 ms and 20 datagrams at
/// least; the last two of them count.
///
/// A [`PathView`] shows the share of all packets of the path that were lost
/// ([`PathView::loss_rate`]); times the datagrams sent it yields how many were lost, and the increase of
/// that is what was lost lately. Losses found while a queue of the path itself stands are counted apart: a queue
/// that overflows explains them, as at the end of slow start and while BBRv1 starts up, and they say nothing about
/// the next time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossMeter {
    sent: u64,
    last_sent_at: Option<Instant>,
    started_at: Instant,
    /// Datagrams sent, and the losses, when the running period started.
    at_start: (u64, Losses),
    losses: Losses,
    /// Shares of the last period and of the one before.
    last: Option<Losses>,
    earlier: Option<Losses>,
    /// Since when the path has been excluded for its losses.
    excluded_since: Option<Instant>,
}

/// Lost datagrams, or their share.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    all: f64,
    /// Of these, found while no queue stood.
    unexplained: f64,
}

impl Losses {
    fn share_since(self, earlier: Self, sent: u64) -> Self {
        Self {
            all: (self.all - earlier.all) / sent as f64,
            unexplained: (self.unexplained - earlier.unexplained) / sent as f64,
        }
    }
}

impl LossMeter {
    /// A datagram left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if self.sent == 0 {
            self.started_at = now;
        }
        self.sent += 1;
        self.last_sent_at = Some(now);
    }

    /// Reads what the path shows now; a queue of its own stands if `is_queued`.
    pub(super) fn observe(&mut self, now: Instant, path: &PathView, is_queued: bool) {
        let lost = (path.loss_rate * self.sent as f64 - self.losses.all).max(0.0);
        self.losses.all += lost;
        if !is_queued {
            self.losses.unexplained += lost;
        }
        let period = (path.smoothed_rtt * PERIOD_RTTS).max(LEAST_PERIOD);
        let (sent, losses) = self.at_start;
        let sent = self.sent - sent;
        if sent >= LEAST_DATAGRAMS && now.saturating_since(self.started_at) >= period {
            self.earlier = self.last.or(self.earlier);
            self.last = Some(self.losses.share_since(losses, sent));
            self.start(now);
        }
    }

    /// Excludes the path while [`LossMeter::smaller`] is above `limit`, and gives it another trial each time that
    /// it has been excluded for `retry`: one more period decides then. What the path carries meanwhile,
    /// acknowledgements and probes above all, says too little to count.
    pub(super) fn judge(&mut self, now: Instant, limit: f64, retry: Duration) {
        if self.smaller() <= limit {
            self.excluded_since = None;
        } else if now >= *self.excluded_since.get_or_insert(now) + retry {
            self.excluded_since = None;
            self.earlier = self.last.take().or(self.earlier);
            self.start(now);
        }
    }

    /// True while the path is excluded for its losses, after [`LossMeter::judge`].
    pub(super) fn is_excluded(&self) -> bool {
        self.excluded_since.is_some()
    }

    fn start(&mut self, now: Instant) {
        self.started_at = now;
        self.at_start = (self.sent, self.losses);
    }

    /// Time since the last datagram; `None` before the first.
    pub(super) fn unused_for(&self, now: Instant) -> Option<Duration> {
        self.last_sent_at.map(|at| now.saturating_since(at))
    }

    /// The larger share of all losses of the two periods, 0 to 1; 0 before the first has ended.
    pub(super) fn larger(&self) -> f64 {
        let shares = [self.last, self.earlier].into_iter().flatten();
        shares.map(|share| share.all).fold(0.0, f64::max)
    }

    /// The smaller share of the unexplained losses of the two, 0 before both have ended: a loss rate that lasts.
    pub(super) fn smaller(&self) -> f64 {
        let both = self.last.zip(self.earlier);
        both.map_or(0.0, |(last, earlier)| {
            last.unexplained.min(earlier.unexplained)
        })
    }
}
