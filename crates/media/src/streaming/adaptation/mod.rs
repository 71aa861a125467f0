//! Bitrate adaptation: at which level to request the next chunk.
//!
//! [`Mpc`], [`RateRule`] and [`Bola`]. Without a prediction all of them choose the lowest level.

mod bola;
mod kind;
mod mpc;
mod rate;

use std::fmt;
use std::time::Duration;

use swiftwater_units::Bandwidth;

use super::ladder::Ladder;
use super::video::Chunk;

pub use bola::Bola;
pub use kind::AdaptationKind;
pub use mpc::{MAX_HORIZON, Mpc};
pub use rate::RateRule;

/// What is there to decide with, before a request.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The bitrates.
    pub ladder: &'a Ladder,
    /// The chunk to be requested and those after it, as many as [`Adaptation::lookahead`] or as the
    /// video still has; at least one.
    pub upcoming: &'a [&'a Chunk],
    /// Level of the chunk before; `None` for the first one.
    pub previous: Option<usize>,
    /// Buffered play time.
    pub buffered: Duration,
    /// Buffered play time from which on nothing is requested.
    pub maximum: Duration,
    /// Predicted throughput of the next chunk, if there is a prediction.
    pub predicted: Option<Bandwidth>,
}

/// An algorithm of bitrate adaptation.
pub trait Adaptation: fmt::Debug + Send {
    /// Number of upcoming chunks that it looks at, at least 1.
    fn lookahead(&self) -> usize {
        1
    }

    /// The level to request, below the number of levels.
    fn choose(&mut self, situation: &Situation<'_>) -> usize;
}
