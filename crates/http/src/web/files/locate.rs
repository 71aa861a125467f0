//! Resolves a path below the root to an open file: index pages, precompressed copies, the fallback
//! page. Blocks, except for what the kernel has in memory; [`Tree`] opens the files.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use http::HeaderMap;

use super::cache::SiteCache;
use super::encodings::{self, Coding};
use super::error::FileError;
use super::options::FileOptions;
use super::path::SitePath;
use super::tree::{Opened, Tree};
use super::version::Version;
use crate::web::response_budget::PieceSize;
use crate::web::shared_limit::SharedPermit;

/// A directory that is served.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) tree: Tree,
    pub(super) options: FileOptions,
    /// Contents of small files.
    pub(super) cache: Option<SiteCache>,
}

/// Result of resolving a path.
#[derive(Debug)]
pub(super) enum Located {
    File(OpenFile),
    /// A directory requested without its final slash.
    Redirect,
    /// A directory to be listed.
    Listing,
}

/// An open file and its metadata.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) length: u64,
    pub(super) modified: Option<SystemTime>,
    /// The version at the time of opening.
    pub(super) version: Version,
    /// The name that determines the media type: the original's, if this is a precompressed copy.
    pub(super) name: PathBuf,
    pub(super) coding: Option<Coding>,
    /// Whether the response depends on `Accept-Encoding`.
    pub(super) negotiated: bool,
    /// The permit for the open file.
    pub(super) permit: Option<SharedPermit>,
    /// Size of the pieces in which it is read.
    pub(super) pieces: Option<PieceSize>,
}

impl Site {
    /// Resolves `path`. `codings` are those that the client accepts.
    pub(super) fn locate(&self, path: &SitePath, codings: &[Coding]) -> Result<Located, FileError> {
        match self.locate_exactly(path, codings) {
            Err(FileError::NotFound) if self.falls_back(path) => {
                let fallback = self.options.spa_fallback.clone().unwrap_or_default();
                self.open(&fallback, codings).map(Located::File)
            }
            located => located,
        }
    }

    /// The file at `path`, or the index page there, if it can be opened without waiting. `None` if it can't, or if
    /// that is not all there is to find out.
    pub(super) fn locate_cached(&self, path: &SitePath) -> Option<OpenFile> {
        if self.options.precompressed {
            return None;
        }
        let mut target = path.to_relative();
        if path.is_directory() {
            target.push(self.options.index.as_ref()?);
        }
        let (file, metadata) = self.tree.open_cached(&target)?;
        Some(self.with_copies(&target, file, &metadata, &[]))
    }

    /// The codings of copies that the client accepts, the preferred first; none unless there are copies.
    pub(super) fn codings(&self, headers: &HeaderMap) -> Vec<Coding> {
        if self.options.precompressed {
            encodings::accepted(headers)
        } else {
            Vec::new()
        }
    }

    /// Whether the file `name` is what `path` names: itself or its index page, not the fallback.
    pub(super) fn is_named_by(&self, name: &Path, path: &SitePath) -> bool {
        let relative = path.to_relative();
        match &self.options.index {
            Some(index) if path.is_directory() => name == relative.join(index),
            _ => name == relative,
        }
    }

    /// Whether the fallback of a single-page application applies to `path`: the paths of its views
    /// have no extension, so that a missing script remains an error.
    fn falls_back(&self, path: &SitePath) -> bool {
        self.options.spa_fallback.is_some() && !path.name().is_some_and(|name| name.contains('.'))
    }

    fn locate_exactly(&self, path: &SitePath, codings: &[Coding]) -> Result<Located, FileError> {
        let target = path.to_relative();
        match self.tree.open(&target)? {
            Opened::File(..) if path.is_directory() => Err(FileError::NotFound),
            Opened::File(file, metadata) => {
                let found = self.with_copies(&target, file, &metadata, codings);
                Ok(Located::File(found))
            }
            Opened::Directory if path.is_directory() => self.directory(&target, codings),
            Opened::Directory => Ok(Located::Redirect),
        }
    }

    /// The index page or the listing of a directory.
    fn directory(&self, target: &Path, codings: &[Coding]) -> Result<Located, FileError> {
        if let Some(index) = &self.options.index {
            match self.open(&target.join(index), codings) {
                Err(FileError::NotFound) => {}
                opened => return opened.map(Located::File),
            }
        }
        if self.options.listing {
            Ok(Located::Listing)
        } else {
            Err(FileError::Directory)
        }
    }

    /// Opens the file `target`, or a precompressed copy of it.
    pub(super) fn open(&self, target: &Path, codings: &[Coding]) -> Result<OpenFile, FileError> {
        match self.tree.open(target)? {
            Opened::File(file, metadata) => Ok(self.with_copies(target, file, &metadata, codings)),
            Opened::Directory => Err(FileError::NotFound),
        }
    }

    /// A precompressed copy of `file`, or itself.
    fn with_copies(
        &self,
        target: &Path,
        file: File,
        metadata: &Metadata,
        codings: &[Coding],
    ) -> OpenFile {
        let modified = metadata.modified().ok();
        if self.options.precompressed {
            for coding in codings {
                if let Some((file, metadata)) = self.open_copy(target, *coding, modified) {
                    return OpenFile {
                        length: metadata.len(),
                        version: Version::of(&metadata),
                        modified: metadata.modified().ok(),
                        file,
                        name: target.to_owned(),
                        coding: Some(*coding),
                        negotiated: true,
                        permit: None,
                        pieces: None,
                    };
                }
            }
        }
        OpenFile {
            length: metadata.len(),
            version: Version::of(metadata),
            modified,
            file,
            name: target.to_owned(),
            coding: None,
            negotiated: self.options.precompressed,
            permit: None,
            pieces: None,
        }
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
        let Ok(Opened::File(file, metadata)) = self.tree.open(&target.with_file_name(name)) else {
            return None;
        };
        (metadata.modified().ok() >= original).then_some((file, metadata))
    }
}
