//! A table of an experiment as HTML.

use std::fmt::Write as _;

use super::html::escape;
use super::measured_table::MeasuredTable;

/// The table with its title and its notes.
pub(super) fn table(measured: &MeasuredTable) -> String {
    let id = escape(&measured.id);
    let mut out = format!(
        "<figure id=\"table-{id}\">\n<figcaption>{id}: {}</figcaption>\n<div class=\"scroll\"><table>\n\
         <thead><tr>",
        escape(&measured.title)
    );
    for heading in measured.keys.iter().chain(&measured.columns) {
        let _ = write!(out, "<th>{}</th>", escape(heading));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &measured.rows {
        out.push_str("<tr>");
        for label in &row.labels {
            let _ = write!(out, "<td>{}</td>", escape(label));
        }
        for cell in &row.cells {
            let _ = write!(out, "<td class=\"number\">{}</td>", escape(&cell.shown));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    if !measured.caption.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"caption\">{}</p>",
            escape(&measured.caption)
        );
    }
    if !measured.notes.is_empty() {
        let notes = escape(&measured.notes.join(" "));
        let _ = writeln!(out, "<p class=\"notes\">{notes}</p>");
    }
    out.push_str("</figure>\n");
    out
}
