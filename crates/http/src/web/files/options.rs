//! Options of a served directory, and why it can't be served.

use std::io;
use std::path::PathBuf;

use http::HeaderValue;
use thiserror::Error;

use super::cache::FileCache;
use super::error::FileError;
use crate::web::shared_limit::SharedLimit;

/// Options of a served directory. By default files and index pages are served, nothing else.
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The index page of directories. Default: `index.html`.
    pub index: Option<String>,
    /// Whether directories without an index are listed. Default: no.
    pub listing: bool,
    /// Most entries of a listing; if there are more, it says so. Default: 10,000.
    pub listing_entries: usize,
    /// Files that may be open for responses at once, shared by the clients of all services with this
    /// limit; requests beyond are answered with 503. Default: none.
    pub open_files: Option<SharedLimit>,
    /// Contents of small files in memory, shared by all services with this cache. Default: none.
    pub cache: Option<FileCache>,
    /// The file, relative to the root, that is served with status 200 for missing files whose last
    /// path segment has no extension: the page of a single-page application. Default: none.
    pub spa_fallback: Option<PathBuf>,
    /// Whether `x.br`, `x.zst` and `x.gz` are served for `x` to clients that accept the coding,
    /// unless they are older than `x`. Default: no.
    pub precompressed: bool,
    /// Whether symbolic links may lead out of the root. Default: no.
    pub follow_symlinks: bool,
    /// Whether names with a leading dot are served; `/.well-known/` always is. Default: no.
    pub hidden: bool,
    /// Whether text types are declared to be UTF-8. Default: yes.
    pub utf8: bool,
    /// The value of `Cache-Control` on files. Default: none.
    pub cache_control: Option<HeaderValue>,
    /// Bytes read at once, 4 KiB to 1 MiB; values outside are clamped. A body holds two chunks at
    /// most. Default: 64 KiB.
    pub chunk: usize,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            index: Some("index.html".to_owned()),
            listing: false,
            listing_entries: 10_000,
            open_files: None,
            cache: None,
            spa_fallback: None,
            precompressed: false,
            follow_symlinks: false,
            hidden: false,
            utf8: true,
            cache_control: None,
            chunk: 64 * 1024,
        }
    }
}

/// Why a directory can't be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RootError {
    /// The directory does not exist or can't be reached.
    #[error("{path}: {error}")]
    Unreachable {
        /// The directory, as given.
        path: PathBuf,
        /// The error of the file system.
        error: io::Error,
    },
    /// The path is not a directory.
    #[error("{path} is not a directory")]
    NotADirectory {
        /// The path, as given.
        path: PathBuf,
    },
    /// The page of the single-page application can't be served.
    #[error("the page {page} of {path}: {error}")]
    Fallback {
        /// The page, as given.
        page: PathBuf,
        /// The directory, as given.
        path: PathBuf,
        /// The cause.
        error: FileError,
    },
}
