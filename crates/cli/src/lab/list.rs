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

Runs are cases times repeats. Times are virtual: what all runs together simulate at most. Titles are cut
to fit 100 columns; --json has them whole, with the sources, and so has 'lab show'.")]
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

/// An experiment of the list. Values that are unknown because traces are missing are null.
#[derive(Debug, Default, Serialize)]
struct ListEntry {
    name: String,
    title: Option<String>,
    source: Option<String>,
    cases: Option<usize>,
    repeats: Option<u32>,
    runs: Option<u64>,
    simulated_s: Option<f64>,
    /// Missing traces.
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
                entries.push(ListEntry {
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
            Err(error @ ScenarioError::TraceMissing { .. }) => entries.push(ListEntry {
                title: library.title(&name),
                name,
                missing: Some(error.to_string()),
                ..ListEntry::default()
            }),
            // The others are listed anyway.
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

/// Most columns of the list.
const WIDTH: usize = 100;

/// Least columns of a title, however long the names are.
const MIN_TITLE: usize = 20;

fn text(entries: &[ListEntry]) -> String {
    let rows: Vec<[String; 3]> = entries.iter().map(numbers).collect();
    let widest = |texts: &mut dyn Iterator<Item = &str>| {
        let widths = texts.map(|text| text.chars().count());
        widths.max().unwrap_or(0)
    };
    let titles = ["name", "runs", "simulated"];
    let others: usize = (0..titles.len())
        .map(|column| {
            let cells = rows.iter().map(|row| &*row[column]);
            widest(&mut cells.chain([titles[column]]))
        })
        .sum();
    // Two spaces between four columns.
    let room = WIDTH.saturating_sub(others + 6).max(MIN_TITLE);
    let mut table = Table::new(["name", "title", "runs", "simulated"]).left(1);
    for (entry, [name, size, simulated]) in entries.iter().zip(rows) {
        let title = cut(entry.title.as_deref().unwrap_or_default(), room);
        table.row([name, title, size, simulated]);
    }
    let mut text = table.render();
    if entries.iter().any(|entry| entry.missing.is_some()) {
        text.push_str(
            "\n\nno traces: --traces DIR names their folder; docs/lab.md, section Traces, says where \
             they come from",
        );
    }
    text
}

/// Name, size and virtual time of an entry.
fn numbers(entry: &ListEntry) -> [String; 3] {
    let size = match (entry.cases, entry.repeats) {
        (Some(cases), Some(repeats)) => format!("{cases} x {repeats}"),
        _ => "no traces".to_owned(),
    };
    let simulated = entry.simulated_s.map_or_else(
        || "-".to_owned(),
        |seconds| long_time(Duration::try_from_secs_f64(seconds).unwrap_or_default()),
    );
    [entry.name.clone(), size, simulated]
}

/// The first `room` characters of `text`, cut at a word boundary if possible.
fn cut(text: &str, room: usize) -> String {
    const END: &str = "...";
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room - END.len()).collect();
    let words = kept.rsplit_once(' ').map_or(&*kept, |(words, _)| words);
    format!("{words}{END}")
}
