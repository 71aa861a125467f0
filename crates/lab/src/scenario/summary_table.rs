//! Tables of an experiment.

use serde::Serialize;

use super::claim::{Selection, Test, as_written};

/// A table of means and comparisons: a row for each combination of labels, a column for each number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummaryTable {
    /// Short name, such as `frontier`; unique.
    pub id: String,
    /// Title.
    pub title: String,
    /// Text below it.
    pub caption: String,
    /// Axes, or fields of axes, with one row for each combination of their labels.
    pub rows: Vec<String>,
    /// Axes, or fields of axes, with a group of columns for each combination of their labels.
    pub across: Vec<String>,
    /// The cases: those with these labels; axes that are not named are averaged.
    #[serde(rename = "where", serialize_with = "as_written")]
    pub select: Selection,
    /// The numbers of a group of columns, at least one.
    pub columns: Vec<TableColumn>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableColumn {
    /// Its heading.
    pub title: String,
    /// Factor of numbers and margins, such as 100 for a share in per cent.
    pub scale: f64,
    /// Its number: as of a claim, among the cases of a row, without a band.
    #[serde(flatten)]
    pub test: Test,
}
