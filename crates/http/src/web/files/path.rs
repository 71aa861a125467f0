//! Converts a request path to a path below the root, and rejects paths that could name something
//! outside. No file system access.

use std::path::PathBuf;

use thiserror::Error;

use crate::web::request_path::{RequestPath, RequestPathError, encode_segment};

/// Why the path of a request names no file, whatever the root holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is invalid.
    #[error(transparent)]
    Meaningless(#[from] RequestPathError),
    /// A decoded segment has a separator or NUL.
    #[error("a segment of the path contains a separator or NUL")]
    Separator,
    /// A decoded segment is not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
    /// A segment starts with a dot, and hidden files are not served.
    #[error("hidden")]
    Hidden,
}

/// A path below the root: decoded segments, none of which is empty, `.`, `..` or holds a separator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitePath {
    segments: Vec<String>,
    directory: bool,
}

impl SitePath {
    /// Reads the path of a request target, as [`RequestPath::parse`] does. Unless `hidden`, segments with
    /// a leading dot are rejected, except a first segment `.well-known` (RFC 8615).
    pub fn parse(path: &str, hidden: bool) -> Result<Self, PathError> {
        let path = RequestPath::parse(path)?;
        let mut segments = Vec::new();
        for segment in path.segments() {
            let segment = str::from_utf8(segment).map_err(|_| PathError::NotUtf8)?;
            if segment.contains(is_separator) {
                return Err(PathError::Separator);
            }
            let well_known = segments.is_empty() && segment == ".well-known";
            if !hidden && segment.starts_with('.') && !well_known {
                return Err(PathError::Hidden);
            }
            segments.push(segment.to_owned());
        }
        Ok(Self {
            segments,
            directory: path.is_directory(),
        })
    }

    /// Whether the path ends in a slash, so that it can only name a directory.
    pub fn is_directory(&self) -> bool {
        self.directory
    }

    /// The last segment; none for the root.
    pub fn name(&self) -> Option<&str> {
        self.segments.last().map(String::as_str)
    }

    /// The path relative to the root, for the file system.
    pub fn to_relative(&self) -> PathBuf {
        self.segments.iter().collect()
    }

    /// The decoded path: it starts with a slash, and ends in one if it can only name a directory.
    pub fn decoded(&self) -> String {
        let mut decoded = String::new();
        for segment in &self.segments {
            decoded.push('/');
            decoded.push_str(segment);
        }
        if self.directory || self.segments.is_empty() {
            decoded.push('/');
        }
        decoded
    }

    /// The absolute path of this directory, as used in a URI. It starts with exactly one slash, so
    /// that it can't name another host.
    pub fn directory_uri(&self) -> String {
        let mut uri = String::from("/");
        for segment in &self.segments {
            uri.push_str(&encode_segment(segment.as_bytes()));
            uri.push('/');
        }
        uri
    }
}

fn is_separator(c: char) -> bool {
    c == '/' || c == '\0' || (cfg!(windows) && matches!(c, '\\' | ':'))
}
