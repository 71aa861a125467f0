//! What a viewer sees, told from when frames are complete. Three models, each for what is compared
//! with it:
//!
//! - [`LivePlayer`]: live streaming with a play-out buffer. Reports start-up time, freezes, latency.
//! - [`DeadlineMeter`]: conversations and games, where a frame counts only within a deadline.
//! - [`FrameDisplay`]: frames shown as soon as they can be, freezes by the rule of WebRTC's statistics.
//!
//! Models are told what happens and never ask a clock; nothing is decoded.

mod deadline;
mod display;
mod freezes;
mod live;

pub use deadline::{DeadlineMeter, DeadlineReport};
pub use display::{DisplayReport, FrameDisplay};
pub use freezes::Freezes;
pub use live::{LiveConfig, LivePlayer, LiveReport, PlayerState};
