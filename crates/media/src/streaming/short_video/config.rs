//! Settings of the short-video player.

use std::time::Duration;

/// Settings of a [`ShortVideoPlayer`](super::ShortVideoPlayer). The published sources give no values;
/// all defaults are choices of this project.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShortVideoConfig {
    /// Bytes per range request, at least 1024. Default 256 KiB.
    pub request_bytes: u64,
    /// Requests under way at once, at least 1. Default 3.
    pub parallel: usize,
    /// Play time, requested and not yet played, from which on nothing more of a video is requested.
    /// Default 10 s.
    pub ahead: Duration,
    /// Number of following videos whose first frames are requested in advance, when nothing of the
    /// video being watched is to be requested. Default 0.
    pub preload: usize,
    /// Buffered play time at which playback starts; zero: with the first frame. Default zero.
    pub start: Duration,
    /// Buffered play time at which it continues after a stall. Default 500 ms.
    pub resume: Duration,
    /// Wait without a moving picture after which a viewer goes on to the next video; `None`: viewers
    /// always wait. Default `None`, so that waiting times are not cut off.
    pub give_up_after: Option<Duration>,
}

impl Default for ShortVideoConfig {
    fn default() -> Self {
        Self {
            request_bytes: 256 << 10,
            parallel: 3,
            ahead: Duration::from_secs(10),
            preload: 0,
            start: Duration::ZERO,
            resume: Duration::from_millis(500),
            give_up_after: None,
        }
    }
}
