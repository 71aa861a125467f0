//! One run: builds the network of a [`Setup`], advances time, measures.
//!
//! - [`measures`](mod@measures): the measures and their definitions.
//! - The rest is private: routers, links and hosts (`topology`), the transport's settings (`transport`), tunnels (`tunnel`), live
//!   video (`video`, and `session` with a driver of its own), video on demand (`streaming`), browsing (`web`, with a network of its
//!   own), the applications of a group of flows (`group`, `member`, `arrivals`), the sampling times of a run (`run`), the sampled
//!   data (`sampling`) and the observed events (`recovery_log`).
//!
//! A run is only observed: sampling and recording never change which packets are sent.

mod arrivals;
mod capacity;
mod group;
mod link_changes;
pub mod measures;
mod member;
mod path_meter;
mod recovery_log;
mod run;
mod sampling;
mod session;
mod streaming;
mod topology;
mod transport;
mod tunnel;
mod video;
mod web;

use swiftwater_media::apps::SimulateError;
use swiftwater_media::protection::UnknownPolicy;
use swiftwater_media::source::SourceError;
use swiftwater_media::streaming::{ShortVideoError, VideoError};
use swiftwater_sim::SimError;
use thiserror::Error;

pub(crate) use group::Group;
pub use measures::FeatureRow;
pub(crate) use measures::is_time_of_an_event;
pub use web::{LOSSES_PER_MILLE, RATES_KBPS, RTTS_MS, web_features};

use crate::record::{Sample, Series};
use crate::scenario::Setup;

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// One value for each name of [`measures`](fn@measures), in that order; `None` without a value,
    /// such as the mean completion time of no transfer.
    pub measures: Vec<Option<f64>>,
    /// Time series, if the setup records any; empty otherwise.
    pub series: Series,
    /// Completed and uncompleted transfers, viewers' starts; those that started before the end of
    /// the warm-up are excluded.
    pub samples: Vec<Sample>,
    /// Virtual seconds simulated.
    pub simulated_s: f64,
    /// Tasks processed by the simulator.
    pub tasks: u64,
}

/// Why a run could not be built.
#[derive(Debug, Error)]
pub enum RunError {
    /// The simulator rejected it.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The frames of a video could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The scheme of a session can't be created.
    #[error(transparent)]
    Scheme(#[from] UnknownPolicy),
    /// The chunks of a video can't be generated.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// The videos of a feed can't be generated.
    #[error(transparent)]
    Feed(#[from] ShortVideoError),
    /// A session is invalid.
    #[error(transparent)]
    Session(#[from] SimulateError),
}

impl RunError {
    pub(crate) fn out_of_range(what: &'static str, why: &'static str) -> Self {
        Self::Sim(SimError::OutOfRange { what, why })
    }
}

/// Names of the measures of a run of `setup`, in order: `group.measure`, `link.measure`, and those
/// of the whole run without a dot. Definitions: [`measures`](mod@measures).
pub fn measures(setup: &Setup) -> Vec<String> {
    measures::names(setup)
}

/// Runs `setup` with `seed`. The same arguments give the same outcome, bit for bit, with the null
/// cipher.
///
/// The run ends within 10 ms of the time at which it may end early ([`Setup::duration`]).
pub fn simulate(setup: &Setup, seed: u64) -> Result<RunOutcome, RunError> {
    if let Some(session) = session::of(setup) {
        return session::run(setup, session, seed);
    }
    match web::of(setup) {
        Some(browsing) => web::run(setup, browsing, seed),
        None => Ok(run::Run::new(setup, seed)?.finish()),
    }
}
