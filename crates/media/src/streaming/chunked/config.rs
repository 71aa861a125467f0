//! Settings of the player.

use std::time::Duration;

use crate::streaming::buffer::BufferConfig;
use crate::streaming::qoe::QoeWeights;

/// Settings of a [`ChunkedPlayer`](super::ChunkedPlayer).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkedConfig {
    /// The play-out buffer.
    pub buffer: BufferConfig,
    /// A player with a full buffer looks for room at multiples of this time after the start of the
    /// session; zero: as soon as there is room. Default 500 ms.
    pub check_interval: Duration,
    /// When the viewer leaves, after the start of the session; `None`: at the end of the video.
    pub session: Option<Duration>,
    /// Whether the video starts again at its end; without `session` it then never ends.
    pub looped: bool,
    /// Wait after a failed request. Default 500 ms.
    pub retry_after: Duration,
    /// Whether a request is given up for one of the same chunk at a lower level if that is worth more, by the weights of the
    /// score: above all, if the answer would arrive long after the buffer is empty. Default false, as in Chorus' evaluation.
    pub abandon: bool,
    /// Frames per second, for [`PlayerSignal`](swiftwater_quic::policy::PlayerSignal); 0 if unknown.
    /// Default 24.
    pub fps: f64,
    /// Weights of the score.
    pub weights: QoeWeights,
}

impl Default for ChunkedConfig {
    /// The virtual player of Chorus' evaluation (MobiCom 2024), which plays the video once.
    fn default() -> Self {
        Self {
            buffer: BufferConfig::default(),
            check_interval: Duration::from_millis(500),
            session: None,
            looped: false,
            retry_after: Duration::from_millis(500),
            abandon: false,
            fps: 24.0,
            weights: QoeWeights::default(),
        }
    }
}

impl ChunkedConfig {
    /// The sessions of Chorus' evaluation: the video is played in a loop, and the viewer leaves after
    /// five minutes.
    pub fn chorus() -> Self {
        Self {
            session: Some(Duration::from_secs(300)),
            looped: true,
            ..Self::default()
        }
    }
}
