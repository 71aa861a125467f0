//! Why a request could not be forwarded, or its response not be received.

use std::error::Error;
use std::io;

use http::StatusCode;
use hyper_util::client::legacy;
use thiserror::Error;

use crate::web::body::BoxError;

/// Why the proxy answers itself. [`status`](Self::status) is the client's response; the cause is
/// logged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The target of the request has no path that could be forwarded, or could leave the prefix of
    /// the upstream, or could escape its route.
    #[error("the target can't be forwarded")]
    Target,
    /// CONNECT, or a handshake of WebSocket that is malformed or not permitted
    /// ([`ProxyOptions::websocket`](super::ProxyOptions::websocket)).
    #[error("this tunnel or upgrade is not supported")]
    Tunnel,
    /// The upstream answered a handshake of WebSocket with neither a consent nor a refusal.
    #[error("the upstream did not agree to WebSocket properly")]
    NotWebSocket,
    /// WebSocket to an upstream of HTTP/2 that takes no extended CONNECT (RFC 8441, section 3).
    #[error("the upstream takes no WebSocket over HTTP/2")]
    NoExtendedConnect,
    /// TRACE, which would reveal the fields that the proxy adds (RFC 9110, section 9.3.8).
    #[error("TRACE is not supported")]
    Trace,
    /// `Content-Length` is not one number (RFC 9110, section 8.6).
    #[error("Content-Length is not one number")]
    ContentLength,
    /// An expectation other than `100-continue`.
    #[error("the expectation is unknown")]
    Expectation,
    /// The limit of requests in progress is reached: of all, or of the client's share.
    #[error("too many requests are in progress")]
    Busy,
    /// The upstream can't be reached.
    #[error("the upstream can't be reached")]
    Connect(#[source] BoxError),
    /// Connecting to the upstream took too long.
    #[error("the upstream can't be reached before the timeout")]
    ConnectTimeout(#[source] BoxError),
    /// The head of the response took too long.
    #[error("the upstream does not answer before the timeout")]
    HeadTimeout,
    /// The upstream closed the connection, or violated the protocol.
    #[error("the upstream did not answer properly")]
    Upstream(#[source] BoxError),
    /// The body of the request failed before the response started.
    #[error("the body of the request broke off")]
    Body,
    /// The body of the request came too slowly.
    #[error("the body of the request came too slowly")]
    SlowBody,
}

impl ProxyError {
    /// True if the upstream failed, not the request. A resource without WebSocket is no failure: clients choose the
    /// resource.
    pub(in crate::web) fn is_of_upstream(&self) -> bool {
        let status = self.status();
        let is_gateway = matches!(
            status,
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT
        );
        is_gateway && !matches!(self, Self::NotWebSocket)
    }

    /// True if nothing of the request was sent.
    pub(in crate::web) fn is_before_request(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::ConnectTimeout(_))
    }

    /// The status code of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Target | Self::ContentLength | Self::Body => StatusCode::BAD_REQUEST,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Tunnel | Self::NoExtendedConnect | Self::Trace => StatusCode::NOT_IMPLEMENTED,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Connect(_) | Self::Upstream(_) | Self::NotWebSocket => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout(_) | Self::HeadTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

impl ProxyError {
    /// No connection was established.
    pub(super) fn connect(error: BoxError) -> Self {
        let late = has_cause(&*error, |cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
        });
        if late {
            Self::ConnectTimeout(error)
        } else {
            Self::Connect(error)
        }
    }
}

/// The innermost errors of the HTTP client, classified.
impl From<legacy::Error> for ProxyError {
    fn from(error: legacy::Error) -> Self {
        if error.is_connect() {
            Self::connect(error.into())
        } else {
            Self::Upstream(error.into())
        }
    }
}

/// Whether a connection ended before a response began, as when the upstream closed it while it was
/// idle.
pub(super) fn ended_early(error: &legacy::Error) -> bool {
    has_cause(error, |cause| {
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            return error.is_incomplete_message() || error.is_canceled() || error.is_closed();
        }
        cause.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            )
        })
    })
}

/// Whether `error` or a cause of it is the one `wanted`.
fn has_cause(
    error: &(dyn Error + 'static),
    wanted: impl Fn(&(dyn Error + 'static)) -> bool,
) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if wanted(error) {
            return true;
        }
        cause = error.source();
    }
    false
}
