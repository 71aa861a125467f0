//! Running an experiment: every run once, whatever the results of others.

use crate::experiments;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use experiments::{experiment, options, outcome, read, run_in, simulate};
use swiftwater_lab::run::{
    ExecuteError, ExecuteOptions, Progress, RunFailure, Watcher, execute_with, work_left,
};
use swiftwater_lab::scenario::{Run, Setup};
use swiftwater_lab::store::{Results, Row};
use swiftwater_lab::world::{RunError, RunOutcome};
use swiftwater_sim::SimError;
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

/// Records its calls.
#[derive(Default)]
struct Notes {
    started: Option<(usize, usize)>,
    finished: Vec<Run>,
    failed: Vec<String>,
    work_left: Vec<f64>,
}

impl Watcher for Notes {
    fn started(&mut self, progress: &Progress) {
        assert_eq!(progress.time_left(0.0), None, "nothing is known yet");
        self.started = Some((progress.total, progress.before));
    }

    fn finished(&mut self, run: Run, row: &Row, _wall: Duration, progress: &Progress) {
        assert_eq!(row.run, run);
        self.finished.push(run);
        self.work_left.push(progress.work_left);
    }

    fn failed(&mut self, failure: &RunFailure, progress: &Progress) {
        assert!(progress.failed > 0);
        self.failed.push(failure.to_string());
    }
}

#[test]
fn rows_are_the_same_with_any_number_of_jobs() {
    let experiment = experiment(&["a", "b", "c", "d", "e"], 4);
    let folders = [1, 2, 3].map(|jobs| {
        let folder = folder();
        // The first runs take longest, so that several jobs end in another order.
        let uneven = |setup: &Setup, seed: u64| {
            std::thread::sleep(Duration::from_millis(3 * (10 - seed.min(10))));
            simulate(setup, seed)
        };
        let summary = run_in(folder.path(), &experiment, &options(jobs), &uneven);
        assert_eq!(summary.finished, 20);
        assert!((summary.simulated_s - 60.0).abs() < 1e-9);
        folder
    });
    let rows = folders
        .each_ref()
        .map(|folder| read(folder.path(), "rows.csv"));
    assert!(rows[0] == rows[1] && rows[0] == rows[2]);
}

#[test]
fn runs_are_begun_in_their_order_and_each_once() {
    let experiment = experiment(&["a", "b", "c"], 3);
    let folder = folder();
    let mut results = Results::open(folder.path(), &experiment).expect("it opens");
    let seen = Mutex::new(Vec::new());
    let noting = |setup: &Setup, seed| {
        let number = setup.duration.as_secs() as usize - 1;
        seen.lock().expect("whole").push((seed, number));
        simulate(setup, seed)
    };
    let mut notes = Notes::default();
    let options = options(1);
    execute_with(&experiment, &mut results, &options, &mut notes, &noting).expect("it runs");
    let expected: Vec<Run> = experiment.runs().collect();
    let order: Vec<(u64, usize)> = expected.iter().map(|run| (run.seed, run.case)).collect();
    assert_eq!(seen.into_inner().expect("whole"), order);
    assert_eq!(notes.started, Some((9, 0)));
    assert_eq!(notes.finished, expected);
    assert!(notes.work_left.windows(2).all(|pair| pair[1] < pair[0]));
    assert!(notes.work_left.last().expect("some").abs() < 1e-6);

    let mut notes = Notes::default();
    let never = |_: &Setup, _| -> Result<RunOutcome, RunError> { panic!("all is done") };
    let summary = execute_with(&experiment, &mut results, &options, &mut notes, &never);
    assert_eq!(summary.expect("nothing to do").before, 9);
    assert_eq!(notes.started, Some((9, 9)));
}

#[test]
fn runs_that_panic_or_are_refused_are_reported_and_the_others_go_on() {
    let experiment = experiment(&["a", "b", "c"], 2);
    let folder = folder();
    let failing = |setup: &Setup, seed: u64| match (setup.duration.as_secs(), seed) {
        (2, 7) => panic!("no more {}", "flowers"),
        (3, 8) => Err(RunError::Sim(SimError::WrongLink)),
        (1, 8) => {
            let mut outcome = outcome(setup, seed);
            outcome.measures.push(None);
            Ok(outcome)
        }
        _ => simulate(setup, seed),
    };
    let mut results = Results::open(folder.path(), &experiment).expect("it opens");
    let mut notes = Notes::default();
    let summary = execute_with(&experiment, &mut results, &options(2), &mut notes, &failing)
        .expect("it runs");
    assert_eq!((summary.finished, summary.failures.len()), (3, 3));
    assert!(!summary.stopped);
    assert_eq!(notes.failed.len(), 3);
    let panicked = summary
        .failures
        .iter()
        .find(|failure| failure.run.case == 1);
    let text = panicked.expect("it failed").to_string();
    for part in [
        "case 1",
        "kind=b",
        "seed 7",
        "repeat 0",
        "panicked: no more flowers",
    ] {
        assert!(text.contains(part), "{text}");
    }
    drop(results);

    // Next time they are tried again, and nothing else is.
    let summary = run_in(folder.path(), &experiment, &options(2), &simulate);
    assert_eq!((summary.before, summary.finished), (3, 3));
    let whole = self::folder();
    run_in(whole.path(), &experiment, &options(1), &simulate);
    assert!(read(folder.path(), "rows.csv") == read(whole.path(), "rows.csv"));
}

