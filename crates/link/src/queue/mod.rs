//! The queue in front of the transmitter: limits, disciplines, ECN marks, statistics.
//!
//! A packet is counted completely from its acceptance until its last bit was sent: the packet in
//! service is part of the queue, for the limit, the thresholds and the statistics alike.
//!
//! There are two kinds of queue. Where every accepted packet departs in the order of arrival, its
//! departure is known at once, and only departure times are stored ([`drop_tail`]). Disciplines
//! that decide at dequeue store the packets themselves ([`waiting`]). The disciplines' control
//! loops are plain structs, independent of links and packets.

mod backlog;
mod buffer;
mod codel;
mod delay;
mod discipline;
mod drop_tail;
mod dual_pi2;
mod fq_codel;
mod red;
mod state;
mod stats;
mod text;
mod waiting;

pub use self::buffer::{Buffer, EcnThreshold};
pub use self::codel::CoDelConfig;
pub use self::delay::DelayStats;
pub use self::discipline::{QueueConfigError, QueueDiscipline};
pub use self::dual_pi2::{DualPi2Config, DualQueueScheduler};
pub use self::fq_codel::FqCoDelConfig;
pub use self::red::{RedConfig, RedThreshold};
pub use self::state::{AqmState, DualPi2State, DualQueueState};
pub use self::stats::QueueStats;

pub(crate) use self::backlog::Waiting;
pub(crate) use self::buffer::Limit;
pub(crate) use self::drop_tail::DropTail;
pub(crate) use self::red::{Red, Verdict as RedVerdict};
pub(crate) use self::waiting::{Admission, Discipline, WaitingQueue};
