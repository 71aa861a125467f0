//! `lab list`.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use swiftwater_lab::scenario::{ScenarioError, describe};

use super::SourceArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Table, long_time};

/// `lab list`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab list
  swiftwater lab list cubic-plus --quick
  swiftwater lab list --json

Times are virtual: what all runs together simulate at most.")]
pub struct ListArgs {
    /// Which: a collection, names, or all
    #[arg(value_name = "WHAT", default_value = "all")]
    pub what: Vec<String>,

    /// Sizes of the short form
    #[arg(long)]
    pub quick: bool,

    /// Scenarios and traces.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// An experiment of the list. What is not known, because its traces are missing, is null.
#[derive(Debug, Default, Serialize)]
struct Entry {
    name: String,
    title: Option<String>,
    source: Option<String>,
    cases: Option<usize>,
    repeats: Option<u32>,
    runs: Option<u64>,
    simulated_s: Option<f64>,
    /// What is missing to run it.
    missing: Option<String>,
}

pub(super) fn run(args: &ListArgs) -> Result<(), Failure> {
    let library = args.source.scenarios();
    let options = args.source.options(args.quick);
    let mut entries = Vec::new();
    let mut wrong = false;
    for name in args.source.select(&args.what)? {
        match library.load(&name, &options) {
            Ok(experiment) => {
                let description = describe(&experiment);
                entries.push(Entry {
                    name,
                    title: Some(description.title),
                    source: Some(description.source),
                    cases: Some(description.cases),
                    repeats: Some(experiment.repeats),
                    runs: Some(description.runs),
                    simulated_s: Some(description.simulated.as_secs_f64()),
                    missing: None,
                });
            }
            Err(error @ ScenarioError::TraceMissing { .. }) => entries.push(Entry {
                name,
                missing: Some(error.to_string()),
                ..Entry::default()
            }),
            // The others are listed all the same.
            Err(error) => {
                wrong = true;
                output::note(&format!("error: {}", Failure::from(error)));
            }
        }
    }
    if args.json {
        output::json(&entries)?;
    } else {
        output::line(&text(&entries))?;
    }
    if wrong {
        return Err(Failure::reported(Exit::Scenario));
    }
    Ok(())
}

fn text(entries: &[Entry]) -> String {
    let mut table = Table::new(["name", "title", "source", "cases x repeats", "simulated"]).left(2);
    for entry in entries {
        let size = match (entry.cases, entry.repeats) {
            (Some(cases), Some(repeats)) => format!("{cases} x {repeats}"),
            _ => "traces missing".to_owned(),
        };
        let simulated = entry.simulated_s.unwrap_or_default();
        let simulated = Duration::try_from_secs_f64(simulated).unwrap_or_default();
        table.row([
            entry.name.clone(),
            entry.title.clone().unwrap_or_default(),
            entry.source.clone().unwrap_or_default(),
            size,
            long_time(simulated),
        ]);
    }
    table.render()
}
