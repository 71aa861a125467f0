//! A page with prose, in which markers hold places for what comes from rows.
//!
//! ```text
//! <!-- lab claims cubic-plus -->    replaced up to    <!-- /lab -->
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use thiserror::Error;

use super::cells::cell;
use super::documented::Documented;
use super::{claims, counts, provenance, tables};
use crate::report::measured_table::MeasuredTable;
use crate::report::verdicts::here;

const BEGIN: &str = "<!-- lab ";
const CLOSE: &str = "-->";
const END: &str = "<!-- /lab -->";

/// Why a page can't be filled.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum DocumentError {
    /// It has no markers.
    #[error(
        "no markers: write <!-- lab claims COLLECTION --> and <!-- /lab --> where tables belong"
    )]
    NoMarkers,
    /// A marker is wrong.
    #[error("line {line}: {why}")]
    Marker {
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// What replaces the text after a marker.
enum Content {
    /// Within a line.
    Inline(String),
    /// Whole lines.
    Block(String),
}

/// What pages are made of.
struct Sources<'a> {
    results: &'a [Documented],
    /// The names of all scenarios.
    known: &'a [String],
}

/// A page for the collections of `names` that has markers and no prose yet.
pub fn document_template<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let collections: BTreeSet<&str> = names
        .into_iter()
        .map(|name| {
            name.split_once('/')
                .map_or(name, |(collection, _)| collection)
        })
        .collect();
    let all: Vec<&str> = collections.iter().copied().collect();
    let all = all.join(" ");
    let mut page = format!(
        "# Results\n\n{BEGIN}provenance {all} {CLOSE}\n{END}\n\n## Verdicts\n\n{BEGIN}summary {all} {CLOSE}\n{END}\n"
    );
    for collection in collections {
        let _ = write!(
            page,
            "\n## {collection}\n\n{BEGIN}claims {collection} {CLOSE}\n{END}\n"
        );
    }
    page
}

/// Replaces everything between the markers of `page` by what `results` give; `known` are the names of all scenarios, of
/// which those without results are named as not run. The rest of the page stays as it is.
pub fn fill_document(
    page: &str,
    results: &[Documented],
    known: &[String],
) -> Result<String, DocumentError> {
    let sources = Sources { results, known };
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let offset = page.len() - rest.len() + before.len();
        let line = 1 + page[..offset].matches('\n').count();
        let wrong = |why: String| DocumentError::Marker { line, why };
        let unclosed = || wrong(format!("the marker has no {END}"));
        let (order, after) = after.split_once(CLOSE).ok_or_else(unclosed)?;
        let (old, after) = after.split_once(END).ok_or_else(unclosed)?;
        if old.contains(BEGIN) {
            return Err(unclosed());
        }
        out.push_str(before);
        let _ = write!(out, "{BEGIN}{order}{CLOSE}");
        match sources.content(order.trim()).map_err(wrong)? {
            Content::Inline(text) => out.push_str(&text),
            Content::Block(text) => {
                let _ = write!(out, "\n\n{}\n\n", text.trim());
            }
        }
        out.push_str(END);
        rest = after;
    }
    if rest.len() == page.len() {
        return Err(DocumentError::NoMarkers);
    }
    out.push_str(rest);
    Ok(out)
}

