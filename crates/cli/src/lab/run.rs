//! `lab run`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use swiftwater_lab::report::{self, Counts};
use swiftwater_lab::run::{ExecuteOptions, RunFailure, Summary, execute, selected, work_left};
use swiftwater_lab::scenario::{Experiment, LoadOptions, ScenarioError};
use swiftwater_lab::store::{Origin, Results};

use super::evaluation::{Evaluation, check_format, judge};
use super::flag_values::parse_jobs;
use super::progress_display::ProgressDisplay;
use super::source::SourceArgs;
use super::{Format, Only, RecordInterval, Setting, Shard, index, stop};
use crate::build_commit::BUILD_COMMIT;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use crate::runtime::interrupted;

/// `lab run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab run examples --quick
  swiftwater lab run cubic-plus/e3 --set buffer=1bdp,2bdp --repeats 10 --jobs 4
  swiftwater lab run all --shard 2/4 --out shard2
  swiftwater lab run my.toml --json --strict

Each experiment has a folder DIR/<collection>/<name>: rows.csv, manifest.json, verdicts.json and
report.html, time series and samples beside them; DIR/<collection>/index.html lists those of a
collection. A scenario that does not load is named and left out; the others run. The same seed gives the
same rows.csv. Work that was stopped or killed continues where it was when the same command is given again.

--quick is a smoke run: it shows that everything runs. It leaves out cases and repeats that claims need,
so many claims have no data or lie outside their bands; these verdicts are not results.

The exit code is 0 if all runs finished, whatever became of the claims: one that fails is a result, not
an error. With --strict it is not 0 if a claim fails, or has no data in a whole run (not with --quick,
--set, --shard or --only).")]
pub struct RunArgs {
    /// Experiments: a name (cubic-plus/e3), a collection (cubic-plus), all, or a scenario file
    #[arg(value_name = "WHAT", required = true)]
    pub what: Vec<String>,

    /// A smoke test: fewer cases, shorter runs; its verdicts are not results
    #[arg(long)]
    pub quick: bool,

    /// Concurrent runs [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,

    /// Only the i-th of n parts of the runs; `lab merge` joins them
    #[arg(long, value_name = "i/n", conflicts_with = "only")]
    pub shard: Option<Shard>,

    /// Only the run of this case and repeat, of one experiment
    #[arg(long, value_name = "CASE-REPEAT")]
    pub only: Option<Only>,

    /// Folder of results [default: lab-results, with --quick lab-results-quick]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Scenarios and traces.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Runs of each case, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeats: Option<u32>,

    /// Other values of an axis, or of a key of the section `run`; values that contain commas are separated by ;
    #[arg(long, value_name = "AXIS=VALUES")]
    pub set: Vec<Setting>,

    /// Interval of time series, or none
    #[arg(long, value_name = "TIME")]
    pub record: Option<RecordInterval>,

    /// Move existing results into a folder old-N next to them, and start again
    #[arg(long)]
    pub fresh: bool,

    /// Write no report.html and no index.html
    #[arg(long)]
    pub no_report: bool,

    /// Also write rows in this format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// Fail if a claim fails or is open, or has no data in a complete run
    #[arg(long)]
    pub strict: bool,

    /// Print one JSON document with everything
    #[arg(long)]
    pub json: bool,
}

/// There is nothing to interrupt before this.
static NEVER: AtomicBool = AtomicBool::new(false);

/// An experiment with its folder.
struct LabJob {
    experiment: Experiment,
    results: Results,
    /// Expected work of its runs that are still missing.
    work: f64,
}

/// A scenario that is skipped.
#[derive(Debug, Serialize)]
struct Skipped {
    name: String,
    reason: String,
}

/// A run that failed, machine-readable.
#[derive(Debug, Serialize)]
struct Failed {
    case: usize,
    repeat: u32,
    seed: u64,
    labels: Vec<(String, String)>,
    error: String,
}

impl From<&RunFailure> for Failed {
    fn from(failure: &RunFailure) -> Self {
        Self {
            case: failure.run.case,
            repeat: failure.run.repeat,
            seed: failure.run.seed,
            labels: failure.labels.clone(),
            error: failure.problem.to_string(),
        }
    }
}

/// Result of one experiment, machine-readable.
#[derive(Debug, Serialize)]
struct Ended {
    #[serde(flatten)]
    conclusion: Evaluation,
    /// Runs requested by this command; those done before; those finished by it.
    asked: usize,
    before: usize,
    finished: usize,
    failed: Vec<Failed>,
    wall_s: f64,
}

/// The document of `--json`.
#[derive(Debug, Default, Serialize)]
struct RunDocument {
    experiments: Vec<Ended>,
    /// Scenarios whose traces are missing.
    skipped: Vec<Skipped>,
    /// Scenarios that are invalid.
    invalid: Vec<Skipped>,
    stopped: bool,
    wall_s: f64,
    /// By this command, over all experiments.
    simulated_s: f64,
    simulated_per_wall: Option<f64>,
}

