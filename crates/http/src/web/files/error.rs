//! Why a request for a file is not answered with the file.

use std::io;

use http::StatusCode;
use thiserror::Error;

use super::path::PathError;

/// Why a request for a file failed. [`status`](Self::status) is what the client is told; the reason
/// itself goes to the log.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The method is neither GET nor HEAD.
    #[error("files are read with GET and HEAD")]
    Method,
    /// The path of the request names no file at all.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing of this name, or nothing that has content, such as a socket.
    #[error("no such file")]
    NotFound,
    /// A directory without an index, and listings are off.
    #[error("directories are not listed")]
    Directory,
    /// A symbolic link leads out of the root.
    #[error("the file lies outside")]
    Outside,
    /// The operating system denies access.
    #[error("access is denied")]
    Denied,
    /// The file system failed.
    #[error("reading failed: {0}")]
    Io(io::Error),
}

impl FileError {
    /// The status code that the client is answered with. Hidden files look like missing ones.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Path(PathError::Hidden) | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Path(_) => StatusCode::BAD_REQUEST,
            Self::Directory | Self::Outside | Self::Denied => StatusCode::FORBIDDEN,
            Self::Io(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
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
