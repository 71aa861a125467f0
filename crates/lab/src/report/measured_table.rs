//! The tables of an experiment: numbers from its rows.

use serde::Serialize;

use crate::claim::{Estimate, Outcome, Rows, estimate};
use crate::scenario::{Compare, Experiment, Selected, SummaryTable, TableColumn};
use crate::store::Table;

/// A table with its numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredTable {
    /// [`SummaryTable::id`].
    pub id: String,
    /// Its title.
    pub title: String,
    /// Text below it.
    pub caption: String,
    /// The axes, or fields of axes, that make rows.
    pub keys: Vec<String>,
    /// Headings of the columns after those.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<MeasuredRow>,
    /// How to read it.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredRow {
    /// The labels of the table's keys.
    pub labels: Vec<String>,
    /// One cell for each column.
    pub cells: Vec<MeasuredCell>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredCell {
    /// As text, with half of the 95 % confidence interval; a dash if there are no such cases, or if they are what is
    /// compared with.
    pub shown: String,
    /// The number before it is scaled; `None` for a dash.
    pub estimate: Option<Estimate>,
}

/// Shown in cells without cases.
const DASH: &str = "-";

/// The tables of an experiment, in its order.
pub fn measured_tables(experiment: &Experiment, table: &Table) -> Vec<MeasuredTable> {
    let rows = Rows::new(experiment, table);
    let tables = experiment.tables.iter();
    tables
        .map(|table| measured_table(experiment, table, &rows))
        .collect()
}

fn measured_table(experiment: &Experiment, table: &SummaryTable, rows: &Rows<'_>) -> MeasuredTable {
    let cases = rows.selected(&table.select);
    let groups: Vec<Vec<String>> = cases
        .grouped(&table.across)
        .into_iter()
        .map(|(labels, _)| labels.into_iter().map(str::to_owned).collect())
        .collect();
    let columns = groups.iter().flat_map(|group| {
        let columns = table.columns.iter();
        columns.map(move |column| match group.as_slice() {
            [] => column.title.clone(),
            labels => format!("{}: {}", labels.join(", "), column.title),
        })
    });
    let columns = columns.collect();
    let of_row = |(labels, of_row): (Vec<&str>, Selected<'_>)| {
        let parts = of_row.grouped(&table.across);
        let cells = groups.iter().flat_map(|group| {
            let part = parts.iter().find(|(labels, _)| labels == group);
            let columns = table.columns.iter();
            columns.map(move |column| match part {
                None => dash(),
                Some((_, part)) => cell(experiment, column, part, rows),
            })
        });
        MeasuredRow {
            cells: cells.collect(),
            labels: labels.into_iter().map(str::to_owned).collect(),
        }
    };
    let rows_of_table: Vec<MeasuredRow> =
        cases.grouped(&table.rows).into_iter().map(of_row).collect();
    MeasuredTable {
        id: table.id.clone(),
        title: table.title.clone(),
        caption: table.caption.clone(),
        keys: table.rows.clone(),
        columns,
        notes: notes(experiment, table, &cases, &rows_of_table),
        rows: rows_of_table,
    }
}

fn dash() -> MeasuredCell {
    MeasuredCell {
        shown: DASH.to_owned(),
        estimate: None,
    }
}

fn cell(
    experiment: &Experiment,
    column: &TableColumn,
    cases: &Selected<'_>,
    rows: &Rows<'_>,
) -> MeasuredCell {
    let cases = cases.within(&column.test.select);
    if cases.cases().is_empty() || is_reference(experiment, &column.test.compare, &cases) {
        return dash();
    }
    let estimate = estimate(&column.test, &cases, rows);
    let mut shown = match estimate.outcome {
        Outcome::NoData => "no data".to_owned(),
        _ => estimate.shown_times(column.scale, &column.test),
    };
    if is_partial(&estimate) {
        shown.push('*');
    }
    MeasuredCell {
        shown,
        estimate: Some(estimate),
    }
}

/// Whether runs are left out that had nothing to measure.
fn is_partial(estimate: &Estimate) -> bool {
    estimate.runs.is_some_and(|(used, all)| used < all)
}

/// Whether all cases are what they would be compared with.
pub(super) fn is_reference(
    experiment: &Experiment,
    compare: &Compare,
    cases: &Selected<'_>,
) -> bool {
    let against = match compare {
        Compare::Ratio(against) | Compare::Change(against) | Compare::Difference(against) => {
            against
        }
        Compare::Value => return false,
    };
    against.measure.is_none()
        && cases.cases().iter().all(|&case| {
            let labels = experiment.axes.iter().zip(&experiment.cases[case].labels);
            let mut labels = labels.map(|(axis, label)| (&axis.name, label));
            labels.all(|(axis, label)| against.select.get(axis).is_none_or(|other| other == label))
        })
}

fn notes(
    experiment: &Experiment,
    table: &SummaryTable,
    cases: &Selected<'_>,
    rows: &[MeasuredRow],
) -> Vec<String> {
    let mut notes = Vec::new();
    let mut averaged: Vec<String> = Vec::new();
    for column in &table.columns {
        let cases = cases.within(&column.test.select);
        for axis in cases.others(&[&table.rows, &table.across, &column.test.each]) {
            if !averaged.contains(&axis) {
                averaged.push(axis);
            }
        }
    }
    if !averaged.is_empty() {
        notes.push(format!("Means over {}.", averaged.join(", ")));
    }
    let is_compared = |column: &TableColumn| !matches!(column.test.compare, Compare::Value);
    if experiment.repeats > 1 {
        let paired = if table.columns.iter().any(is_compared) {
            "; comparisons are of runs with the same seed"
        } else {
            ""
        };
        notes.push(format!(
            "±: half of the 95 % confidence interval over repeats{paired}."
        ));
    }
    let mut cells = rows.iter().flat_map(|row| &row.cells);
    if cells.any(|cell| cell.estimate.as_ref().is_some_and(is_partial)) {
        notes.push("*: without runs that had nothing to measure.".to_owned());
    }
    notes
}
