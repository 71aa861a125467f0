//! `lab`: experiments as data, run on the real stack in virtual time.
//!
//! One module per command; `evaluation` evaluates the rows for `run`, `report` and `merge`.

mod check;
mod controllers;
mod document;
mod evaluation;
mod failure;
mod flag_values;
mod index;
mod list;
mod merge;
mod progress_display;
mod report;
mod run;
mod show;
mod source;
mod stop;
mod verdicts;

use clap::{Args, Subcommand};

pub use check::CheckArgs;
pub use controllers::ControllersArgs;
pub use flag_values::{Format, Only, RecordInterval, Setting, Shard};
pub use list::ListArgs;
pub use merge::MergeArgs;
pub use report::ReportArgs;
pub use run::RunArgs;
pub use show::ShowArgs;
pub use source::SourceArgs;

use crate::exit::Failure;

/// `lab`.
#[derive(Args, Debug)]
pub struct LabArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The commands of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List experiments
    List(ListArgs),
    /// Describe an experiment: its axes, claims and figures
    Show(ShowArgs),
    /// List congestion controllers with their parameters
    Controllers(ControllersArgs),
    /// Run experiments, check their claims and write reports
    Run(Box<RunArgs>),
    /// Evaluate and draw results again, without running anything
    Report(ReportArgs),
    /// Join the results of shards
    Merge(MergeArgs),
    /// Check scenario files
    Check(CheckArgs),
}

pub(crate) fn run(args: LabArgs) -> Result<(), Failure> {
    match args.command {
        LabCommand::List(args) => list::run(&args),
        LabCommand::Show(args) => show::run(&args),
        LabCommand::Controllers(args) => controllers::run(&args),
        LabCommand::Run(args) => run::run(&args),
        LabCommand::Report(args) => report::run(&args),
        LabCommand::Merge(args) => merge::run(&args),
        LabCommand::Check(args) => check::run(&args),
    }
}
