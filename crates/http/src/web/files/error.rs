//! Why a request for a file fails.

use std::io;

use http::StatusCode;
use thiserror::Error;

use super::path::PathError;
use crate::web::descriptors::are_exhausted;

/// Why a request for a file failed. [`status`](Self::status) is the client's response; the reason
/// itself is logged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The method is neither GET nor HEAD.
    #[error("files are read with GET and HEAD")]
    Method,
    /// The path of the request names no file.
    #[error(transparent)]
    Path(#[from] PathError),
    /// No file of this name, or one without content, such as a socket.
    #[error("no such file")]
    NotFound,
    /// A directory without an index, and listings are off.
    #[error("directories are not listed")]
    Directory,
    /// A symbolic link leads out of the root.
    #[error("the file is outside of the root")]
    Outside,
    /// The operating system denies access.
    #[error("access is denied")]
    Denied,
    /// The limit of open files is reached, for this client or for all.
    #[error("too many files are being sent")]
    Busy,
    /// The file system failed.
    #[error("reading failed: {0}")]
    Io(io::Error),
}

impl FileError {
    /// The status code of the response. Hidden files are answered like missing ones.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Path(PathError::Hidden) | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Path(_) => StatusCode::BAD_REQUEST,
            Self::Directory | Self::Outside | Self::Denied => StatusCode::FORBIDDEN,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Io(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        if are_exhausted(&error) {
            return Self::Busy;
        }
        if has_no_content(&error) {
            return Self::NotFound;
        }
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidFilename => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Io(error),
        }
    }
}

/// Whether a file exists but can't be read: a socket or FIFO, or a cycle of links.
fn has_no_content(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let code = error.raw_os_error();
        [Errno::NXIO, Errno::LOOP]
            .into_iter()
            .any(|errno| code == Some(errno.raw_os_error()))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}
