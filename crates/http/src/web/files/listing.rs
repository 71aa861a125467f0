//! Directory listings: a plain HTML page of links, with sizes and dates. Blocks, except
//! [`ListingCache`], which caches pages for a short time, because generating one costs far more than a
//! request for it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;

use super::error::FileError;
use super::tree::Tree;
use crate::web::request_path::encode_segment;

/// How long a page is cached.
const LIFETIME: Duration = Duration::from_secs(1);

/// Capacity of the cache, pages.
const MAX_PAGES: usize = 32;

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Sorted first: directories come before files.
    is_file: bool,
    name: String,
    length: u64,
    modified: Option<SystemTime>,
}

/// The entries of a directory.
#[derive(Debug)]
struct Entries {
    /// Directories first, by name.
    shown: Vec<Entry>,
    /// Whether there are more entries than the limit.
    more: bool,
}

/// Options of listings.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListingOptions {
    /// Whether names with a leading dot are shown.
    pub(super) hidden: bool,
    /// Most entries that are read and shown.
    pub(super) most: usize,
}

/// Generates the page of the directory at `relative`, whose URI is `uri`.
pub(super) fn make(
    tree: &Tree,
    relative: &Path,
    uri: &str,
    options: ListingOptions,
) -> Result<Bytes, FileError> {
    let entries = read_entries(tree, relative, options)?;
    Ok(render(uri, &entries, options.most).into())
}

/// Names that are not UTF-8 can't be requested and are left out, as are links to nothing or out of the
/// root.
fn read_entries(
    tree: &Tree,
    relative: &Path,
    options: ListingOptions,
) -> Result<Entries, FileError> {
    let mut shown = Vec::new();
    let mut read = 0;
    let mut more = false;
    for entry in fs::read_dir(tree.resolve(relative)?)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') && !options.hidden {
            continue;
        }
        if read == options.most {
            more = true;
            break;
        }
        read += 1;
        // Looked up below the root: the directory may have been replaced since.
        let Ok(metadata) = tree.metadata(&relative.join(&name)) else {
            continue;
        };
        shown.push(Entry {
            is_file: !metadata.is_dir(),
            name,
            length: metadata.len(),
            modified: metadata.modified().ok(),
        });
    }
    shown.sort();
    Ok(Entries { shown, more })
}

fn render(uri: &str, entries: &Entries, most: usize) -> String {
    let title = escape(uri);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>td{{padding-right:2em}}td:nth-child(2){{text-align:right}}</style></head>\n\
         <body><h1>{title}</h1>\n<table>\n"
    );
    if uri != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    for entry in &entries.shown {
        let href = encode_segment(entry.name.as_bytes());
        let name = escape(&entry.name);
        let slash = if entry.is_file { "" } else { "/" };
        let size = if entry.is_file {
            size(entry.length)
        } else {
            String::new()
        };
        let date = entry
            .modified
            .map_or_else(String::new, httpdate::fmt_http_date);
        // Writing to a string can't fail.
        let _ = writeln!(
            page,
            "<tr><td><a href=\"./{href}{slash}\">{name}{slash}</a></td><td>{size}</td><td>{date}</td></tr>"
        );
    }
    page.push_str("</table>\n");
    if entries.more {
        let _ = writeln!(page, "<p>There are more than the {most} shown here.</p>");
    }
    page.push_str("</body></html>\n");
    page
}

/// A number of bytes with a decimal unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1e3;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 999.95 {
            break;
        }
        value /= 1e3;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Pages generated within the last second, by directory.
#[derive(Debug, Default)]
pub(super) struct ListingCache {
    pages: Mutex<BTreeMap<PathBuf, (Instant, Bytes)>>,
    /// Locked while a page is generated: one at a time, and waiting requests then find it in the
    /// cache.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl ListingCache {
    /// The cached page of `directory`, if it is fresh.
    pub(super) fn get(&self, directory: &Path) -> Option<Bytes> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, page) = pages.get(directory)?;
        (made.elapsed() < LIFETIME).then(|| page.clone())
    }

    /// Stores `page`, and removes expired ones, or the oldest ones beyond the capacity.
    pub(super) fn keep(&self, directory: PathBuf, page: Bytes) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|_, (made, _)| made.elapsed() < LIFETIME);
        if pages.len() >= MAX_PAGES
            && let Some(oldest) = pages.iter().min_by_key(|(_, (made, _))| *made)
        {
            let oldest = oldest.0.clone();
            pages.remove(&oldest);
        }
        pages.insert(directory, (Instant::now(), page));
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (20_000_000_000, "20.0 GB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
