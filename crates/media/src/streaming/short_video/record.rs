//! What a session of short videos was like.

use std::time::Duration;

use crate::streaming::buffer::PlaybackReport;

/// Why a video was left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Departure {
    /// It was played to its end.
    Ended,
    /// The viewer had watched as much as intended.
    Swiped,
    /// The viewer had waited for too long.
    GaveUp,
}

/// A video that was left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VideoRecord {
    /// Position in the feed.
    pub video: usize,
    /// Why it was left.
    pub departure: Departure,
    /// Start, stalls, play time.
    pub playback: PlaybackReport,
    /// Bytes of it that arrived, those included that the viewer never saw.
    pub received: u64,
    /// Bytes of it that arrived and weren't played.
    pub unplayed: u64,
}

/// A range request that is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RangeRecord {
    /// Its number.
    pub id: u64,
    /// Position of its video in the feed.
    pub video: usize,
    /// From the request to its last byte: the request completion time.
    pub took: Duration,
}

/// Results of a session, over all videos left and the one being watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShortVideoReport {
    /// Times from the choice of a video to its first picture, of the videos that had one, in order.
    pub first_frames: Vec<Duration>,
    /// Videos that were left before a picture was shown.
    pub unseen: u64,
    /// Play time that was played.
    pub played: Duration,
    /// Time stalled.
    pub stalled: Duration,
    /// Number of stalls.
    pub stalls: u64,
    /// Bytes received.
    pub received: u64,
    /// Bytes received of videos that were left, and not played.
    pub unplayed: u64,
}

impl ShortVideoReport {
    /// Re-buffer rate: time stalled over time played (XLINK's measure); `None` if nothing was played.
    pub fn rebuffer_rate(&self) -> Option<f64> {
        let played = self.played.as_secs_f64();
        (played > 0.0).then(|| self.stalled.as_secs_f64() / played)
    }

    pub(super) fn add(&mut self, playback: &PlaybackReport, received: u64) {
        self.first_frames.extend(playback.start_time);
        self.played += playback.played;
        self.stalled += playback.stalls.total;
        self.stalls += playback.stalls.count;
        self.received += received;
    }
}
