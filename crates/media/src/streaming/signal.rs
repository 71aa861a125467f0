//! What a player reports about its buffer to the sender.

use std::time::Duration;

use swiftwater_units::Bandwidth;

/// State of a player, as XLINK's client reports it (SIGCOMM 2021).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerSignal {
    /// Bytes buffered and not yet played.
    pub cached_bytes: u64,
    /// Frames buffered and not yet shown; a partial one isn't counted.
    pub cached_frames: u64,
    /// Bitrate of the video being played.
    pub bitrate: Bandwidth,
    /// Frames per second; 0 if unknown.
    pub fps: f64,
    /// Whether playback is stalled, or hasn't started.
    pub stalled: bool,
}

impl PlayerSignal {
    /// Buffered play time: the smaller of frames over frame rate and bits over bitrate, of those that
    /// can be computed; `None` if neither can.
    pub fn play_time(&self) -> Option<Duration> {
        let seconds = |amount: f64, rate: f64| {
            (rate > 0.0)
                .then(|| Duration::try_from_secs_f64(amount / rate).unwrap_or(Duration::MAX))
        };
        let frames = seconds(self.cached_frames as f64, self.fps);
        let bits = self.cached_bytes as f64 * 8.0;
        let bytes = seconds(bits, self.bitrate.as_bps() as f64);
        match (frames, bytes) {
            (Some(frames), Some(bytes)) => Some(frames.min(bytes)),
            (frames, bytes) => frames.or(bytes),
        }
    }
}
