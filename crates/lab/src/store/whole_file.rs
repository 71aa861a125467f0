//! Files that appear under their name only when they are complete and on disk.
//!
//! The caller holds the folder's lock and writes each name from one thread, so the temporary name
//! is fixed; files left by a killed process are overwritten or removed. Only [`write_unlocked`] is
//! for files that several processes write.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::StoreError;

/// Suffix of temporary names.
const PART: &str = ".part";

/// Writes `content` to `path`, atomically replacing an existing file.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    write_via(&part_of(path), path, content)
}

fn write_via(part: &Path, path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut file = File::create(part).map_err(StoreError::io(part))?;
    file.write_all(content)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::io(part))?;
    drop(file);
    fs::rename(part, path).map_err(StoreError::io(path))?;
    if let Some(folder) = path.parent() {
        sync_folder(folder);
    }
    Ok(())
}

/// The same without the folder's lock: several processes may write the file, and the last one wins.
pub(super) fn write_unlocked(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut name = OsString::from(path);
    name.push(format!(".{}", std::process::id()));
    write_via(&part_of(Path::new(&name)), path, content)
}

/// The same in a folder that may not exist yet.
pub(super) fn write_below(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
    }
    write(path, content)
}

/// The content of a file; `None` if there is none.
pub(super) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path)(error)),
    }
}

/// Removes incomplete files in `folder`.
pub(super) fn remove_parts(folder: &Path) -> Result<(), StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(folder)(error)),
    };
    for entry in entries {
        let path = entry.map_err(StoreError::io(folder))?.path();
        if path.to_string_lossy().ends_with(PART) {
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
        }
    }
    Ok(())
}

/// Makes renames in `folder` durable across a power failure. Some file systems can't sync a folder;
/// the content of files is safe regardless.
pub(super) fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(PART);
    PathBuf::from(name)
}
