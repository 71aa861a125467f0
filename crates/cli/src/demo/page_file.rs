//! Where a demonstration writes its page.

use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::part_file::PartFile;

/// The path of a page: the requested one, or the default one unless there is to be none. It is checked to be
/// writable now and not after a minute. A page that was not requested is omitted rather than failing the showing.
pub(in crate::demo) fn choose(
    requested: Option<PathBuf>,
    none: bool,
    default: &str,
) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = requested {
        writable(&path)?;
        return Ok(Some(path));
    }
    if none {
        return Ok(None);
    }
    let path = PathBuf::from(default);
    match writable(&path) {
        Ok(()) => Ok(Some(path)),
        Err(failure) => {
            output::note(&format!("no page: {failure}"));
            Ok(None)
        }
    }
}

fn writable(page: &Path) -> Result<(), Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::new(
            Exit::LocalFile,
            format_args!("{why} (--page FILE writes elsewhere, --no-page nowhere)"),
        )
    };
    if page.is_dir() || page.file_name().is_none() {
        return Err(refused(&format_args!(
            "cannot write {}: it is a directory",
            page.display()
        )));
    }
    match PartFile::create(page, true) {
        // Removed when dropped.
        Ok(_probe) => Ok(()),
        Err(error) => Err(refused(&error)),
    }
}
