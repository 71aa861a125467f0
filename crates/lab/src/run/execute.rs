//! The threads that run an experiment.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::failure::panic_message;
use super::{
    ExecuteError, ExecuteOptions, Problem, Progress, RunFailure, Summary, Watcher, work_of_case,
};
use crate::scenario::{Experiment, Run, Setup};
use crate::store::{Results, StoreError};
use crate::world::{self, RunError, RunOutcome};

/// Interval of calls of the watcher while no run ends.
const TICK: Duration = Duration::from_millis(200);

/// Performs a run: [`world::simulate`], or a replacement in tests.
pub type Simulate<'a> = dyn Fn(&Setup, u64) -> Result<RunOutcome, RunError> + Sync + 'a;

/// Performs the runs of `experiment` that `results` lacks, in the order of [`Experiment::runs`],
/// and stores each when it ends. At the end the rows are sorted in that order.
pub fn execute(
    experiment: &Experiment,
    results: &mut Results,
    options: &ExecuteOptions<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Summary, ExecuteError> {
    execute_with(experiment, results, options, watcher, &world::simulate)
}

/// The same with another simulator.
pub fn execute_with(
    experiment: &Experiment,
    results: &mut Results,
    options: &ExecuteOptions<'_>,
    watcher: &mut dyn Watcher,
    simulate: &Simulate<'_>,
) -> Result<Summary, ExecuteError> {
    let start = Instant::now();
    let wanted = selected(experiment, options)?;
    let todo: Vec<Run> = wanted
        .iter()
        .copied()
        .filter(|run| !results.has(*run))
        .collect();
    let before = wanted.len() - todo.len();
    let jobs = options
        .jobs
        .min(NonZeroUsize::new(todo.len()).unwrap_or(NonZeroUsize::MIN));
    let mut collector = Collector {
        experiment,
        results,
        watcher,
        progress: Progress::new(wanted.len(), before, work_of(experiment, &todo), jobs),
        summary: Summary {
            runs: wanted.len(),
            before,
            ..Summary::default()
        },
    };
    collector.watcher.started(&collector.progress);
    let queue = Queue {
        experiment,
        todo: &todo,
        next: AtomicUsize::new(0),
        stop: options.stop,
        simulate,
    };
    thread::scope(|scope| {
        // Dropped at the end of this closure, also after an error: then no thread takes another run.
        let (sender, receiver) = mpsc::sync_channel(jobs.get());
        for _ in 0..jobs.get() {
            let (queue, sender) = (&queue, sender.clone());
            thread::Builder::new()
                .name("run".to_owned())
                .spawn_scoped(scope, move || queue.work(&sender))
                .map_err(ExecuteError::Thread)?;
        }
        drop(sender);
        collector.collect(&receiver)
    })?;
    let mut summary = collector.summary;
    results.finish()?;
    summary.stopped = before + summary.finished + summary.failures.len() < wanted.len();
    summary.wall = start.elapsed();
    Ok(summary)
}

/// The runs selected by `options`, in the order of [`Experiment::runs`]. Fails if there is no such
/// run or shard.
pub fn selected(
    experiment: &Experiment,
    options: &ExecuteOptions<'_>,
) -> Result<Vec<Run>, ExecuteError> {
    let runs = experiment.runs();
    if let Some((case, repeat)) = options.only {
        let runs: Vec<Run> = runs
            .filter(|run| (run.case, run.repeat) == (case, repeat))
            .collect();
        if runs.is_empty() {
            let cases = experiment.cases.len().saturating_sub(1);
            let repeats = experiment.repeats.saturating_sub(1);
            return Err(ExecuteError::Only(case, repeat, cases, repeats));
        }
        return Ok(runs);
    }
    match options.shard {
        None => Ok(runs.collect()),
        Some((part, parts)) if (1..=parts).contains(&part) => Ok(runs
            .skip(part as usize - 1)
            .step_by(parts as usize)
            .collect()),
        Some((part, parts)) => Err(ExecuteError::Shard(part, parts)),
    }
}

/// Expected work of the selected runs that `results` lacks.
pub fn work_left(
    experiment: &Experiment,
    results: &Results,
    options: &ExecuteOptions<'_>,
) -> Result<f64, ExecuteError> {
    let mut todo = selected(experiment, options)?;
    todo.retain(|run| !results.has(*run));
    Ok(work_of(experiment, &todo))
}

fn work_of(experiment: &Experiment, runs: &[Run]) -> f64 {
    let setups = runs.iter().map(|run| &experiment.cases[run.case].setup);
    setups.map(work_of_case).sum()
}

/// A completed run.
struct Ended {
    run: Run,
    result: Result<RunOutcome, Problem>,
    wall: Duration,
}

/// State shared by the threads.
struct Queue<'a> {
    experiment: &'a Experiment,
    todo: &'a [Run],
    next: AtomicUsize,
    stop: &'a AtomicBool,
    simulate: &'a Simulate<'a>,
}

impl Queue<'_> {
    /// Performs one run after the other until there are none, or the receiver is gone.
    fn work(&self, ended: &SyncSender<Ended>) {
        while !self.stop.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&run) = self.todo.get(place) else {
                return;
            };
            let start = Instant::now();
            let setup = &self.experiment.cases[run.case].setup;
            // A run builds its own world and shares no state that could become inconsistent.
            let result = catch_unwind(AssertUnwindSafe(|| (self.simulate)(setup, run.seed)));
            let result = match result {
                Ok(result) => result.map_err(Problem::from),
                Err(payload) => Err(Problem::Panicked(panic_message(payload.as_ref()))),
            };
            let wall = start.elapsed();
            if ended.send(Ended { run, result, wall }).is_err() {
                return;
            }
        }
    }
}

/// Stores the results of the threads.
struct Collector<'a> {
    experiment: &'a Experiment,
    results: &'a mut Results,
    watcher: &'a mut dyn Watcher,
    progress: Progress,
    summary: Summary,
}

impl Collector<'_> {
    fn collect(&mut self, ended: &Receiver<Ended>) -> Result<(), ExecuteError> {
        loop {
            match ended.recv_timeout(TICK) {
                Ok(ended) => self.keep(ended)?,
                Err(RecvTimeoutError::Timeout) => {
                    self.results.sync_if_due()?;
                    self.watcher.waiting(&self.progress);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn keep(&mut self, ended: Ended) -> Result<(), ExecuteError> {
        let Ended { run, result, wall } = ended;
        let kept = match result {
            Ok(outcome) => match self.results.add(run, &outcome, wall) {
                Ok(row) => Ok((row, outcome.simulated_s)),
                Err(StoreError::Measures { got, expected }) => {
                    Err(Problem::Measures { got, expected })
                }
                Err(error) => return Err(error.into()),
            },
            Err(problem) => Err(problem),
        };
        let work = work_of_case(&self.experiment.cases[run.case].setup);
        self.progress.run_ended(work, wall);
        match kept {
            Ok((row, simulated_s)) => {
                self.summary.finished += 1;
                self.summary.simulated_s += simulated_s;
                self.watcher.finished(run, &row, wall, &self.progress);
            }
            Err(problem) => {
                self.progress.failed += 1;
                let failure = RunFailure::new(self.experiment, run, problem);
                self.watcher.failed(&failure, &self.progress);
                self.summary.failures.push(failure);
            }
        }
        Ok(())
    }
}
