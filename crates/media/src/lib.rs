//! Live video: where frames come from, how they cross a lossy network, and what the viewer sees.
//!
//! - [`Frame`] and [`FrameSource`]: encoded frames as sizes, kinds and times, made by a generator or
//!   read from a real encode ([`source`]).
//! - [`player`]: what a viewer sees of a stream, by three models; [`Cost`]: what its protection costs.
//! - [`session`]: a frame-level sender and receiver over datagrams, with the protection schemes of
//!   [`protection`].
//! - [`apps`]: sessions over simulated links in virtual time.
//!
//! Pictures are never decoded here: for delivery, a frame is its size, its kind and its time. Nothing
//! here reads a clock, a socket or a thread; time and randomness are arguments, and the same seed
//! gives the same run, bit for bit.

#![forbid(unsafe_code)]

pub mod apps;
mod cost;
mod frame;
pub mod player;
pub mod protection;
pub mod session;
pub mod source;

pub use cost::Cost;
pub use frame::{Frame, FrameKind};
pub use source::FrameSource;
