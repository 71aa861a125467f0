//! Video: frame sources, loss protection over lossy networks, players, and models of the viewer.
//!
//! - [`Frame`] and [`FrameSource`]: encoded frames as sizes, kinds and times, from a generator or
//!   from a real encode ([`source`]).
//! - [`player`]: three models of playback quality; [`Cost`]: the cost of protection in bytes.
//! - [`session`]: a frame-level sender and receiver over datagrams, with the protection schemes of
//!   [`protection`].
//! - [`streaming`]: players of video on demand, with bitrate adaptation; [`presentation`]: what they play, from
//!   playlists and manifests.
//! - [`apps`]: sessions over simulated links in virtual time.
//!
//! ```
//! use swiftwater_media::FrameSource;
//! use swiftwater_media::player::{LiveConfig, LivePlayer};
//! use swiftwater_media::source::SourceSpec;
//! use swiftwater_units::Instant;
//! use std::time::Duration;
//!
//! // Ten seconds of the shipped video, at 2 Mbit/s, over a network that takes 80 ms per frame but
//! // stops for two seconds once.
//! let spec: SourceSpec = "sample,rate=2mbit,for=10s".parse()?;
//! let mut source = spec.open(7)?;
//! let mut player = LivePlayer::new(LiveConfig::default(), Instant::ZERO, Instant::ZERO);
//! let mut now = Instant::ZERO;
//! while let Some(frame) = source.next_frame() {
//!     let stop = Duration::from_secs(if frame.index == 100 { 2 } else { 0 });
//!     now = now.max(Instant::ZERO + frame.at + Duration::from_millis(80) + stop);
//!     player.on_frame(now, &frame);
//! }
//! player.on_end(now);
//! let seen = player.report(now + Duration::from_secs(60));
//! assert_eq!(seen.freezes.count, 1);
//! assert_eq!(seen.played, Duration::from_secs(10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pictures are never decoded: for delivery, a frame consists of its size, kind and time. There are
//! no clocks, sockets or threads; time and randomness are arguments, and the same seed gives the same
//! run, bit for bit.

#![forbid(unsafe_code)]

pub mod apps;
mod cost;
mod frame;
pub mod player;
pub mod presentation;
pub mod protection;
pub mod session;
pub mod source;
pub mod streaming;

pub use cost::Cost;
pub use frame::{Frame, FrameKind};
pub use source::FrameSource;
