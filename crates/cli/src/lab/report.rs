//! `lab report`.

use std::path::PathBuf;

use clap::Args;
use swiftwater_lab::store::{Manifest, Results, find};

use super::conclude::{Conclusion, check_format, judge};
use super::{Format, SourceArgs, index};
use crate::exit::Failure;
use crate::output;

/// `lab report`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab report lab-results
  swiftwater lab report lab-results/cubic-plus/e3 --strict

Claims and figures are those of the scenario as it is now; rows stay as they are.")]
pub struct ReportArgs {
    /// Folders of results, or folders that contain some
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,

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

pub(super) fn run(args: &ReportArgs) -> Result<(), Failure> {
    check_format(args.format)?;
    let mut conclusions = Vec::new();
    for root in &args.folders {
        for folder in find(root)? {
            let experiment = args.source.experiment_of(&Manifest::read(&folder)?)?;
            let results = Results::read(&folder, &experiment)?;
            let conclusion = Conclusion::of(&experiment, &results, true, args.format)?;
            if !args.json {
                output::line(&format!("{}\n", conclusion.text()))?;
            }
            conclusions.push(conclusion);
        }
    }
    let pages = index::write(&args.source, &mut conclusions)?;
    if args.json {
        output::json(&conclusions)?;
    } else {
        index::tell(&pages)?;
    }
    judge(args.strict, &conclusions)
}
