//! When a proxy reports: once per period while payloads pass, at once when something urgent happens, and never more
//! often than every 5 ms.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::repair::RepairStats;
use crate::report::{ReportFlags, TunnelReport, period};

/// A rate below this share of the last reported one is urgent.
const DROP: f64 = 0.7;

/// Parameters of a [`Reporter`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReporterConfig {
    /// Least time between two reports; default 5 ms.
    pub min_interval: Duration,
    /// Bytes of two full payloads, the least queue that is left standing; default 2,400. Otherwise it is what leaves in a period
    /// between reports; twice as much is urgent.
    pub least_queue_target: ByteCount,
}

impl Default for ReporterConfig {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_millis(5),
            least_queue_target: ByteCount::new(2_400),
        }
    }
}

/// What a proxy knows of a tunnel and of the connection that carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TunnelState {
    /// Rate that congestion control grants the tunnel.
    pub rate: Bandwidth,
    /// Bytes acknowledged since the tunnel began.
    pub acknowledged: ByteCount,
    /// Bytes that wait to be sent.
    pub queue: ByteCount,
    /// For how long the oldest of them has waited.
    pub sojourn: Duration,
    /// `smoothed_rtt` between proxy and client.
    pub smoothed_rtt: Duration,
    /// `rttvar` between proxy and client.
    pub rtt_var: Duration,
    /// `min_rtt` between proxy and client.
    pub min_rtt: Duration,
    /// See [`TunnelReport::next_number`].
    pub next_number: u64,
    /// See [`TunnelReport::settled`].
    pub settled: u64,
    /// Counters of repair.
    pub repair: RepairStats,
    /// See [`ReportFlags::app_limited`].
    pub app_limited: bool,
    /// See [`ReportFlags::startup`].
    pub startup: bool,
    /// Congestion events of the connection so far.
    pub congestion_events: u64,
    /// Payloads that found no room so far.
    pub overflows: u64,
}

/// The last report.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    state: TunnelState,
    period: Duration,
}

/// Decides when the proxy reports, and makes the reports.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    config: ReporterConfig,
    began: Instant,
    last: Option<Sent>,
    next_sequence: u64,
    /// The smallest unsettled number at the last call, and since when it is that.
    settled: (u64, Instant),
    is_urgent: bool,
    /// There is something new to report.
    is_changed: bool,
}

impl Reporter {
    /// The reporter of a tunnel that began `now`.
    pub fn new(now: Instant, config: ReporterConfig) -> Self {
        Self {
            config,
            began: now,
            last: None,
            next_sequence: 0,
            settled: (0, now),
            is_urgent: false,
            is_changed: false,
        }
    }

    /// Takes the present state, after payloads came or their fates, and when [`Reporter::next_deadline`] has come; a
    /// report if it is time for one.
    pub fn poll(&mut self, now: Instant, state: &TunnelState) -> Option<TunnelReport> {
        self.observe(now, state);
        if self.next_deadline().is_none_or(|at| at > now) {
            return None;
        }
        let report = self.report(now, state);
        self.last = Some(Sent {
            at: now,
            state: *state,
            period: period(state.smoothed_rtt),
        });
        self.next_sequence += 1;
        (self.is_changed, self.is_urgent) = (false, false);
        Some(report)
    }

    /// When the next report is due; `None` while there is nothing new to report.
    pub fn next_deadline(&self) -> Option<Instant> {
        let Some(last) = self.last else {
            return self.is_changed.then_some(self.began);
        };
        let wait = if self.is_urgent {
            self.config.min_interval
        } else {
            last.period.max(self.config.min_interval)
        };
        self.is_changed.then(|| last.at + wait)
    }

    fn observe(&mut self, now: Instant, state: &TunnelState) {
        let passed = |before: &TunnelState| {
            before.next_number != state.next_number
                || before.settled != state.settled
                || before.queue != state.queue
                || before.repair != state.repair
        };
        let Some(last) = self.last else {
            self.is_changed = state.next_number > 0;
            return;
        };
        self.is_changed |= passed(&last.state);
        let fell = (state.rate.as_bps() as f64) < last.state.rate.as_bps() as f64 * DROP;
        let limit = self.queue_target(&last).times(2);
        let crossed = last.state.queue <= limit && state.queue > limit;
        let gave_up = state.repair.abandoned > last.state.repair.abandoned;
        let (settled, since) = self.settled;
        let mut filled = false;
        if state.settled != settled {
            filled = now.saturating_since(since) >= last.period;
            self.settled = (state.settled, now);
        }
        self.is_urgent |= fell || crossed || gave_up || filled;
        self.is_changed |= self.is_urgent;
    }

    fn queue_target(&self, last: &Sent) -> ByteCount {
        let standing = ByteCount::new(last.state.rate.bytes_in(last.period));
        standing.max(self.config.least_queue_target)
    }

    fn report(&self, now: Instant, state: &TunnelState) -> TunnelReport {
        let last = self.last.as_ref();
        let (before, since) = last.map_or((TunnelState::default(), self.began), |last| {
            (last.state, last.at)
        });
        let goodput = state.acknowledged.saturating_sub(before.acknowledged);
        let interval = now.saturating_since(since);
        let fell = (state.rate.as_bps() as f64) < before.rate.as_bps() as f64 * DROP;
        TunnelReport {
            flags: ReportFlags {
                app_limited: state.app_limited,
                bandwidth_drop: fell,
                congestion: state.congestion_events > before.congestion_events,
                startup: state.startup,
                overflow: state.overflows > before.overflows,
            },
            sequence: self.next_sequence,
            time: now.saturating_since(self.began),
            rate: state.rate,
            goodput: if interval.is_zero() {
                Bandwidth::ZERO
            } else {
                Bandwidth::from_transfer(goodput.get(), interval)
            },
            queue: state.queue,
            sojourn: state.sojourn,
            smoothed_rtt: state.smoothed_rtt,
            rtt_var: state.rtt_var,
            min_rtt: state.min_rtt,
            next_number: state.next_number,
            settled: state.settled,
            lost: state.repair.lost,
            resent: state.repair.resent,
            abandoned: state.repair.abandoned,
        }
    }
}
