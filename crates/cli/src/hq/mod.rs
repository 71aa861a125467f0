//! The `hq-interop` protocol: HTTP/0.9 on QUIC streams, as QUIC implementations use it for interoperability tests. This
//! module has parsing and error codes; [`service`] and [`client`] transfer files, `cancellations` limits cancelled requests.
//!
//! Each bidirectional stream opened by the client carries one request, `GET /path` and a line end;
//! the answer is the bare file and the end of the stream. Errors can only be signalled by a reset of
//! the stream; the codes of [`Refusal`] are specific to this implementation.

mod cancellations;
pub mod client;
pub mod service;

use std::str;

use http::StatusCode;
use thiserror::Error;

/// The protocol's name in ALPN.
pub const ALPN: &[u8] = b"hq-interop";

/// Longest request line, line end included, bytes.
pub const MAX_REQUEST: usize = 8 * 1024;

/// The path of the request in `input`, percent-encoded; `None` if the line isn't complete yet. The
/// line ends with LF, CR LF, or (`finished`) with the stream.
pub fn parse_request(input: &[u8], finished: bool) -> Result<Option<&str>, RequestError> {
    let line = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) if end < MAX_REQUEST => &input[..end],
        None if finished && input.len() < MAX_REQUEST => input,
        None if input.len() < MAX_REQUEST => return Ok(None),
        _ => return Err(RequestError::TooLong),
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let path = line.strip_prefix(b"GET ").ok_or(RequestError::NotGet)?;
    let path = str::from_utf8(path).map_err(|_| RequestError::BadPath)?;
    let plain = path.chars().all(|c| !c.is_control() && !c.is_whitespace());
    if path.starts_with('/') && plain {
        Ok(Some(path))
    } else {
        Err(RequestError::BadPath)
    }
}

/// The request line for `path`, which must be percent-encoded.
pub fn request(path: &str) -> Vec<u8> {
    format!("GET {path}\r\n").into_bytes()
}

/// Why a request can't be answered.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RequestError {
    /// The line is longer than [`MAX_REQUEST`].
    #[error("the request is too long")]
    TooLong,
    /// The line doesn't start with `GET `.
    #[error("the request is not a GET")]
    NotGet,
    /// The text after `GET ` is not a path.
    #[error("the requested path is malformed")]
    BadPath,
}

/// Why a server reset a request's stream, as the stream's error code. The numbers are those of the
/// corresponding HTTP status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// 400: the request is malformed.
    BadRequest,
    /// 403: the path is outside the served directory, or may not be read.
    Forbidden,
    /// 404: there is no such file.
    NotFound,
    /// 500: the file could not be read to its end.
    Internal,
    /// 503: the server is shutting down, or overloaded.
    Unavailable,
}

impl Refusal {
    const ALL: [Self; 5] = [
        Self::BadRequest,
        Self::Forbidden,
        Self::NotFound,
        Self::Internal,
        Self::Unavailable,
    ];

    /// The code for a response other than 200. Redirects can't be expressed here.
    pub fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::MISDIRECTED_REQUEST => {
                Self::NotFound
            }
            status if status.is_redirection() => Self::NotFound,
            status if status.is_client_error() => Self::BadRequest,
            _ => Self::Internal,
        }
    }

    /// The stream's error code.
    pub const fn code(self) -> u64 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// The meaning of a stream's error code, if it is a known one.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.code() == code)
    }

    /// Description.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::BadRequest => "the server does not understand the request",
            Self::Forbidden => "the server refuses that path",
            Self::NotFound => "no such file on the server",
            Self::Internal => "the server could not read the file to its end",
            Self::Unavailable => "the server is shutting down or has too much to do",
        }
    }
}

impl From<RequestError> for Refusal {
    fn from(_: RequestError) -> Self {
        Self::BadRequest
    }
}
