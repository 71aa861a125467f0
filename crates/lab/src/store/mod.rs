//! Rows on disk: one for each finished run, kept when the work is interrupted, never partial.
//!
//! A folder of [`Results`] belongs to one experiment:
//!
//! ```text
//! manifest.json   what the rows belong to; written first
//! rows.csv        one line for each finished run; the same for the same seed once all are there
//! timing.csv      what each run cost
//! series/         time series, <case>-<repeat>.csv, of experiments that record
//! samples/        transfers and starts of viewers, likewise
//! verdicts.json   how the claims fared
//! report.html     the page for people
//! rows.parquet    the rows in columns, if wanted
//! old-1/ ...      results that were put aside
//! ```
//!
//! The folder of a collection has an `index.html` that lists its experiments.
//!
//! A row is valid when its line is complete and its files exist; those are written first. The state
//! left by a killed process is therefore usable, and at most the rows of the last second are lost
//! if the machine fails.

mod collection;
mod error;
mod find;
mod lock;
mod manifest;
mod merge;
mod names;
mod old_results;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod results;
mod rows;
mod shape;
mod timing;
mod whole_file;

pub use collection::write_index;
pub use error::StoreError;
pub use find::find;
pub use manifest::{Manifest, Origin, UNKNOWN_COMMIT};
pub use merge::merge;
pub use results::Results;
pub use timing::Timing;

use crate::scenario::Run;

/// One finished run, as a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The run.
    pub run: Run,
    /// The label of each axis.
    pub labels: Vec<String>,
    /// One value for each column of [`Table::measures`].
    pub values: Vec<Option<f64>>,
}

/// All rows of an experiment, in the order of its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Names of the measures: of all cases, each once, in order of first appearance.
    pub measures: Vec<String>,
    /// The rows, by repeat and case.
    pub rows: Vec<Row>,
}
