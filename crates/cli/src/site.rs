//! The directory that `serve` offers: which file a request path means, and that nothing outside the
//! directory can be reached.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::url::percent_decode;

/// Why a request path yields no file.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum SiteError {
    /// There is no regular file of that name.
    #[error("no such file")]
    NotFound,
    /// The path leads out of the directory, or is written such that it might.
    #[error("the path is outside the served directory")]
    Outside,
    /// The file may not be read.
    #[error("permission denied")]
    Forbidden,
    /// The path is no path: bad encoding, not beginning with `/`.
    #[error("malformed path")]
    Malformed,
}

/// A directory whose files are served.
#[derive(Clone, Debug)]
pub struct Site {
    root: PathBuf,
}

impl Site {
    /// Serves what lies below `directory`, which must exist.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let root = directory.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root })
    }

    /// The directory, canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that `request` means: an absolute path, percent-encoded, perhaps with a query, which
    /// is ignored.
    ///
    /// Decoded first and judged then: `..` and separators are refused however they are written.
    /// Symbolic links are followed as long as the result lies below the directory. (Who may change
    /// the directory while it is being served is trusted.)
    pub fn resolve(&self, request: &str) -> Result<PathBuf, SiteError> {
        let encoded = request.split(['?', '#']).next().unwrap_or_default();
        let segments = encoded.strip_prefix('/').ok_or(SiteError::Malformed)?;
        let mut path = self.root.clone();
        for segment in segments.split('/').filter(|segment| !segment.is_empty()) {
            path.push(safe_segment(segment)?);
        }
        let target = path.canonicalize().map_err(|error| site_error(&error))?;
        if !target.starts_with(&self.root) {
            return Err(SiteError::Outside);
        }
        // Opening a pipe or a device may block or worse.
        let metadata = fs::metadata(&target).map_err(|error| site_error(&error))?;
        if metadata.is_file() {
            Ok(target)
        } else {
            Err(SiteError::NotFound)
        }
    }
}

/// One decoded segment of a path that is a plain name and nothing else.
fn safe_segment(encoded: &str) -> Result<String, SiteError> {
    let bytes = percent_decode(encoded).ok_or(SiteError::Malformed)?;
    let name = String::from_utf8(bytes).map_err(|_| SiteError::Malformed)?;
    if name.contains('\0') {
        return Err(SiteError::Malformed);
    }
    if name.contains(['/', '\\']) {
        return Err(SiteError::Outside);
    }
    // The system's own idea of the name has the last word (drive letters, for example).
    let mut components = Path::new(&name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name.as_str() => Ok(name),
        (Some(Component::CurDir), None) => Err(SiteError::Malformed),
        _ => Err(SiteError::Outside),
    }
}

/// What a failure of the file system means for whoever asked.
pub fn site_error(error: &io::Error) -> SiteError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => SiteError::Forbidden,
        _ => SiteError::NotFound,
    }
}
