//! One emulated network link, sans-I/O.
//!
//! A [`Link`] carries datagrams in one direction. Each is processed in this order:
//!
//! 1. **MTU**: datagrams that are too large are dropped.
//! 2. **Queue**: a limit in bytes, packets or bandwidth-delay products, and a [`QueueDiscipline`]
//!    that drops, marks and orders datagrams; by default drop-tail, which marks ECN-capable
//!    datagrams that find the queue above a threshold.
//! 3. **Serialisation**: at a constant rate, at the rates of a [`Trace`], or at once. Departure
//!    times are computed, not stepped: they are exact to the nanosecond.
//! 4. **Loss**, after the queue: a lost packet has used the link.
//! 5. **Corruption, duplication, propagation delay, jitter, reordering.**
//!
//! Time is an argument and all randomness comes from a seed, so the same calls give the same
//! results, bit for bit, in a simulator and behind a real socket. Every impairment has a separate
//! random stream and draws for every packet that leaves the queue: enabling one doesn't change which
//! packets the others affect.
//!
//! Faults that begin and end while the link is in use are a [`LinkCondition`].
//!
//! No I/O, no files, no topology: the caller connects links to senders and receivers.
//!
//! ```
//! use std::time::Duration;
//! use swiftwater_link::{Link, LinkConfig, Packet};
//! use swiftwater_units::{Bandwidth, Instant};
//!
//! let config = LinkConfig::default()
//!     .rate(Bandwidth::from_mbps(10))
//!     .delay(Duration::from_millis(20));
//! let mut link = Link::new(config, 1, Instant::ZERO)?;
//! link.enqueue(Instant::ZERO, Packet::new(vec![0u8; 1222]));
//! // 1222 + 28 bytes at 10 Mbit/s take 1 ms.
//! assert_eq!(link.next_event(), Some(Instant::from_millis(21)));
//! assert!(link.poll(Instant::from_millis(20)).is_none());
//! assert!(link.poll(Instant::from_millis(21)).is_some());
//! # Ok::<(), swiftwater_link::LinkConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod condition;
mod config;
mod counters;
mod gilbert;
mod impairments;
mod link;
mod loss;
mod packet;
mod parse;
mod propagation;
mod queue;
mod random;
mod trace;
mod transmitter;

pub use condition::LinkCondition;
pub use config::{Jitter, LinkConfig, LinkConfigError, Rate, Reorder, ReorderBy, TraceUse};
pub use counters::{Counters, Tally};
pub use link::{DropReason, Dropped, Link};
pub use loss::LossModel;
pub use packet::{Ecn, Packet, Payload, flow_key};
pub use queue::{
    AqmState, Buffer, CoDelConfig, DelayStats, DualPi2Config, DualPi2State, DualQueueScheduler,
    DualQueueState, EcnThreshold, FqCoDelConfig, QueueConfigError, QueueDiscipline, QueueStats,
    RedConfig, RedThreshold,
};
pub use swiftwater_units::text::{ParseError, parse_duration, parse_probability, parse_rate};
pub use trace::{Trace, TraceError, TraceSample};
