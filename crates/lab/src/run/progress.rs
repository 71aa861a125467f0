//! Progress, and the estimated remaining time.
//!
//! Cost is proportional to the simulated packets: the work of a run is the capacity of its links, or
//! the amount that its flows have to send. The cost of a unit of work is estimated from finished
//! runs.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use swiftwater_link::LinkConfig;
use swiftwater_units::Bandwidth;

use crate::scenario::{App, FlowSpec, SessionSetup, Setup, VideoSpec};

/// Assumed capacity of links without a rate, bits per second: the rate is then determined by the
/// access links.
const UNLIMITED_BPS: f64 = 1e9;

/// Least rate at which seconds are counted, up to ten: there are timers and ACKs on the slowest
/// link, too.
const LEAST_BPS: f64 = 1e6;

/// Expected work of one run of a case, in relative units: Mbit carried over a link. No more than
/// the links can carry, nor than the flows have to send.
pub fn work_of_case(setup: &Setup) -> f64 {
    let seconds = setup.duration.as_secs_f64();
    let rate = |link: &LinkConfig| {
        link.rate
            .mean()
            .map_or(UNLIMITED_BPS, |rate| rate.as_bps() as f64)
    };
    let carried: f64 = setup.links.iter().map(|link| rate(&link.forward)).sum();
    let offered: f64 = setup
        .flows
        .iter()
        .map(|flow| offered_bits(flow, seconds) * flow.enter.abs_diff(flow.exit) as f64)
        .sum();
    (carried * seconds)
        .min(offered)
        .max(LEAST_BPS * seconds.min(10.0))
        / 1e6
}

/// For a video whose rate is only known when its file is read.
const UNKNOWN_VIDEO: Bandwidth = Bandwidth::from_mbps(4);

/// Bits that a group has to send in `seconds`; infinite if it sends as much as possible.
fn offered_bits(flow: &FlowSpec, seconds: f64) -> f64 {
    let count = f64::from(flow.count);
    match &flow.app {
        App::Bulk | App::Requests { .. } | App::OnOff { rate: None, .. } if flow.count > 0 => {
            f64::INFINITY
        }
        App::Bulk | App::Requests { .. } => 0.0,
        App::Transfer { bytes } => *bytes as f64 * 8.0 * count,
        App::ConstantRate { rate } | App::Live { rate, .. } => {
            rate.as_bps() as f64 * seconds * count
        }
        App::Video(VideoSpec { source, .. }) | App::Session(SessionSetup { source, .. }) => {
            let rate = source.mean_rate().unwrap_or(UNKNOWN_VIDEO);
            rate.as_bps() as f64 * seconds * count
        }
        // Pages of 310 kB, one in five seconds.
        App::Web(_) => 5e5 * seconds * count,
        App::ChunkedVideo(spec) => {
            let top = spec.ladder.rate(spec.ladder.top());
            top.as_bps() as f64 * seconds * count
        }
        App::ShortVideo(spec) => spec.feed.rate.1.as_bps() as f64 * seconds * count,
        App::OnOff { rate, .. } => rate.map_or(0.0, |rate| rate.as_bps() as f64) * seconds * count,
        App::Poisson {
            sizes,
            per_second,
            limit,
            ..
        } => {
            let transfers = per_second * seconds;
            let transfers = limit.map_or(transfers, |limit| transfers.min(limit as f64));
            sizes.mean() * 8.0 * transfers
        }
    }
}

/// Progress of an experiment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Runs requested.
    pub total: usize,
    /// Of these, those done before.
    pub before: usize,
    /// Those finished or failed now.
    pub ended: usize,
    /// Those failed now.
    pub failed: usize,
    /// Expected work of the runs that have not ended.
    pub work_left: f64,
    jobs: NonZeroUsize,
    work_done: f64,
    busy: Duration,
    last_end: Instant,
}

impl Progress {
    pub(super) fn new(total: usize, before: usize, work_left: f64, jobs: NonZeroUsize) -> Self {
        Self {
            total,
            before,
            ended: 0,
            failed: 0,
            work_left,
            jobs,
            work_done: 0.0,
            busy: Duration::ZERO,
            last_end: Instant::now(),
        }
    }

    pub(super) fn run_ended(&mut self, work: f64, wall: Duration) {
        self.ended += 1;
        self.work_left = (self.work_left - work).max(0.0);
        self.work_done += work;
        self.busy += wall;
        self.last_end = Instant::now();
    }

    /// Runs that need no further work.
    pub fn done(&self) -> usize {
        self.before + self.ended
    }

    /// Work per second of all jobs together; `None` before the end of the first run.
    pub fn speed(&self) -> Option<f64> {
        let busy = self.busy.as_secs_f64();
        (busy > 0.0 && self.work_done > 0.0).then(|| self.work_done / busy * self.jobs.get() as f64)
    }

    /// Time until the rest is done, and `more` work after it; `None` before the end of the first
    /// run.
    pub fn time_left(&self, more: f64) -> Option<Duration> {
        let seconds = (self.work_left + more) / self.speed()?;
        let left = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Some(left.saturating_sub(self.last_end.elapsed()))
    }
}