#[test]
fn after_a_stop_what_runs_is_kept_and_the_rest_is_left() {
    let experiment = experiment(&["a", "b", "c"], 3);
    let folder = folder();
    let stop = AtomicBool::new(false);
    let begun = AtomicUsize::new(0);
    let stopping = |setup: &Setup, seed| {
        if begun.fetch_add(1, Ordering::SeqCst) == 3 {
            stop.store(true, Ordering::SeqCst);
        }
        simulate(setup, seed)
    };
    let options = ExecuteOptions {
        stop: &stop,
        ..options(2)
    };
    let summary = run_in(folder.path(), &experiment, &options, &stopping);
    assert!(summary.stopped);
    assert_eq!(summary.finished, begun.into_inner(), "none is half done");
    assert!((4..9).contains(&summary.finished));
    let results = Results::read(folder.path(), &experiment).expect("it is there");
    assert_eq!(results.table().expect("rows").rows.len(), summary.finished);
}

#[test]
fn shards_share_the_runs() {
    let experiment = experiment(&["a", "b", "c"], 3);
    let mut all = BTreeSet::new();
    for part in 1..=4 {
        let folder = folder();
        let options = ExecuteOptions {
            shard: Some((part, 4)),
            ..options(1)
        };
        let summary = run_in(folder.path(), &experiment, &options, &simulate);
        assert!((2..=3).contains(&summary.runs));
        let results = Results::read(folder.path(), &experiment).expect("it is there");
        for row in results.table().expect("rows").rows {
            assert!(all.insert(row.run), "{:?} is in two shards", row.run);
        }
    }
    assert_eq!(all, experiment.runs().collect());
}

#[test]
fn the_work_left_is_that_of_the_selected_runs_that_are_missing() {
    let experiment = experiment(&["a", "b"], 4);
    let folder = folder();
    let left = |options: &ExecuteOptions<'_>| {
        let results = Results::open(folder.path(), &experiment).expect("it opens");
        work_left(&experiment, &results, options).expect("valid")
    };
    let half = ExecuteOptions {
        shard: Some((1, 2)),
        ..options(1)
    };
    let (all, of_half) = (left(&options(1)), left(&half));
    assert!(0.0 < of_half && of_half < all);
    run_in(folder.path(), &experiment, &half, &simulate);
    assert!(left(&half).abs() < 1e-9);
    assert!((left(&options(1)) - (all - of_half)).abs() < 1e-9 * all);
}

#[test]
fn one_run_alone() {
    let experiment = experiment(&["a", "b", "c"], 3);
    let folder = folder();
    let only = |case, repeat| ExecuteOptions {
        only: Some((case, repeat)),
        ..options(2)
    };
    let summary = run_in(folder.path(), &experiment, &only(2, 1), &simulate);
    assert_eq!((summary.runs, summary.finished), (1, 1));
    let mut results = Results::open(folder.path(), &experiment).expect("it opens");
    let rows = results.table().expect("rows").rows;
    assert_eq!((rows[0].run.case, rows[0].run.repeat), (2, 1));

    for (case, repeat) in [(3, 0), (0, 3)] {
        let error = execute_with(
            &experiment,
            &mut results,
            &only(case, repeat),
            &mut (),
            &simulate,
        );
        assert!(matches!(error, Err(ExecuteError::Only(..))));
    }
    for shard in [(0, 2), (3, 2), (1, 0)] {
        let options = ExecuteOptions {
            shard: Some(shard),
            ..options(1)
        };
        let error = execute_with(&experiment, &mut results, &options, &mut (), &simulate);
        assert!(matches!(error, Err(ExecuteError::Shard(..))));
    }
}

/// The disk is full, or the folder was removed.
#[test]
fn rows_that_cannot_be_kept_end_the_work() {
    let mut experiment = experiment(&["a", "b", "c"], 3);
    for case in &mut experiment.cases {
        case.setup.record = Some(Duration::from_millis(100));
    }
    let folder = folder();
    let mut results = Results::open(folder.path(), &experiment).expect("it opens");
    // A file where the folder of series should be.
    experiments::write(folder.path(), "series", b"");
    let done = AtomicUsize::new(0);
    let counting = |setup: &Setup, seed| {
        done.fetch_add(1, Ordering::SeqCst);
        simulate(setup, seed)
    };
    let error = execute_with(&experiment, &mut results, &options(2), &mut (), &counting);
    assert!(matches!(error, Err(ExecuteError::Store(_))), "{error:?}");
    assert!(done.into_inner() < 9, "the rest is not even tried");
    assert!(results.table().expect("rows").rows.is_empty());
}

#[test]
fn expected_work_is_what_links_carry_or_flows_send() {
    use swiftwater_lab::run::work_of_case;
    use swiftwater_lab::scenario::App;
    use swiftwater_units::Bandwidth;

    let experiment = experiment(&["a"], 1);
    let mut setup = experiment.cases[0].setup.clone();
    setup.duration = Duration::from_secs(20);
    setup.links[0].forward.rate = Bandwidth::from_mbps(50).into();
    setup.flows.truncate(1);
    setup.flows[0].count = 2;
    setup.flows[0].app = App::Bulk;
    assert!((work_of_case(&setup) - 1_000.0).abs() < 1e-9, "the link");
    setup.flows[0].app = App::ConstantRate {
        rate: Bandwidth::from_mbps(3),
    };
    assert!((work_of_case(&setup) - 120.0).abs() < 1e-9, "two streams");
    setup.links[0].forward.rate = Bandwidth::from_mbps(10_000).into();
    assert!((work_of_case(&setup) - 120.0).abs() < 1e-9, "still");
}
