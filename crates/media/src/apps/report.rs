//! Results of a simulated session.

use std::time::Duration;

use swiftwater_link::Counters;

use crate::cost::Cost;
use crate::player::{DeadlineReport, DisplayReport, LiveReport};
use crate::session::{ReceiverStats, Recovery, SenderStats};

/// Mean, percentiles (by nearest rank) and maximum of a set of durations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Latencies {
    /// Number of values.
    pub count: u64,
    /// Mean; zero without values.
    pub mean: Duration,
    /// The smallest value that at least half of them don't exceed; zero without values.
    pub p50: Duration,
    /// The smallest value that at least 95 % of them don't exceed; zero without values.
    pub p95: Duration,
    /// The smallest value that at least 99 % of them don't exceed; zero without values.
    pub p99: Duration,
    /// The largest; zero without values.
    pub max: Duration,
}

impl Latencies {
    /// Summarises these durations.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        let count = times.len();
        let Some(max) = times.last() else {
            return Self::default();
        };
        let total: Duration = times.iter().sum();
        let at = |percent: usize| times[(count * percent).div_ceil(100) - 1];
        Self {
            count: count as u64,
            mean: total.div_f64(count as f64),
            p50: at(50),
            p95: at(95),
            p99: at(99),
            max: *max,
        }
    }
}

/// Results of a simulated session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionReport {
    /// Frames encoded within the duration of the run.
    pub frames: u64,
    /// Frames that were complete at the receiver in the end, in time or not.
    pub completed: u64,
    /// Deadline misses; `None` in sessions without a deadline.
    pub deadline: Option<DeadlineReport>,
    /// Results of a display without a buffer.
    pub display: DisplayReport,
    /// Results of a live player with a buffer. It plays frames in order and can't skip a missing
    /// one, so it is only meaningful for sessions without a deadline.
    pub live: LiveReport,
    /// Recovery latencies of data whose first retransmission was lost (the AutoRec paper's
    /// measure).
    pub recovery_latency: Latencies,
    /// Times from encoding to completion, of completed frames.
    pub frame_delay: Latencies,
    /// Bytes sent by purpose.
    pub cost: Cost,
    /// The sender's statistics, with every recovery.
    pub sender: SenderStats,
    /// The receiver's statistics.
    pub receiver: ReceiverStats,
    /// Counters of the link to the receiver.
    pub forward: Counters,
    /// Counters of the reverse link.
    pub backward: Counters,
}

impl SessionReport {
    /// Frames that missed their deadline; without a deadline, frames never completed.
    pub fn missed(&self) -> u64 {
        match &self.deadline {
            Some(deadline) => deadline.missed,
            None => self.frames.saturating_sub(self.completed),
        }
    }

    /// Deadline miss rate over the run, 0 to 1; without a deadline, the share never completed.
    pub fn dmr(&self) -> f64 {
        match &self.deadline {
            Some(deadline) => deadline.miss_rate(),
            None => self.missed() as f64 / self.frames.max(1) as f64,
        }
    }

    /// Deadline miss rate as computed by Hairpin's scripts; 0 without a deadline.
    pub fn dmr_per_second(&self) -> f64 {
        self.deadline.map_or(0.0, |deadline| deadline.per_second)
    }

    /// Share of lost data whose recovery took another detection time or longer: the AutoRec paper's
    /// recovery deterioration rate. 0 without losses. Each data range is compared with its own
    /// detection time; data that never arrived count as deteriorated.
    pub fn deterioration_rate(&self) -> f64 {
        let recoveries = &self.sender.recoveries;
        let lost = self.sender.lost_data;
        if lost == 0 {
            return 0.0;
        }
        let bad = recoveries.iter().filter(|it| it.is_deteriorated()).count() as u64;
        let never = lost.saturating_sub(recoveries.len() as u64);
        (bad + never) as f64 / lost as f64
    }

    /// Share of packets that the sender declared lost, without spurious losses; 0 without packets.
    pub fn loss_rate(&self) -> f64 {
        let lost = self
            .sender
            .packets_lost
            .saturating_sub(self.sender.spurious_losses);
        lost as f64 / self.sender.packets_sent.max(1) as f64
    }

    pub(super) fn repeated(recoveries: &[Recovery]) -> impl Iterator<Item = Duration> + '_ {
        let repeated = recoveries.iter().filter(|it| it.is_repeated());
        repeated.filter_map(|it| it.latency)
    }
}
