//! Packet schedulers, one file each. That of Chorus is in [`chorus`](crate::chorus), their names are in
//! [`SchedulerCatalogue`](crate::SchedulerCatalogue).
//!
//! | name | the next datagram goes to | waits although a path has room |
//! |---|---|---|
//! | `first-path` | the first path | – |
//! | `min-rtt` | the path with the least RTT, by performance class | never |
//! | `backup` | the preferred path, another only while that fails | while the preferred one has no room |
//! | `round-robin` | all paths by turns | never |
//! | `weighted` | the path on which it arrives first, so that all finish together | at the end of the data |
//! | `ecf` | the path with the least RTT | while that completes the data earlier |
//! | `blest` | the path with the least RTT | while a slow path would block the send window |
//! | `chorus` | each path its part of a response of known size; else the least RTT | for a path with its part to send |
//! | `chorus+` | as `weighted`, all of a response of known size counted | at the end of the data |
//! | `redundant` | the path for which copies wait, else the one with the least RTT | never |
//!
//! Which paths may carry data at all is the same for all but the first and `backup`: see
//! [`EligibilityConfig`] and [`PathClassConfig`]. No decision depends on the order in which paths were
//! opened, unless their views are equal.

mod backup;
pub(crate) mod batch;
mod blest;
mod classes;
mod ecf;
pub(crate) mod eligibility;
mod fast_first;
mod finish_time;
mod loss_meter;
pub(crate) mod min_rtt;
pub(crate) mod per_path;
mod rate_estimate;
mod redundant;
mod round_robin;
pub(crate) mod waiting;
mod weighted;

pub use backup::{Backup, BackupConfig};
pub use blest::{Blest, BlestConfig, BlockingEstimation};
pub use classes::{PathClass, PathClassConfig};
pub use ecf::{EarliestCompletion, Ecf, EcfConfig};
pub use eligibility::{EligibilityConfig, StandbyUse};
pub use fast_first::{FastFirst, FastFirstConfig};
pub use finish_time::{PathCapacity, finish_time};
pub use min_rtt::{MinRtt, MinRttConfig};
pub use redundant::{RedundantScheduler, RedundantSchedulerConfig};
pub use round_robin::{RoundRobin, RoundRobinConfig};
pub use weighted::{Weighted, WeightedConfig};

use self::waiting::{blocked, has_room, wait_for};

use std::fmt;
use std::sync::Arc;

use swiftwater_quic::policy::{Scheduler, SinglePath};
use swiftwater_tunable::{MadeFrom, Parameter, ParameterError, Tunable};

/// Makes schedulers of one kind. Implemented by their configuration.
pub trait SchedulerFactory: Send + Sync + fmt::Debug {
    /// One for a new connection.
    fn scheduler(&self) -> Box<dyn Scheduler>;
}

/// The first path, always: what a connection without multipath needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstPath;

impl SchedulerFactory for FirstPath {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }
}

impl Tunable for FirstPath {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn set(&mut self, name: &str, _value: &str) -> Result<(), ParameterError> {
        Err(ParameterError::none(name))
    }
}

impl<C: SchedulerFactory + 'static> MadeFrom<C> for dyn SchedulerFactory {
    fn made_from(config: C) -> Arc<Self> {
        Arc::new(config)
    }
}
