//! Files that have their final name only when they are complete.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};
use thiserror::Error;

use crate::exit::{Exit, Failure, plain_io_error};

/// Longest part of the final name in the temporary name: names are limited to 255 bytes.
const NAME_EXCERPT: usize = 200;

/// A file could not be written.
#[derive(Debug, Error)]
pub enum PartFileError {
    /// The final name is taken and overwriting was not requested.
    #[error("{} exists already (--force overwrites it)", .0.display())]
    Exists(PathBuf),
    /// The file system is full, or the user's quota is.
    #[error("disk full: cannot write {}", .0.display())]
    DiskFull(PathBuf),
    /// Anything else.
    #[error("cannot write {}: {}", .path.display(), plain_io_error(.source))]
    Io {
        /// The final name.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl From<PartFileError> for Failure {
    fn from(error: PartFileError) -> Self {
        Self::new(Exit::LocalFile, error)
    }
}

/// A file being written under the name `.NAME.part-XXXXXX` in its final directory.
///
/// [`PartFile::complete`] renames it after all bytes are on disk; dropping it removes it. If the
/// process is killed, the part file stays and the final name does not exist.
#[derive(Debug)]
pub struct PartFile {
    path: PathBuf,
    overwrite: bool,
    file: NamedTempFile,
}

impl PartFile {
    /// Starts to write the file that will be `path`. Fails at once if the name is taken, unless
    /// `overwrite`.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, PartFileError> {
        Self::create_with(path, overwrite, |part| {
            // As any new file: permissions by the user's umask.
            File::options().write(true).create_new(true).open(part)
        })
    }

    /// The same with a part file created by `open`, which must fail with `AlreadyExists` if its path
    /// is taken; another path is then tried.
    pub fn create_with(
        path: &Path,
        overwrite: bool,
        open: impl FnMut(&Path) -> io::Result<File>,
    ) -> Result<Self, PartFileError> {
        if !overwrite && path.symlink_metadata().is_ok() {
            return Err(PartFileError::Exists(path.to_owned()));
        }
        let directory = directory_of(path);
        let name = path
            .file_name()
            .unwrap_or(OsStr::new("download"))
            .to_string_lossy();
        let end = (0..=NAME_EXCERPT.min(name.len()))
            .rev()
            .find(|end| name.is_char_boundary(*end));
        let excerpt = &name[..end.unwrap_or(0)];
        let mut builder = Builder::new();
        let prefix = format!(".{excerpt}.part-");
        builder.prefix(&prefix).rand_bytes(6);
        let file = builder
            .make_in(directory, open)
            .map_err(|error| failed(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            overwrite,
            file,
        })
    }

    /// Appends `data`.
    pub fn write_all(&mut self, data: &[u8]) -> Result<(), PartFileError> {
        self.file
            .write_all(data)
            .map_err(|error| failed(&self.path, error))
    }

    /// The final name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present name of the file.
    pub fn part_path(&self) -> &Path {
        self.file.path()
    }

    /// Flushes everything to disk and renames the file atomically: at any time the name refers to
    /// the complete file or to the previous one.
    pub fn complete(self) -> Result<PathBuf, PartFileError> {
        let Self {
            path,
            overwrite,
            file,
        } = self;
        file.as_file()
            .sync_all()
            .map_err(|error| failed(&path, error))?;
        let renamed = if overwrite {
            file.persist(&path)
        } else {
            file.persist_noclobber(&path)
        };
        renamed.map_err(|error| failed(&path, error.error))?;
        sync_directory(directory_of(&path));
        Ok(path)
    }
}

/// The directory that `path` is in; the current one for a bare name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a rename durable across a power failure. Some file systems can't sync a directory; the
/// contents are safe regardless.
pub(crate) fn sync_directory(directory: &Path) {
    if cfg!(unix)
        && let Ok(directory) = File::open(directory)
    {
        let _ = directory.sync_all();
    }
}

/// The meaning of a failed operation on the file that will be `path`.
pub(crate) fn failed(path: &Path, source: io::Error) -> PartFileError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => PartFileError::DiskFull(path),
        io::ErrorKind::AlreadyExists => PartFileError::Exists(path),
        _ => PartFileError::Io { path, source },
    }
}
