//! Finds folders with results.

use std::fs;
use std::path::{Path, PathBuf};

use super::{StoreError, names};

/// Deepest nesting that is searched: collections are one level.
const DEEPEST: u32 = 8;

/// The folders at or below `root` with results, in alphabetical order. Moved old results are not
/// included.
pub fn find(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    look(root, 0, &mut found)?;
    if found.is_empty() {
        return Err(StoreError::NoResults(root.to_owned()));
    }
    found.sort();
    Ok(found)
}

fn look(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), StoreError> {
    if folder.join(names::MANIFEST).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == DEEPEST {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(StoreError::io(folder))? {
        let entry = entry.map_err(StoreError::io(folder))?;
        let kind = entry.file_type().map_err(StoreError::io(folder))?;
        // Links are not followed: they may form cycles.
        let name = entry.file_name();
        if kind.is_dir() && !name.to_string_lossy().starts_with(names::OLD) {
            look(&entry.path(), depth + 1, found)?;
        }
    }
    Ok(())
}
