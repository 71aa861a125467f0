//! The definition of an experiment: a grid of cases, each run several times, with claims about its
//! rows, and figures and tables made from them.
//!
//! [`Library`] finds scenario files (TOML) and reads them. A file goes through these steps:
//!
//! ```text
//! text --tree--> values with lines --sweep--> the grid of combinations
//!     each combination --substitute--> its tables --run, links, changes, flows--> Setup
//!     all of them      --claims, figures, tables, digest--> Experiment
//! ```
//!
//! Everything is checked: a scenario that loads also runs. Errors have file and line.

mod apps;
mod claim;
mod claims;
mod describe;
mod digest;
mod error;
mod false_client;
mod figure;
mod figures;
mod flows;
mod label;
mod library;
mod link_changes;
mod links;
mod load;
mod paths;
mod reader;
mod run;
mod selected;
mod selection;
mod session;
mod setup;
mod sizes;
mod streaming;
mod substitute;
mod summary_table;
mod sweep;
mod tables;
mod traces;
mod tree;
mod tunnel;
mod video;
mod web;

use serde::Serialize;

pub use claim::{Against, Band, Claim, Compare, Selection, Take, Test, Verifiable};
pub use describe::{Description, describe};
pub use error::ScenarioError;
pub use figure::{Figure, FigureKind, Scale};
pub use label::{number_and_unit, number_of_label};
pub use library::{Library, LoadOptions};
pub use selected::Selected;
pub use session::SessionSetup;
pub use setup::{
    App, FeedbackPolicies, FlowPaths, FlowSpec, LinkChange, LinkFault, LinkSpec, Parallel, Setup,
    SizeDistribution, Spread, TransportSpec, TunnelSpec, UnknownSize,
};
pub use streaming::{ChunkedVideoSpec, ShortVideoSpec};
pub use summary_table::{SummaryTable, TableColumn};
pub use traces::UsedTrace;
pub use video::{VideoMode, VideoSpec};
pub use web::{Policer, WebChoice, WebModels, WebSpec};

/// An experiment, complete and checked.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Collection and name, such as `cubic-plus/e3`: the path of its file below the scenarios'
    /// folder, without extension.
    pub name: String,
    /// Its topic, in one line.
    pub title: String,
    /// Its source: paper, section, figure.
    pub source: String,
    /// Background for reading the results: choices made, contradictions of the source.
    pub about: String,
    /// True if this is the short form (`--quick`).
    pub quick: bool,
    /// The varied parameters, in the order of the file. Empty for a single case.
    pub axes: Vec<Axis>,
    /// Every combination of the axes' values; the last axis varies fastest.
    pub cases: Vec<Case>,
    /// Runs of each case, at least 1.
    pub repeats: u32,
    /// Seed of the first repeat; repeat `r` of every case has `seed + r`, so that cases are compared
    /// with the same random numbers.
    pub seed: u64,
    /// Claims about the rows.
    pub claims: Vec<Claim>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<SummaryTable>,
    /// The traces that links follow, each once, by name.
    pub traces: Vec<UsedTrace>,
    /// Runs of each case that the scenario itself asks for, in this form.
    pub planned_repeats: u32,
    /// SHA-256 of everything that rows depend on, in hexadecimal: rows of another digest don't
    /// belong to this experiment.
    pub digest: String,
}

/// A varied parameter.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Axis {
    /// Its name, used in the file, and as a column of the rows.
    pub name: String,
    /// Its values as written in rows, each once.
    pub labels: Vec<String>,
    /// The fields of its values, if these are tables: other names by which they can be selected and grouped.
    pub fields: Vec<AxisField>,
}

/// A field of the values of an axis, such as the class of each network.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AxisField {
    /// Its name.
    pub name: String,
    /// Its value for each of [`Axis::labels`]; `None` for one without it.
    pub values: Vec<Option<String>>,
}

/// One point of the grid.
#[derive(Clone, Debug)]
pub struct Case {
    /// The label of each axis, in the order of [`Experiment::axes`].
    pub labels: Vec<String>,
    /// The setup to run.
    pub setup: Setup,
}

/// One run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Run {
    /// Index in [`Experiment::cases`].
    pub case: usize,
    /// 0 to `repeats - 1`.
    pub repeat: u32,
    /// Seed of all randomness of the run.
    pub seed: u64,
}

impl Experiment {
    /// Every run: all cases with the first seed, then with the second, so that an interrupted
    /// experiment has complete repeats.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        (0..self.repeats).flat_map(move |repeat| {
            (0..self.cases.len()).map(move |case| Run {
                case,
                repeat,
                seed: self.seed.wrapping_add(u64::from(repeat)),
            })
        })
    }
}
