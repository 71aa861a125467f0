//! `lab report`.

use std::path::{Path, PathBuf};

use clap::Args;
use swiftwater_lab::store::{Manifest, Results, find};

use super::evaluation::{Evaluation, check_format, judge};
use super::{Format, SourceArgs, document, index};
use crate::exit::Failure;
use crate::output;

/// `lab report`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab report lab-results
  swiftwater lab report lab-results/cubic-plus/e3 --strict
  swiftwater lab report lab-results --markdown docs/results.md
  swiftwater lab report lab-results --markdown docs/results.md --check

--markdown replaces what stands between markers in a page, and writes nothing else. The page has no times: the
same rows give the same page. Each marker ends at <!-- /lab -->; WHAT is collections or experiments:
  <!-- lab provenance WHAT -->             commits, runs, repeats, seeds, traces
  <!-- lab summary WHAT -->                how many claims failed, are open and passed
  <!-- lab claims WHAT -->                 a section for each experiment: claims, misses first, and tables
  <!-- lab table EXPERIMENT ID -->         one [[table]] of a scenario
  <!-- lab value EXPERIMENT CLAIM -->      within a line: the number of a claim
  <!-- lab value EXPERIMENT ID; LABELS; COLUMN -->   within a line: a cell of a table
A page that does not exist is made, with markers for everything.

Claims and figures are those of the scenario as it is now; rows stay as they are. Folders that can't be
read are named and left out; the exit code is then that of the first.")]
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

    /// Fail if a claim fails or is open, or has no data in a complete run
    #[arg(long)]
    pub strict: bool,

    /// Fill the markers of this Markdown page, and write nothing else
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["strict", "json"])]
    pub markdown: Option<PathBuf>,

    /// With --markdown: fail unless the page is what the rows give; write nothing
    #[arg(long, requires = "markdown")]
    pub check: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(args: &ReportArgs) -> Result<(), Failure> {
    check_format(args.format)?;
    if let Some(page) = &args.markdown {
        return document::run(args, page);
    }
    let mut conclusions = Vec::new();
    let mut worst = None;
    let mut left_out = Vec::new();
    // The others are reported, whatever the errors of one.
    let mut bad = |failure: Failure| {
        output::note(&format!("error: {failure}"));
        worst.get_or_insert(failure.exit);
    };
    for root in &args.folders {
        let folders = match find(root) {
            Ok(folders) => folders,
            Err(error) => {
                bad(error.into());
                continue;
            }
        };
        for folder in folders {
            match report(args, &folder) {
                Ok(conclusion) => {
                    if !args.json {
                        output::line(&format!("{}\n", conclusion.text()))?;
                    }
                    conclusions.push(conclusion);
                }
                Err(failure) => {
                    bad(failure.context(format_args!("{} is left out", folder.display())));
                    left_out.push(folder);
                }
            }
        }
    }
    let pages = index::write(&args.source, &mut conclusions, &left_out)?;
    if args.json {
        output::json(&conclusions)?;
    } else {
        index::print_paths(&pages)?;
    }
    match worst {
        Some(exit) => Err(Failure::reported(exit)),
        None => judge(args.strict, false, &conclusions),
    }
}

fn report(args: &ReportArgs, folder: &Path) -> Result<Evaluation, Failure> {
    let experiment = args.source.experiment_of(&Manifest::read(folder)?)?;
    let results = Results::read(folder, &experiment)?;
    Evaluation::of(&experiment, &results, true, args.format)
}
