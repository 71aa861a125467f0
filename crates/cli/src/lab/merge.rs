//! `lab merge`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use swiftwater_lab::scenario::Experiment;
use swiftwater_lab::store::{Manifest, Results, find, merge};

use super::evaluation::{Evaluation, check_format, judge};
use super::{Format, SourceArgs, index};
use crate::exit::{Exit, Failure};
use crate::output;

/// `lab merge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab merge lab-results shard1 shard2 shard3 shard4
  swiftwater lab merge all-results lab-results /mnt/other/lab-results

Each experiment of any IN is joined in OUT/<collection>/<name>, where rows may be already. Runs that are
in several folders must be the same in all. Rows of builds of different commits may be joined: the manifest and
the reports name them all. No IN is changed.")]
pub struct MergeArgs {
    /// Folder of the joined results; created if missing
    #[arg(value_name = "OUT")]
    pub out: PathBuf,

    /// Folders of results, or folders that contain some
    #[arg(value_name = "IN", required = true)]
    pub inputs: Vec<PathBuf>,

    /// Scenarios and traces.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Also write rows in this format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// Succeed although runs are missing, such as those of a shard that is still at work
    #[arg(long)]
    pub partial: bool,

    /// Fail if a claim fails or is open, or has no data in a complete run
    #[arg(long)]
    pub strict: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Most missing runs that are named one by one.
const NAMED: usize = 5;

/// Largest number of shards that is recognised.
const MOST_SHARDS: usize = 64;

pub(super) fn run(args: &MergeArgs) -> Result<(), Failure> {
    check_format(args.format)?;
    let mut experiments: BTreeMap<String, (Manifest, Vec<PathBuf>)> = BTreeMap::new();
    for root in &args.inputs {
        for folder in find(root)? {
            let manifest = Manifest::read(&folder)?;
            let (_, folders) = experiments
                .entry(manifest.name.clone())
                .or_insert_with(|| (manifest, Vec::new()));
            folders.push(folder);
        }
    }
    let mut conclusions = Vec::new();
    let mut incomplete = Vec::new();
    for (manifest, folders) in experiments.values() {
        let experiment = args.source.experiment_of(manifest)?;
        // The scenario's own name, not the name in a file, so that the path stays inside the
        // folder.
        let out = args.out.join(&experiment.name);
        let results = merge(&out, &experiment, folders)?;
        if let Some(missing) = missing(&experiment, &results) {
            output::note(&format!("{}: {missing}", experiment.name));
            incomplete.push(experiment.name.clone());
        }
        let commits = &results.manifest().commits;
        if commits.len() > 1 {
            let commits = commits.join(", ");
            output::note(&format!(
                "{}: rows of several builds: {commits}",
                experiment.name
            ));
        }
        let conclusion = Evaluation::of(&experiment, &results, true, args.format)?;
        if !args.json {
            output::line(&format!("{}\n", conclusion.text()))?;
        }
        conclusions.push(conclusion);
    }
    let pages = index::write(&args.source, &mut conclusions, &[])?;
    if args.json {
        output::json(&conclusions)?;
    } else {
        index::print_paths(&pages)?;
    }
    if !args.partial && !incomplete.is_empty() {
        let text = format!(
            "runs of {} are missing; --partial accepts that",
            incomplete.join(", ")
        );
        return Err(Failure::new(Exit::Incomplete, text));
    }
    judge(args.strict, false, &conclusions)
}

/// Description of the missing runs.
fn missing(experiment: &Experiment, results: &Results) -> Option<String> {
    let has: Vec<bool> = experiment.runs().map(|run| results.has(run)).collect();
    let missing = experiment.runs().filter(|run| !results.has(*run));
    let names: Vec<String> = missing
        .map(|run| format!("{}-{}", run.case, run.repeat))
        .collect();
    if names.is_empty() {
        return None;
    }
    let first = names[..names.len().min(NAMED)].join(", ");
    let more = if names.len() > NAMED { ", ..." } else { "" };
    let shards = missing_shards(&has).map_or_else(String::new, |shards| {
        format!("; shard {shards} seems to be missing")
    });
    Some(format!(
        "{} of {} runs are missing (case-repeat): {first}{more}{shards}",
        names.len(),
        has.len()
    ))
}

/// The missing shards, for the smallest division in which exactly whole shards are missing.
fn missing_shards(has: &[bool]) -> Option<String> {
    let most = MOST_SHARDS.min(has.len() / 2);
    (2..=most).find_map(|parts| {
        let shard = |part: usize| has.iter().skip(part).step_by(parts);
        let is_whole = |part: usize| shard(part).all(|has| *has);
        let is_missing = |part: &usize| !shard(*part).any(|has| *has);
        if !(0..parts).all(|part| is_whole(part) || is_missing(&part)) {
            return None;
        }
        let missing: Vec<String> = (0..parts)
            .filter(is_missing)
            .take(NAMED)
            .map(|part| format!("{}/{parts}", part + 1))
            .collect();
        (!missing.is_empty() && missing.len() < parts).then(|| missing.join(", "))
    })
}
