//! The index page of a collection, in the folder above those of its experiments.

use std::path::{Path, PathBuf};

use super::{StoreError, names, whole_file};

/// Writes `index.html` into `folder`, the one that holds the results of a collection, and returns
/// its path.
pub fn write_index(folder: &Path, page: &str) -> Result<PathBuf, StoreError> {
    let path = folder.join(names::INDEX);
    whole_file::write_unlocked(&path, page.as_bytes())?;
    Ok(path)
}
