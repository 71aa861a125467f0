//! `lab check`.

use clap::Args;
use swiftwater_lab::scenario::{Description, ScenarioError, describe};

use super::SourceArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::long_time;

/// `lab check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab check my.toml
  swiftwater lab check scenarios/cubic-plus/*.toml
  swiftwater lab check all --scenarios ./scenarios

Both forms, full and quick, are read and checked as `lab run` would. What loads also runs.")]
pub struct CheckArgs {
    /// Scenario files, or names and collections
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,

    /// Scenarios and traces.
    #[command(flatten)]
    pub source: SourceArgs,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut worst = None;
    for name in args.source.select(&args.files)? {
        match check(args, &name) {
            Ok((full, quick)) => output::line(&format!(
                "{name}: {}; quick: {}; claims: {}, figures: {}",
                size(&full),
                size(&quick),
                full.claims + full.untestable,
                full.figures
            ))?,
            // Every file is checked, whatever the errors of those before it.
            Err(error) => {
                let failure = Failure::from(error);
                output::note(&format!("error: {failure}"));
                if worst != Some(Exit::Scenario) {
                    worst = Some(failure.exit);
                }
            }
        }
    }
    worst.map_or(Ok(()), |exit| Err(Failure::reported(exit)))
}

fn check(args: &CheckArgs, name: &str) -> Result<(Description, Description), ScenarioError> {
    let library = args.source.scenarios();
    let form = |quick| {
        library
            .load(name, &args.source.options(quick))
            .map(|experiment| describe(&experiment))
    };
    Ok((form(false)?, form(true)?))
}

fn size(description: &Description) -> String {
    format!(
        "{} runs of {} cases, {} simulated",
        description.runs,
        description.cases,
        long_time(description.simulated)
    )
}
