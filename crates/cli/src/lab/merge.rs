//! `lab merge`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use swiftwater_lab::store::{Manifest, find, merge};

use super::conclude::{Conclusion, check_format, judge};
use super::{Format, SourceArgs, index};
use crate::exit::Failure;
use crate::output;

/// `lab merge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab merge lab-results shard1 shard2 shard3 shard4
  swiftwater lab merge all-results lab-results /mnt/other/lab-results

Each experiment of any IN is joined in OUT/<collection>/<name>, where rows may be already. Runs that are
in several folders must be the same in all. No IN is changed.")]
pub struct MergeArgs {
    /// Folder of the joined results; made if missing
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

    /// Fail if a claim fails
    #[arg(long)]
    pub strict: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

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
    for (manifest, folders) in experiments.values() {
        let experiment = args.source.experiment_of(manifest)?;
        // The scenario's own name, not what a file says it is: it never leads out of the folder.
        let out = args.out.join(&experiment.name);
        let results = merge(&out, &experiment, folders)?;
        let conclusion = Conclusion::of(&experiment, &results, true, args.format)?;
        if !args.json {
            output::line(&format!("{}\n", conclusion.text()))?;
        }
        conclusions.push(conclusion);
    }
    let pages = index::write(&args.source, &mut conclusions)?;
    if args.json {
        output::json(&conclusions)?;
    } else {
        index::tell(&pages)?;
    }
    judge(args.strict, &conclusions)
}
