//! Congestion controllers and the samples they are fed.
//!
//! The transport owns everything that is *measurement*: bytes in flight, round-trip times,
//! delivery-rate samples, rounds, loss episodes, application-limited marks, ECN validation, the
//! pacer. A [`Controller`] owns only *policy*: it turns those samples into a window and, if it
//! wants, a pacing rate. It never sees a frame, a stream, a packet or another path, reads no clock,
//! and draws randomness only from the generator in [`Env`].
//!
//! Inside one ACK the transport calls, each at most once and in this order: `on_loss`, `on_ce`,
//! `on_spurious`, `on_ack`; the pacer then re-reads [`Controller::pacing`].

#![forbid(unsafe_code)]

mod controller;
mod sample;

pub use controller::{Controller, ControllerFactory, Env, Pacing, Snapshot};
pub use sample::{
    AckBatch, EcnBatch, EcnCounts, EpisodeId, LossBatch, LossCause, LostPacket, RateSample, Round,
    RttView, SentInfo,
};
