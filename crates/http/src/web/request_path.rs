//! The decoded path of a request: percent-decoded (RFC 3986, section 2.1), without empty segments and dot
//! segments. Routing and file service both use it, so that routing and service never interpret a path
//! differently.
//!
//! No file system access; [`files`](super::files) decides what a segment may name there.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use thiserror::Error;

/// Characters escaped when a segment is written into a URI: all but the unreserved characters of
/// RFC 3986, section 2.3.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why the path of a request is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestPathError {
    /// The target of the request has no absolute path.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
    /// A segment is `..`; clients resolve these before they send (RFC 3986, section 5.2.4).
    #[error("the path goes upwards")]
    Upwards,
}

/// A decoded path: segments, none of which is empty, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath<'a> {
    sent: &'a str,
    segments: Vec<Segment<'a>>,
    directory: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment<'a> {
    decoded: Cow<'a, [u8]>,
    /// The rest of the path after the segment, as received.
    rest: &'a str,
}

impl<'a> RequestPath<'a> {
    /// Decodes the path of a request target. Empty segments and `.` are dropped, so that `//a/./b` means
    /// `/a/b`. A `%` without two hexadecimal digits is kept as it is.
    pub fn parse(path: &'a str) -> Result<Self, RequestPathError> {
        let rest = path.strip_prefix('/');
        let mut rest = rest.ok_or(RequestPathError::NotAbsolute)?;
        let mut segments = Vec::new();
        let mut directory;
        loop {
            let end = rest.find('/').unwrap_or(rest.len());
            let (raw, behind) = rest.split_at(end);
            let decoded: Cow<'a, [u8]> = percent_decode_str(raw).into();
            match &*decoded {
                b"" | b"." => directory = true,
                b".." => return Err(RequestPathError::Upwards),
                _ => {
                    directory = false;
                    let rest = behind;
                    segments.push(Segment { decoded, rest });
                }
            }
            match behind.strip_prefix('/') {
                Some(next) => rest = next,
                None => break,
            }
        }
        Ok(Self {
            sent: path,
            segments,
            directory,
        })
    }

    /// The decoded segments.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.segments.iter().map(|segment| &*segment.decoded)
    }

    /// Whether the path ends in a slash, so that it can only name a directory.
    pub fn is_directory(&self) -> bool {
        self.directory
    }

    /// Whether other programs may interpret the path differently: a decoded segment has a slash, a
    /// backslash or NUL, or is a dot segment with parameters, such as `..;x`, which some servers resolve.
    pub fn is_ambiguous(&self) -> bool {
        self.segments().any(|segment| {
            let name = segment.split(|&byte| byte == b';').next();
            segment.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0))
                || matches!(name, Some(b"." | b".."))
        })
    }

    /// What follows `prefix`, an absolute path without escapes, if this is `prefix` or below it: the rest
    /// of the path as received, which starts with a slash or is empty.
    pub fn strip_prefix(&self, prefix: &str) -> Option<&'a str> {
        let mut rest = self.sent;
        let mut segments = self.segments.iter();
        for wanted in prefix.split('/').filter(|segment| !segment.is_empty()) {
            let segment = segments.next()?;
            if *segment.decoded != *wanted.as_bytes() {
                return None;
            }
            rest = segment.rest;
        }
        Some(rest)
    }

    /// The canonical spelling of the path: each segment encoded where necessary, separated by one slash.
    pub fn canonical(&self) -> String {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            path.push_str(&encode_segment(&segment.decoded));
        }
        if self.directory {
            path.push('/');
        }
        path
    }
}

/// `segment` as written in a URI.
pub(super) fn encode_segment(segment: &[u8]) -> String {
    percent_encode(segment, SEGMENT).to_string()
}
