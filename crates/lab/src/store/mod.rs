//! Rows on disk: one for each finished run, kept when the work is interrupted, never half-written.

use crate::scenario::Run;

/// One finished run, as a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which run.
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
    /// Names of the measures: of all cases together, each once, in the order of the first case that
    /// has it.
    pub measures: Vec<String>,
    /// The rows, by repeat and case.
    pub rows: Vec<Row>,
}
