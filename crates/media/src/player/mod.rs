//! Playback quality, computed from the times at which frames are complete. Three models, for
//! different applications:
//!
//! - [`LivePlayer`]: live streaming with a play-out buffer. Reports start-up time, freezes, latency.
//! - [`DeadlineMeter`]: video calls and games, where a frame must be complete within a deadline.
//! - [`FrameDisplay`]: frames shown as soon as possible, freezes by the rule of WebRTC's statistics.
//!
//! Models get events with their times and have no clock; nothing is decoded.

mod deadline;
mod display;
mod freezes;
mod live;

pub use deadline::{DeadlineMeter, DeadlineReport};
pub use display::{DisplayReport, FrameDisplay};
pub use freezes::Freezes;
pub use live::{LiveConfig, LivePlayer, LiveReport, PlayerState};
