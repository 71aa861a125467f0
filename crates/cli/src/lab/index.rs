//! The index page of each collection in the folder of results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swiftwater_lab::claim;
use swiftwater_lab::report::{IndexEntry, index};
use swiftwater_lab::store::{Manifest, Results, find, write_index};

use super::SourceArgs;
use super::evaluation::Evaluation;
use crate::exit::Failure;
use crate::output;

/// Writes the page of every collection that one of `conclusions` belongs to. Earlier experiments in
/// the folder are listed too, except those in `reported`, which were reported as unreadable. Returns
/// the pages.
pub(super) fn write<'a>(
    source: &SourceArgs,
    conclusions: impl IntoIterator<Item = &'a mut Evaluation>,
    reported: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let mut collections: BTreeMap<PathBuf, Vec<&mut Evaluation>> = BTreeMap::new();
    for conclusion in conclusions {
        if let Some(folder) = collection(conclusion) {
            collections.entry(folder).or_default().push(conclusion);
        }
    }
    let mut pages = Vec::new();
    for (folder, conclusions) in collections {
        let page = page(source, &folder, &conclusions, reported)?;
        let path = write_index(&folder, &page)?;
        for conclusion in conclusions {
            conclusion.index = Some(path.clone());
        }
        pages.push(path);
    }
    Ok(pages)
}

/// Prints the paths of the pages.
pub(super) fn print_paths(pages: &[PathBuf]) -> Result<(), Failure> {
    for page in pages {
        output::line(&format!("index: {}", page.display()))?;
    }
    Ok(())
}

/// The folder of the collection; `None` if the experiment belongs to no collection, or is elsewhere.
fn collection(conclusion: &Evaluation) -> Option<PathBuf> {
    let name = Path::new(&conclusion.name);
    let below = name.components().count().checked_sub(1)?;
    if below == 0 || !conclusion.folder.ends_with(name) {
        return None;
    }
    conclusion
        .folder
        .ancestors()
        .nth(below)
        .map(Path::to_path_buf)
}

fn page(
    source: &SourceArgs,
    folder: &Path,
    conclusions: &[&mut Evaluation],
    reported: &[PathBuf],
) -> Result<String, Failure> {
    let mut entries = Vec::new();
    for place in find(folder)? {
        let link = link(folder, &place);
        let now = conclusions.iter().find(|now| now.folder == place);
        let entry = match now {
            Some(conclusion) => Ok(conclusion.entry(link)),
            None => earlier(source, &place, link),
        };
        match entry {
            Ok(entry) => entries.push(entry),
            Err(_) if reported.contains(&place) => {}
            Err(failure) => {
                let place = place.display();
                output::note(&format!("{place} is left out of the index: {failure}"));
            }
        }
    }
    Ok(index(&entries))
}

/// The entry of results that this command has not changed.
fn earlier(source: &SourceArgs, folder: &Path, link: String) -> Result<IndexEntry, Failure> {
    let experiment = source.experiment_of(&Manifest::read(folder)?)?;
    let table = Results::read(folder, &experiment)?.table()?;
    let verdicts = claim::evaluate(&experiment, &table);
    let rows = table.rows.len();
    Ok(IndexEntry::new(&experiment, rows, &verdicts, link))
}

/// The report, or the rows if there is none, as a URL relative to the index.
fn link(from: &Path, folder: &Path) -> String {
    let file = ["report.html", "rows.csv"]
        .into_iter()
        .find(|file| folder.join(file).is_file());
    let path = folder.join(file.unwrap_or_default());
    let below = path.strip_prefix(from).unwrap_or(&path);
    let parts = below.components();
    let parts: Vec<String> = parts
        .map(|part| address(&part.as_os_str().to_string_lossy()))
        .collect();
    parts.join("/")
}

/// A path segment, percent-encoded for a URL (RFC 3986, section 2.1).
fn address(part: &str) -> String {
    part.bytes()
        .map(|byte| match byte {
            b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
