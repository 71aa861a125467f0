//! Moves existing results to make room for new ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{StoreError, names, whole_file};

/// Moves all results in `folder` to a new folder inside it.
pub(super) fn put_aside(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    let there: Vec<&str> = names::ALL
        .into_iter()
        .filter(|name| folder.join(name).exists())
        .collect();
    if there.is_empty() {
        return Ok(None);
    }
    let mut number = 1;
    let aside = loop {
        let path = folder.join(format!("{}{number}", names::OLD));
        match fs::create_dir(&path) {
            Ok(()) => break path,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(StoreError::io(&path)(error)),
        }
    };
    for name in there {
        let from = folder.join(name);
        fs::rename(&from, aside.join(name)).map_err(StoreError::io(&from))?;
    }
    whole_file::sync_folder(folder);
    Ok(Some(aside))
}
