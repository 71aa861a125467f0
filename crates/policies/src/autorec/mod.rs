//! AutoRec: replicas of lost data before the next loss is detected (arXiv 2511.22046v2).
//!
//! A retransmission may get lost too, and each further round costs a detection time. AutoRec sends
//! up to K replicas of data that were retransmitted and are not acknowledged: when there is nothing
//! else to send, or after a silence of `T_unit/(K + 1)`. K follows from loss rate, detection time and
//! three tolerances: recovery latency, redundancy cost, goodput reduction. The sender alone does
//! it; to the receiver a replica is a packet with known stream data.
//!
//! - [`LossModel`]: what K brings and costs, and the choice of K;
//! - [`RedundancyAdapter`]: measures, and decides once per interval;
//! - [`ReinjectionQueue`]: lost data by age;
//! - [`AutoRec`]: the re-injector; [`AutoRecConfig`]: its parameters and profiles.
//!
//! Loss detection, congestion control and pacing belong to the transport, which treats replicas as
//! any packet.

mod adapter;
mod config;
mod controller;
mod model;
mod queue;
mod spending;

pub use adapter::{Decision, RedundancyAdapter};
pub use config::{AutoRecConfig, MinGap, Watch};
pub use controller::AutoRec;
pub use model::{LevelChoice, LossModel, Tolerances};
pub use queue::ReinjectionQueue;
pub use spending::Spending;
