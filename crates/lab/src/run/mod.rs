//! Every run of an experiment, on all cores; what was done before is skipped, what fails is said
//! and does not stop the rest.

mod execute;
mod failure;
mod progress;

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;

pub use execute::{Simulate, execute, execute_with, selected};
pub use failure::{Problem, RunFailure};
pub use progress::{Progress, work, work_of_case};

use crate::scenario::Run;
use crate::store::{Row, StoreError};

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub struct ExecuteOptions<'a> {
    /// Runs at a time, each on a thread of its own.
    pub jobs: NonZeroUsize,
    /// `(i, n)`: only the i-th of n parts of the runs, i from 1.
    pub shard: Option<(u32, u32)>,
    /// Only this case and repeat.
    pub only: Option<(usize, u32)>,
    /// When it becomes true, no more runs are begun; those that run are finished and kept.
    pub stop: &'a AtomicBool,
}

/// Sees an experiment being run. Every method is called from the thread that called [`execute`].
pub trait Watcher {
    /// It begins.
    fn started(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// A run is finished and its row kept; it took `wall`.
    fn finished(&mut self, run: Run, row: &Row, wall: Duration, progress: &Progress) {
        let _ = (run, row, wall, progress);
    }

    /// A run brought no row.
    fn failed(&mut self, failure: &RunFailure, progress: &Progress) {
        let _ = (failure, progress);
    }

    /// Time passes; several times a second.
    fn waiting(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

/// Nobody watches.
impl Watcher for () {}

/// What became of an experiment.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs that were asked for.
    pub runs: usize,
    /// Of these, those that had been done before.
    pub before: usize,
    /// Those that were finished now.
    pub finished: usize,
    /// Those that failed.
    pub failures: Vec<RunFailure>,
    /// True if runs were left because of [`ExecuteOptions::stop`].
    pub stopped: bool,
    /// How long it took.
    pub wall: Duration,
    /// Virtual seconds simulated now.
    pub simulated_s: f64,
}

/// An experiment that could not be run on.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// Rows can't be kept. Those that were, are.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such part.
    #[error("there is no shard {0}/{1}: write i/n with i from 1 to n")]
    Shard(u32, u32),
    /// There is no such run.
    #[error("there is no run {0}-{1}: there are cases 0 to {2} and repeats 0 to {3}")]
    Only(usize, u32, usize, u32),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
