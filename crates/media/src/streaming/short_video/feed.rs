//! A sequence of short videos and how long each is watched.

use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_units::Bandwidth;

use super::video::{MAX_SHORT_VIDEO, ShortVideo};
use crate::streaming::error::ShortVideoError;

/// A video, and when its viewer swipes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Viewing {
    /// The video.
    pub video: Arc<ShortVideo>,
    /// Play time after which the viewer goes on to the next video; `None`: at the end.
    pub watch: Option<Duration>,
}

/// Distribution of a generated feed. All values are choices, in the range of product videos.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedSpec {
    /// Number of videos. Default 20.
    pub videos: usize,
    /// Shortest and longest video, uniform. Default 10 to 30 s.
    pub length: (Duration, Duration),
    /// Lowest and highest bitrate, uniform. Default 1.5 to 3 Mbit/s.
    pub rate: (Bandwidth, Bandwidth),
    /// Bytes of each first frame. Default 128 KiB.
    pub first_frame: u64,
    /// Frames per second. Default 25.
    pub fps: f64,
    /// Share of the videos that the viewer leaves early, 0 to 1; after a part of the play time that
    /// is uniform in 0 to 1. Default 0.5.
    pub swiped: f64,
}

impl Default for FeedSpec {
    fn default() -> Self {
        Self {
            videos: 20,
            length: (Duration::from_secs(10), Duration::from_secs(30)),
            rate: (Bandwidth::from_kbps(1500), Bandwidth::from_kbps(3000)),
            first_frame: 128 << 10,
            fps: 25.0,
            swiped: 0.5,
        }
    }
}

impl FeedSpec {
    /// A feed. The same `seed` gives the same one.
    pub fn generate(&self, seed: u64) -> Result<Vec<Viewing>, ShortVideoError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut unit = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut feed = Vec::new();
        for _ in 0..self.videos {
            // The same number of draws for each video, so that changing one setting doesn't change
            // the others' values.
            let (length, rate, swipes, part) = (unit(), unit(), unit(), unit());
            let limit = |length: Duration| length.min(2 * MAX_SHORT_VIDEO);
            let (shortest, longest) = (limit(self.length.0), limit(self.length.1));
            let length = shortest + longest.saturating_sub(shortest).mul_f64(length);
            let (lowest, highest) = self.rate;
            let range = highest.as_bps().saturating_sub(lowest.as_bps());
            let rate = Bandwidth::from_bps(lowest.as_bps() + (range as f64 * rate) as u64);
            let video = ShortVideo::constant(self.first_frame, rate, self.fps, length)?;
            let watch = (swipes < self.swiped).then(|| video.length().mul_f64(part));
            feed.push(Viewing {
                video: Arc::new(video),
                watch,
            });
        }
        Ok(feed)
    }
}