pub(super) fn run(args: &RunArgs) -> Result<(), Failure> {
    check_format(args.format)?;
    let start = Instant::now();
    let mut document = RunDocument::default();
    // Everything is loaded and every folder locked first, so that an error in the last experiment
    // is not reported after hours of the first.
    let (experiments, wrong) = load(args, &mut document)?;
    // Existing results are not moved for runs that don't exist.
    let options = options(args, &NEVER);
    for (_, experiment) in &experiments {
        selected(experiment, &options)?;
    }
    let mut jobs = Vec::new();
    for (origin, experiment) in experiments {
        jobs.push(open(args, origin, experiment)?);
    }
    let progress = Progress::new(!args.json);
    let stop = stop::on_request(&progress)?;
    let mut later: f64 = jobs.iter().map(|job| job.work).sum();
    for mut job in jobs {
        if stop.load(Ordering::Relaxed) {
            document.stopped = true;
            break;
        }
        later -= job.work;
        let summary = execute_one(args, &mut job, &progress, later.max(0.0), &stop)?;
        document.stopped |= summary.stopped;
        document.simulated_s += summary.simulated_s;
        let ended = conclude(args, &job, &summary)?;
        if !args.json {
            progress.suspended(|| output::line(&format!("{}\n", ended.conclusion.text())))?;
        }
        document.experiments.push(ended);
    }
    document.wall_s = start.elapsed().as_secs_f64();
    document.simulated_per_wall =
        (document.simulated_s > 0.0).then(|| document.simulated_s / document.wall_s);
    write_results(args, &mut document)?;
    outcome(args, &document, wrong)
}

/// Experiments with their settings.
type Loaded = Vec<(Origin, Experiment)>;

/// Loads every requested experiment, except invalid ones and those whose traces are missing; with
/// the exit code of the former.
fn load(args: &RunArgs, document: &mut RunDocument) -> Result<(Loaded, Option<Exit>), Failure> {
    let library = args.source.scenarios();
    let set = args
        .set
        .iter()
        .map(|set| (set.key.clone(), set.value.clone()));
    let options = LoadOptions {
        set: set.collect(),
        repeats: args.repeats,
        record: args.record.map(|record| record.0),
        ..args.source.options(args.quick)
    };
    let mut loaded = Vec::new();
    let mut wrong = None;
    for name in args.source.select(&args.what)? {
        match library.load(&name, &options) {
            Ok(experiment) => loaded.push((origin(args, &options, name), experiment)),
            Err(error @ ScenarioError::TraceMissing { .. }) => {
                output::note(&format!("{name} is skipped: {error}"));
                document.skipped.push(Skipped {
                    name,
                    reason: error.to_string(),
                });
            }
            // A mistake on the command line, not in the scenario.
            Err(error @ ScenarioError::Setting { .. }) => return Err(error.into()),
            Err(error) => {
                let failure = Failure::from(error);
                output::note(&format!("error: {failure}"));
                if wrong != Some(Exit::Scenario) {
                    wrong = Some(failure.exit);
                }
                document.invalid.push(Skipped {
                    name,
                    reason: failure.to_string(),
                });
            }
        }
    }
    if let (true, Some(exit)) = (loaded.is_empty(), wrong) {
        return Err(Failure::reported(exit));
    }
    if loaded.is_empty() {
        let text = "nothing to run: the traces of every scenario are missing";
        return Err(Failure::new(Exit::LocalFile, text));
    }
    if args.only.is_some() && loaded.len() > 1 {
        let text = "--only requires one experiment; name it";
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok((loaded, wrong))
}

fn origin(args: &RunArgs, options: &LoadOptions, scenario: String) -> Origin {
    // The experiment may be loaded again from another folder.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or(path.to_owned());
    let is_file = Path::new(&scenario)
        .extension()
        .is_some_and(|it| it == "toml");
    Origin {
        scenario: if is_file {
            absolute(Path::new(&scenario)).display().to_string()
        } else {
            scenario
        },
        scenarios: args.source.scenarios.as_deref().map(absolute),
        traces: args.source.traces.as_deref().map(absolute),
        set: options.set.clone(),
        repeats: options.repeats,
        record: options.record,
    }
}

fn out(args: &RunArgs) -> PathBuf {
    // Both forms of an experiment have a folder of the same name: their results must not mix.
    let default = if args.quick {
        "lab-results-quick"
    } else {
        "lab-results"
    };
    args.out.clone().unwrap_or_else(|| PathBuf::from(default))
}

fn open(args: &RunArgs, origin: Origin, experiment: Experiment) -> Result<LabJob, Failure> {
    let folder = out(args).join(&experiment.name);
    let mut results = if args.fresh {
        let (results, old) = Results::open_fresh(&folder, &experiment)?;
        if let Some(old) = old {
            output::note(&format!("earlier results are now in {}", old.display()));
        }
        results
    } else {
        Results::open(&folder, &experiment)?
    };
    results.set_origin(origin)?;
    note_other_commits(&experiment, &results);
    results.set_commit(BUILD_COMMIT);
    let work = work_left(&experiment, &results, &options(args, &NEVER))?;
    Ok(LabJob {
        experiment,
        results,
        work,
    })
}

/// Rows of several builds in one table may differ by more than their seeds.
fn note_other_commits(experiment: &Experiment, results: &Results) {
    let commits = &results.manifest().commits;
    let is_complete = || experiment.runs().all(|run| results.has(run));
    if commits.is_empty() || commits.iter().all(|commit| commit == BUILD_COMMIT) || is_complete() {
        return;
    }
    output::note(&format!(
        "{}: there are rows of commit {}, this is {BUILD_COMMIT}; --fresh starts again",
        experiment.name,
        commits.join(", ")
    ));
}

fn options<'a>(args: &RunArgs, stop: &'a AtomicBool) -> ExecuteOptions<'a> {
    let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    ExecuteOptions {
        jobs: args.jobs.unwrap_or_else(cores),
        shard: args.shard.map(|shard| (shard.part, shard.parts)),
        only: args.only.map(|only| (only.case, only.repeat)),
        stop,
    }
}

