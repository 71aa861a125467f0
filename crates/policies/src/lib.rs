//! Packet schedulers, re-injectors, loss judges and feedback policies, one file or folder per system.
//!
//! The seams, their views and the behaviour of the RFCs live in `swiftwater_quic::policy`; here live
//! the systems that fill the seams, and the names by which users select them ([`by_name`],
//! [`ReinjectorCatalogue`], [`SchedulerCatalogue`], [`LossJudgeCatalogue`]). [`Policies`] puts one of
//! each together for a connection. A policy decides on plain values and never touches the connection;
//! it reads no clock, and what randomness it has comes from a seed among its parameters.
//!
//! [`testkit`] drives a scheduler or re-injector over scripted paths, without a connection.

#![forbid(unsafe_code)]

mod arrivals;
pub mod art;
pub mod autorec;
pub mod autorec_plus;
mod bundle;
pub mod chorus;
pub mod congestion_guard;
mod due_queue;
pub mod failover;
pub mod feedback;
mod feedback_catalogue;
mod loss_judge_catalogue;
pub mod loss_judges;
mod path_silence;
mod redundant_copies;
mod reinjector_factory;
mod reinjectors;
mod scheduler_catalogue;
pub mod schedulers;
mod tail_copies;
pub mod tecc;
pub mod testkit;
pub mod xlink;

pub use art::{Art, ArtConfig};
pub use autorec::{AutoRec, AutoRecConfig};
pub use autorec_plus::{AutoRecPlus, AutoRecPlusConfig};
pub use bundle::Policies;
pub use chorus::{ChorusFeedbackConfig, ChorusReinjectorConfig, ChorusSchedulerConfig};
pub use congestion_guard::{CongestionGuard, CongestionGuardConfig, CopyLimit};
pub use due_queue::DueQueue;
pub use failover::{Failover, FailoverConfig};
pub use feedback::{FeedbackFactory, PlayerFeedback, PlayerFeedbackConfig};
pub use feedback_catalogue::FeedbackCatalogue;
pub use loss_judge_catalogue::LossJudgeCatalogue;
pub use loss_judges::LossJudgeFactory;
pub use path_silence::tolerated_silence;
pub use redundant_copies::{RedundantCopies, RedundantCopiesConfig};
pub use reinjector_factory::{Arq, ReinjectorFactory};
pub use reinjectors::{ReinjectorCatalogue, by_name, names, parameters, reinjector_by_name};
pub use scheduler_catalogue::{SchedulerCatalogue, scheduler_by_name};
pub use schedulers::SchedulerFactory;
pub use swiftwater_tunable::UnknownEntry;
pub use tail_copies::{TailCopies, TailCopiesConfig};
pub use tecc::{TeccClientFeedbackConfig, TeccFeedbackConfig, TeccLossJudgeConfig};
pub use xlink::{Xlink, XlinkConfig};
