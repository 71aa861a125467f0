//! Measures of live video: playback quality and cost.

use std::time::Duration;

use swiftwater_media::Cost;
use swiftwater_media::apps::Latencies;

use super::Column;
use super::facts::{GroupFacts, ratio};
use super::statistics::mean;

/// Playback results of one viewer in the measured time.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct VideoViewing {
    /// From the request to the first picture, of the whole run; `None` if there was none.
    pub(in crate::world) startup: Option<Duration>,
    /// Freezes that started.
    pub(in crate::world) freezes: u64,
    /// Time frozen.
    pub(in crate::world) frozen: Duration,
    /// Evaluated time, freezes included.
    pub(in crate::world) watched: Duration,
    /// Of the frames that were encoded; `None` without a deadline.
    pub(in crate::world) missed: Option<Missed>,
    /// From encoding to completion, of the frames encoded that are complete.
    pub(in crate::world) delays: Vec<Duration>,
    /// Frames abandoned, of the whole run.
    pub(in crate::world) abandoned: u64,
}

/// Frames that were not complete by their deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::world) struct Missed {
    /// Frames whose deadline has passed.
    pub(in crate::world) frames: u64,
    /// Those of them that were missed.
    pub(in crate::world) late: u64,
    /// The rate as computed by Hairpin's scripts, 0 to 1.
    pub(in crate::world) per_second: f64,
}

/// Of a group of flows.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct VideoFacts {
    pub(in crate::world) viewers: Vec<VideoViewing>,
    /// From encoding to completion, of all frames that are complete.
    pub(in crate::world) delays: Latencies,
    pub(in crate::world) cost: Cost,
}

impl VideoFacts {
    fn sum(&self, of: fn(&VideoViewing) -> Duration) -> f64 {
        self.viewers
            .iter()
            .map(|viewer| of(viewer).as_secs_f64())
            .sum()
    }

    fn watched(&self) -> f64 {
        self.sum(|viewer| viewer.watched)
    }

    fn frozen_share(&self) -> Option<f64> {
        ratio(self.sum(|viewer| viewer.frozen), self.watched())
    }

    fn missed(&self) -> impl Iterator<Item = Missed> {
        self.viewers.iter().filter_map(|viewer| viewer.missed)
    }

    fn delay_ms(&self, which: fn(Latencies) -> Duration) -> Option<f64> {
        (self.delays.count > 0).then(|| millis(which(self.delays)))
    }
}

/// Of groups with video.
pub(super) const VIDEO: &[Column<GroupFacts>] = &[
    ("startup_ms", |group| {
        let viewers = group.video.as_ref()?.viewers.iter();
        let startups: Vec<_> = viewers
            .filter_map(|viewer| viewer.startup.map(millis))
            .collect();
        mean(&startups)
    }),
    ("freezes_per_100s", |group| {
        let video = group.video.as_ref()?;
        let freezes: u64 = video.viewers.iter().map(|viewer| viewer.freezes).sum();
        ratio(freezes as f64 * 100.0, video.watched())
    }),
    ("frozen_ms_per_100s", |group| {
        Some(group.video.as_ref()?.frozen_share()? * 100e3)
    }),
    ("frozen_share", |group| group.video.as_ref()?.frozen_share()),
    ("dmr", |group| {
        let video = group.video.as_ref()?;
        let missed: u64 = video.missed().map(|each| each.late).sum();
        let frames: u64 = video.missed().map(|each| each.frames).sum();
        ratio(missed as f64, frames as f64)
    }),
    ("dmr_per_second", |group| {
        let rates = group.video.as_ref()?.missed();
        mean(&rates.map(|each| each.per_second).collect::<Vec<_>>())
    }),
    ("frames_abandoned", |group| {
        let viewers = group.video.as_ref()?.viewers.iter();
        Some(viewers.map(|viewer| viewer.abandoned).sum::<u64>() as f64)
    }),
    ("bwc", |group| {
        group.video.as_ref()?.cost.redundancy_over_source()
    }),
    ("bwc_literal", |group| {
        group.video.as_ref()?.cost.non_video_over_total()
    }),
    ("bwc_with_retransmissions", |group| {
        group.video.as_ref()?.cost.resent_over_source()
    }),
    ("frame_delay_p50_ms", |group| {
        group.video.as_ref()?.delay_ms(|of| of.p50)
    }),
    ("frame_delay_p95_ms", |group| {
        group.video.as_ref()?.delay_ms(|of| of.p95)
    }),
    ("frame_delay_p99_ms", |group| {
        group.video.as_ref()?.delay_ms(|of| of.p99)
    }),
    ("frame_delay_max_ms", |group| {
        group.video.as_ref()?.delay_ms(|of| of.max)
    }),
];

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
