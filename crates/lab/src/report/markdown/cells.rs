//! Cells and rows of Markdown tables.

/// Text on one line, escaped so that it neither ends the cell nor starts a tag.
pub(super) fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

/// A row of a table, of cells that are escaped.
pub(super) fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a table.
pub(super) fn head(headings: &[&str]) -> String {
    let headings: Vec<String> = headings.iter().map(|heading| cell(heading)).collect();
    row(&headings) + &format!("|{}\n", "---|".repeat(headings.len()))
}
