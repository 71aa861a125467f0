//! Every run of an experiment, on all cores; finished runs are skipped, failures are reported and
//! do not stop the rest.

mod execute;
mod failure;
mod progress;

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;

pub use execute::{Simulate, execute, execute_with, selected, work_left};
pub use failure::{Problem, RunFailure};
pub use progress::{Progress, work_of_case};

use crate::scenario::Run;
use crate::store::{Row, StoreError};

/// Options of running an experiment.
#[derive(Clone, Copy, Debug)]
pub struct ExecuteOptions<'a> {
    /// Concurrent runs, each on a separate thread.
    pub jobs: NonZeroUsize,
    /// `(i, n)`: only the i-th of n parts of the runs, i from 1.
    pub shard: Option<(u32, u32)>,
    /// Only this case and repeat.
    pub only: Option<(usize, u32)>,
    /// When it becomes true, no more runs are started; current ones are finished and stored.
    pub stop: &'a AtomicBool,
}

/// Observer of the progress of an experiment. Every method is called from the thread that called
/// [`execute`].
pub trait Watcher {
    /// It starts.
    fn started(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// A run is finished and its row stored; it took `wall`.
    fn finished(&mut self, run: Run, row: &Row, wall: Duration, progress: &Progress) {
        let _ = (run, row, wall, progress);
    }

    /// A run failed.
    fn failed(&mut self, failure: &RunFailure, progress: &Progress) {
        let _ = (failure, progress);
    }

    /// Called several times a second.
    fn waiting(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

/// No observer.
impl Watcher for () {}

/// Result of running an experiment.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs requested.
    pub runs: usize,
    /// Of these, those done before.
    pub before: usize,
    /// Those finished now.
    pub finished: usize,
    /// Those that failed.
    pub failures: Vec<RunFailure>,
    /// True if runs were left out because of [`ExecuteOptions::stop`].
    pub stopped: bool,
    /// Duration.
    pub wall: Duration,
    /// Virtual seconds simulated now.
    pub simulated_s: f64,
}

/// Why an experiment could not be completed.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// Rows can't be stored. Those stored before are kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such shard.
    #[error("there is no shard {0}/{1}: write i/n with i from 1 to n")]
    Shard(u32, u32),
    /// There is no such run.
    #[error("there is no run {0}-{1}: there are cases 0 to {2} and repeats 0 to {3}")]
    Only(usize, u32, usize, u32),
    /// The system can't create a thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