fn execute_one(
    args: &RunArgs,
    job: &mut LabJob,
    progress: &Progress,
    later: f64,
    stop: &AtomicBool,
) -> Result<Summary, Failure> {
    let mut again = report::command(job.results.manifest())
        .unwrap_or_else(|| format!("swiftwater lab run {}", job.experiment.name));
    if let Some(out) = &args.out {
        again = format!("{again} --out {}", out.display());
    }
    let name = job.experiment.name.clone();
    let mut watch = ProgressDisplay::new(progress, !args.json, &name, later, again);
    Ok(execute(
        &job.experiment,
        &mut job.results,
        &options(args, stop),
        &mut watch,
    )?)
}

fn conclude(args: &RunArgs, job: &LabJob, summary: &Summary) -> Result<Ended, Failure> {
    let conclusion = Evaluation::of(&job.experiment, &job.results, !args.no_report, args.format)?;
    Ok(Ended {
        conclusion,
        asked: summary.runs,
        before: summary.before,
        finished: summary.finished,
        failed: summary.failures.iter().map(Failed::from).collect(),
        wall_s: summary.wall.as_secs_f64(),
    })
}

/// Writes and prints all results once.
fn write_results(args: &RunArgs, document: &mut RunDocument) -> Result<(), Failure> {
    let pages = if args.no_report {
        Vec::new()
    } else {
        let ended = document.experiments.iter_mut();
        index::write(&args.source, ended.map(|ended| &mut ended.conclusion), &[])?
    };
    if args.json {
        return output::json(document);
    }
    if let Some(summary) = smoke(document) {
        output::line(&summary)?;
    }
    index::print_paths(&pages)?;
    if let Some(speed) = document.simulated_per_wall {
        output::line(&format!(
            "{:.0} s simulated in {:.1} s: {speed:.1} simulated s per second",
            document.simulated_s, document.wall_s
        ))?;
    }
    if let Some(shard) = args.shard {
        output::note(&format!(
            "this was shard {shard}; join all of them with: swiftwater lab merge OUT {} ...",
            out(args).display()
        ));
    }
    Ok(())
}

/// The sum over all short forms; `None` if none has claims.
fn smoke(document: &RunDocument) -> Option<String> {
    let conclusions = document.experiments.iter().map(|ended| &ended.conclusion);
    let smoke = conclusions.filter(|conclusion| conclusion.is_smoke());
    let (mut experiments, mut counts) = (0, Counts::default());
    for conclusion in smoke {
        experiments += 1;
        counts = counts.and(conclusion.counts());
    }
    (counts != Counts::default()).then(|| {
        format!(
            "{experiments} experiments, {}. Claims without data need cases or repeats that the short form leaves \
             out; results come without --quick.\n",
            counts.smoke()
        )
    })
}

/// The exit code: unfinished work takes precedence over claims.
fn outcome(args: &RunArgs, document: &RunDocument, wrong: Option<Exit>) -> Result<(), Failure> {
    if document.stopped {
        let text = "finished runs are kept; the same command continues from there";
        return Err(interrupted().context(text));
    }
    if let Some(exit) = wrong {
        // Printed again: there may be hours between it and the first time.
        let reasons = document.invalid.iter().map(|it| it.reason.as_str());
        let reasons: Vec<&str> = reasons.collect();
        let text = format!("not run: {}", reasons.join("; "));
        return Err(Failure::new(exit, text));
    }
    let failed: usize = document.experiments.iter().map(|e| e.failed.len()).sum();
    if failed > 0 {
        let runs = if failed == 1 { "run" } else { "runs" };
        let text = format!("{failed} {runs} failed; the same command runs them again");
        return Err(Failure::new(Exit::Runs, text));
    }
    let conclusions = document.experiments.iter().map(|ended| &ended.conclusion);
    let is_part = args.shard.is_some() || args.only.is_some();
    judge(args.strict, is_part, conclusions)
}
