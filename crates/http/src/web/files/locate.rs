//! From a path below the root to an open file: the part that asks the file system, and blocks.
//!
//! A path is resolved through all its symbolic links before it is opened, and must then still lie
//! below the root. Whoever may write below the root could swap a link between the two steps; such a
//! writer decides what is served anyway.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::encodings::Coding;
use super::error::FileError;
use super::listing::{Entry, read_entries};
use super::options::FileOptions;
use super::path::SitePath;

/// A directory that is served.
#[derive(Debug)]
pub(super) struct Site {
    /// Free of symbolic links.
    pub(super) root: PathBuf,
    pub(super) options: FileOptions,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Located {
    File(OpenFile),
    /// A directory that was asked for without its slash.
    Redirect,
    Listing(Vec<Entry>),
}

/// A file that is open, and what is known of it.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) length: u64,
    pub(super) modified: Option<SystemTime>,
    /// The name that tells the type of the content: the original's, if this is a coded copy.
    pub(super) name: PathBuf,
    pub(super) coding: Option<Coding>,
    /// Whether another `Accept-Encoding` could give another answer.
    pub(super) negotiated: bool,
}

impl Site {
    /// Finds what `path` names. `codings` are those the client accepts.
    pub(super) fn locate(&self, path: &SitePath, codings: &[Coding]) -> Result<Located, FileError> {
        match self.locate_exactly(path, codings) {
            Err(FileError::NotFound) if self.falls_back(path) => {
                let fallback = self.options.spa_fallback.clone().unwrap_or_default();
                self.open(&self.root.join(fallback), codings)
                    .map(Located::File)
            }
            located => located,
        }
    }

    /// Whether the fallback of a single-page application stands for `path`: the names of its views
    /// have no extension, so that a missing script stays an error.
    fn falls_back(&self, path: &SitePath) -> bool {
        self.options.spa_fallback.is_some() && !path.name().is_some_and(|name| name.contains('.'))
    }

    fn locate_exactly(&self, path: &SitePath, codings: &[Coding]) -> Result<Located, FileError> {
        let target = self.root.join(path.to_relative());
        let resolved = self.resolve(&target)?;
        if !fs::metadata(&resolved)?.is_dir() {
            return if path.is_directory() {
                Err(FileError::NotFound)
            } else {
                self.open(&target, codings).map(Located::File)
            };
        }
        if !path.is_directory() {
            return Ok(Located::Redirect);
        }
        if let Some(index) = &self.options.index {
            match self.open(&target.join(index), codings) {
                Err(FileError::NotFound) => {}
                opened => return opened.map(Located::File),
            }
        }
        if self.options.listing {
            return Ok(Located::Listing(read_entries(
                &resolved,
                self.options.hidden,
            )?));
        }
        Err(FileError::Directory)
    }

    /// `target` without symbolic links, if it lies below the root or links may lead out.
    fn resolve(&self, target: &Path) -> Result<PathBuf, FileError> {
        let resolved = fs::canonicalize(target)?;
        if self.options.follow_symlinks || resolved.starts_with(&self.root) {
            Ok(resolved)
        } else {
            Err(FileError::Outside)
        }
    }

    /// Opens `target`, or a coded copy beside it.
    fn open(&self, target: &Path, codings: &[Coding]) -> Result<OpenFile, FileError> {
        let (file, metadata) = self.open_regular(target)?;
        let modified = metadata.modified().ok();
        if self.options.precompressed {
            for coding in codings {
                if let Some((file, metadata)) = self.open_copy(target, *coding, modified) {
                    return Ok(OpenFile {
                        length: metadata.len(),
                        modified: metadata.modified().ok(),
                        file,
                        name: target.to_owned(),
                        coding: Some(*coding),
                        negotiated: true,
                    });
                }
            }
        }
        Ok(OpenFile {
            length: metadata.len(),
            modified,
            file,
            name: target.to_owned(),
            coding: None,
            negotiated: self.options.precompressed,
        })
    }

    /// The copy of `target` in `coding`, unless it is older than the original.
    fn open_copy(
        &self,
        target: &Path,
        coding: Coding,
        original: Option<SystemTime>,
    ) -> Option<(File, Metadata)> {
        let mut name = target.file_name()?.to_owned();
        name.push(coding.suffix);
        let (file, metadata) = self.open_regular(&target.with_file_name(name)).ok()?;
        (metadata.modified().ok() >= original).then_some((file, metadata))
    }

    fn open_regular(&self, target: &Path) -> Result<(File, Metadata), FileError> {
        let resolved = self.resolve(target)?;
        // Before opening: a FIFO would block until somebody writes.
        if !fs::metadata(&resolved)?.is_file() {
            return Err(FileError::NotFound);
        }
        let file = File::open(&resolved)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(FileError::NotFound);
        }
        Ok((file, metadata))
    }
}
