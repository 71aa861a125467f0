//! `lab show`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use swiftwater_lab::scenario::{
    Axis, Band, Claim, Experiment, Figure, FigureKind, SummaryTable, Verifiable, describe,
};
use swiftwater_lab::world;

use super::SourceArgs;
use crate::exit::Failure;
use crate::output;
use crate::table::long_time;

/// `lab show`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab show cubic-plus/e3
  swiftwater lab show my.toml --quick
  swiftwater lab show cubic-plus/e3 --json

The JSON document also has the names of all measures, which claims and figures may use.")]
pub struct ShowArgs {
    /// Which: a name or a scenario file
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The short form
    #[arg(long)]
    pub quick: bool,

    /// Scenarios and traces.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// An experiment, machine-readable.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    about: &'a str,
    quick: bool,
    axes: &'a [Axis],
    cases: usize,
    repeats: u32,
    runs: u64,
    seed: u64,
    /// Longest total virtual time of all runs.
    simulated_s: f64,
    digest: &'a str,
    /// Columns of the rows.
    measures: Vec<String>,
    claims: &'a [Claim],
    figures: &'a [Figure],
    tables: &'a [SummaryTable],
}

impl<'a> Document<'a> {
    fn of(experiment: &'a Experiment) -> Self {
        let description = describe(experiment);
        Self {
            name: &experiment.name,
            title: &experiment.title,
            source: &experiment.source,
            about: experiment.about.trim(),
            quick: experiment.quick,
            axes: &experiment.axes,
            cases: description.cases,
            repeats: experiment.repeats,
            runs: description.runs,
            seed: experiment.seed,
            simulated_s: description.simulated.as_secs_f64(),
            digest: &experiment.digest,
            measures: measures(experiment),
            claims: &experiment.claims,
            figures: &experiment.figures,
            tables: &experiment.tables,
        }
    }
}

/// The measures of all cases, each once.
fn measures(experiment: &Experiment) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let cases = experiment.cases.iter();
    cases
        .flat_map(|case| world::measures(&case.setup))
        .filter(|name| seen.insert(name.clone()))
        .collect()
}

pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let library = args.source.scenarios();
    let experiment = library.load(&args.name, &args.source.options(args.quick))?;
    if args.json {
        return output::json(&Document::of(&experiment));
    }
    output::line(text(&experiment).trim_end())
}

fn text(experiment: &Experiment) -> String {
    let mut text = String::new();
    let description = describe(experiment);
    // Writing to a string can't fail.
    let _ = writeln!(text, "{}: {}", experiment.name, experiment.title);
    for part in [&experiment.source, &experiment.about] {
        if !part.trim().is_empty() {
            let _ = writeln!(text, "{}", part.trim());
        }
    }
    let _ = writeln!(
        text,
        "\n{} cases x {} repeats = {} runs, at most {} simulated",
        description.cases,
        experiment.repeats,
        description.runs,
        long_time(description.simulated)
    );
    if !experiment.axes.is_empty() {
        let _ = writeln!(text, "\nAxes:");
    }
    for axis in &experiment.axes {
        let _ = writeln!(text, "  {}: {}", axis.name, axis.labels.join(", "));
    }
    if !experiment.claims.is_empty() {
        let _ = writeln!(text, "\nClaims:");
    }
    for claim in &experiment.claims {
        show_claim(&mut text, claim);
    }
    if !experiment.figures.is_empty() {
        let _ = writeln!(text, "\nFigures:");
    }
    for figure in &experiment.figures {
        let _ = writeln!(
            text,
            "  {}: {} ({})",
            figure.id,
            figure.title,
            drawn(figure)
        );
    }
    if !experiment.tables.is_empty() {
        let _ = writeln!(text, "\nTables:");
    }
    for table in &experiment.tables {
        let columns = table.columns.iter().map(|column| column.title.as_str());
        let columns: Vec<&str> = columns.collect();
        let (id, title) = (&table.id, &table.title);
        let _ = writeln!(text, "  {id}: {title} ({})", columns.join("; "));
    }
    text
}

fn show_claim(text: &mut String, claim: &Claim) {
    let _ = writeln!(text, "  {}: {}", claim.id, claim.says);
    let test = match &claim.test {
        Verifiable::Test(test) => format!("{}: {}", test.measure, band(test.pass)),
        Verifiable::No(why) => format!("not testable: {why}"),
    };
    let paper = match claim.paper.as_str() {
        "" => String::new(),
        paper => format!("paper: {paper}; "),
    };
    let _ = writeln!(text, "      {paper}{test}");
    if !claim.note.is_empty() {
        let _ = writeln!(text, "      {}", claim.note.trim());
    }
}

fn band(band: Band) -> String {
    match (band.min, band.max) {
        (Some(min), Some(max)) => format!("passes from {min} to {max}"),
        (Some(min), None) => format!("passes from {min} on"),
        (None, Some(max)) => format!("passes up to {max}"),
        (None, None) => "always passes".to_owned(),
    }
}

fn drawn(figure: &Figure) -> String {
    match &figure.kind {
        FigureKind::Line { x, y } | FigureKind::Bar { x, y } => {
            format!("{} over {x}", y.join(", "))
        }
        FigureKind::Cdf { group, of } => format!("distribution of {of} of {group}"),
        FigureKind::Series { y } => format!("{} over time", y.join(", ")),
    }
}
