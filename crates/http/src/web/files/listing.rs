//! Directory listings: a plain HTML page of links.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use super::path::encode_segment;

/// Entries beyond these are not shown.
const MAX_ENTRIES: usize = 10_000;

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// Sorted first: directories come before files.
    is_file: bool,
    name: String,
    length: u64,
}

/// The entries of `directory`, directories first, by name. Names that are not UTF-8 can't be asked
/// for and are left out.
pub(super) fn read_entries(directory: &Path, hidden: bool) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') && !hidden {
            continue;
        }
        // A dangling link can't be followed.
        let Ok(metadata) = fs::metadata(entry.path()) else {
            continue;
        };
        entries.push(Entry {
            is_file: !metadata.is_dir(),
            name,
            length: metadata.len(),
        });
    }
    entries.sort();
    Ok(entries)
}

/// The page that lists `entries` of the directory at `uri`.
pub(super) fn render(uri: &str, entries: &[Entry]) -> String {
    let title = escape(uri);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body><h1>{title}</h1>\n<ul>\n"
    );
    if uri != "/" {
        page.push_str("<li><a href=\"../\">../</a></li>\n");
    }
    for entry in entries {
        let href = encode_segment(&entry.name);
        let name = escape(&entry.name);
        // Writing to a string can't fail.
        let _ = if entry.is_file {
            writeln!(
                page,
                "<li><a href=\"./{href}\">{name}</a> {}</li>",
                entry.length
            )
        } else {
            writeln!(page, "<li><a href=\"./{href}/\">{name}/</a></li>")
        };
    }
    page.push_str("</ul></body></html>\n");
    page
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