impl Sources<'_> {
    /// What a marker stands for.
    fn content(&self, order: &str) -> Result<Content, String> {
        let (kind, of) = order.split_once(' ').unwrap_or((order, ""));
        let of = of.trim();
        match kind {
            "provenance" => {
                let (there, missing) = self.selected(of)?;
                Ok(Content::Block(provenance::provenance(&there, &missing)))
            }
            "summary" => Ok(Content::Block(counts::table(&self.selected(of)?.0))),
            "claims" => self.claims(of).map(Content::Block),
            "table" => self.table(of).map(Content::Block),
            "value" => self.value(of).map(Content::Inline),
            other => Err(format!(
                "`{other}`: a marker is one of provenance, summary, claims, table, value"
            )),
        }
    }

    /// The experiments that `what` names, one or several collections or experiments, and those of them without results.
    fn selected(&self, what: &str) -> Result<(Vec<&Documented>, Vec<&str>), String> {
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        let of_results = self.results.iter();
        let of_results = of_results.map(|documented| &documented.experiment.name);
        let names: BTreeSet<&String> = self.known.iter().chain(of_results).collect();
        for what in what.split_whitespace() {
            let folder = format!("{what}/");
            let is_chosen = |name: &&&String| **name == what || name.starts_with(&folder);
            let mut any = false;
            for name in names.iter().filter(is_chosen) {
                any = true;
                match self.experiment(name) {
                    Ok(documented) => there.push(documented),
                    Err(_) => missing.push(name.as_str()),
                }
            }
            if !any {
                return Err(format!("no experiment or collection `{what}`"));
            }
        }
        if there.is_empty() {
            return Err(format!("no results of `{what}`"));
        }
        Ok((there, missing))
    }

    fn experiment(&self, name: &str) -> Result<&Documented, String> {
        let mut all = self.results.iter();
        all.find(|documented| documented.experiment.name == name)
            .ok_or_else(|| format!("no results of `{name}`"))
    }

    /// A section for each experiment.
    fn claims(&self, what: &str) -> Result<String, String> {
        let (there, missing) = self.selected(what)?;
        let mut out = String::new();
        for documented in there {
            let experiment = &documented.experiment;
            let _ = writeln!(
                out,
                "{}\n{} runs; repeats: {}; commit {}.\n\n{}",
                claims::heading(experiment),
                documented.runs(),
                documented.repeats(),
                documented.commits(),
                claims::table(experiment, &documented.verdicts)
            );
            for measured in &documented.tables {
                let _ = writeln!(out, "{}", tables::titled(measured));
            }
        }
        if !missing.is_empty() {
            let _ = writeln!(out, "Not run: {}.", missing.join(", "));
        }
        Ok(out)
    }

    /// `EXPERIMENT ID`: one table.
    fn table(&self, of: &str) -> Result<String, String> {
        let (name, id) = of.split_once(' ').unwrap_or((of, ""));
        let measured = table_of(self.experiment(name)?, id.trim())?;
        Ok(tables::table(measured))
    }

    /// `EXPERIMENT CLAIM`, or `EXPERIMENT TABLE; LABELS; COLUMN`: one number.
    fn value(&self, of: &str) -> Result<String, String> {
        let (name, what) = of.split_once(' ').unwrap_or((of, ""));
        let documented = self.experiment(name)?;
        let parts: Vec<&str> = what.split(';').map(str::trim).collect();
        let shown = match parts.as_slice() {
            [claim] => {
                let mut verdicts = documented.verdicts.iter();
                let verdict = verdicts.find(|verdict| verdict.id == *claim);
                here(verdict.ok_or_else(|| format!("{name} has no claim `{claim}`"))?)
            }
            [id, labels, column] => cell_of(table_of(documented, id)?, labels, column)?,
            _ => return Err("write a claim, or a table, labels and a column between ;".to_owned()),
        };
        if shown.is_empty() {
            return Err(format!("{what} of {name} has no data"));
        }
        Ok(cell(&shown))
    }
}

fn table_of<'a>(documented: &'a Documented, id: &str) -> Result<&'a MeasuredTable, String> {
    let mut tables = documented.tables.iter();
    tables
        .find(|measured| measured.id == id)
        .ok_or_else(|| format!("{} has no table `{id}`", documented.experiment.name))
}

/// A cell by the labels of its row, separated by commas, and its heading.
fn cell_of(measured: &MeasuredTable, labels: &str, column: &str) -> Result<String, String> {
    let id = &measured.id;
    let place = (measured.columns.iter())
        .position(|heading| heading == column)
        .ok_or_else(|| {
            let known = measured.columns.join("`, `");
            format!("the table `{id}` has no column `{column}`, but `{known}`")
        })?;
    let row = (measured.rows.iter())
        .find(|row| row.labels.join(", ") == labels)
        .ok_or_else(|| format!("the table `{id}` has no row `{labels}`"))?;
    Ok(row.cells[place].shown.clone())
}
