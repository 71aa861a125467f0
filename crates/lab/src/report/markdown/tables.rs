//! The tables of an experiment.

use super::cells::{cell, head, row};
use crate::report::measured_table::MeasuredTable;

/// A table with its caption and notes, without its title.
pub(super) fn table(measured: &MeasuredTable) -> String {
    let headings = measured.keys.iter().chain(&measured.columns);
    let headings: Vec<&str> = headings.map(String::as_str).collect();
    let mut out = head(&headings);
    for line in &measured.rows {
        let labels = line.labels.iter().map(String::as_str);
        let cells = line.cells.iter().map(|cell| cell.shown.as_str());
        let cells: Vec<String> = labels.chain(cells).map(cell).collect();
        out.push_str(&row(&cells));
    }
    let below: Vec<&str> = std::iter::once(measured.caption.as_str())
        .chain(measured.notes.iter().map(String::as_str))
        .filter(|text| !text.is_empty())
        .collect();
    if !below.is_empty() {
        out.push('\n');
        out.push_str(&cell(&below.join(" ")));
        out.push('\n');
    }
    out
}

/// The same with its title.
pub(super) fn titled(measured: &MeasuredTable) -> String {
    format!("#### {}\n\n{}", cell(&measured.title), table(measured))
}
