//! From the path of a request to a path below the root: percent-decoding (RFC 3986, section 2.1)
//! and the refusal of whatever could name something else. Touches no file system.

use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

/// What is escaped when a segment is written into a URI: all but the unreserved characters of
/// RFC 3986, section 2.3.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why the path of a request names no file, whatever the root holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The target of the request has no absolute path.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// A segment is `..`; clients resolve these before they send (RFC 3986, section 5.2.4).
    #[error("the path goes upwards")]
    Upwards,
    /// Decoded, a segment holds a separator or NUL.
    #[error("a segment of the path holds a separator or NUL")]
    Separator,
    /// Decoded, a segment is not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
    /// A segment begins with a dot, and hidden files are not served.
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
    /// Decodes the path of a request target. Empty segments and `.` are dropped, so that `//a/./b`
    /// is `/a/b`. Unless `hidden`, segments with a leading dot are refused, except a first segment
    /// `.well-known` (RFC 8615).
    pub fn parse(path: &str, hidden: bool) -> Result<Self, PathError> {
        let rest = path.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
        let mut segments = Vec::new();
        let mut directory = true;
        for raw in rest.split('/') {
            let segment = percent_decode_str(raw)
                .decode_utf8()
                .map_err(|_| PathError::NotUtf8)?;
            if segment.is_empty() || segment == "." {
                directory = true;
                continue;
            }
            if segment == ".." {
                return Err(PathError::Upwards);
            }
            if segment.contains(is_separator) {
                return Err(PathError::Separator);
            }
            let well_known = segments.is_empty() && segment == ".well-known";
            if !hidden && segment.starts_with('.') && !well_known {
                return Err(PathError::Hidden);
            }
            segments.push(segment.into_owned());
            directory = false;
        }
        Ok(Self {
            segments,
            directory,
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

    /// The absolute path of this as a directory, as it stands in a URI. It begins with exactly one
    /// slash, so that no one can make it name another host.
    pub fn directory_uri(&self) -> String {
        let mut uri = String::from("/");
        for segment in &self.segments {
            uri.push_str(&encode_segment(segment));
            uri.push('/');
        }
        uri
    }
}

/// `segment` as it stands in a URI.
pub(super) fn encode_segment(segment: &str) -> String {
    utf8_percent_encode(segment, SEGMENT).to_string()
}

fn is_separator(c: char) -> bool {
    c == '/' || c == '\0' || (cfg!(windows) && matches!(c, '\\' | ':'))
}
