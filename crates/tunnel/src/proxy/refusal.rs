//! Why a request for a tunnel is refused, and the response.

use std::io;

use http::header::PROXY_AUTHENTICATE;
use http::{HeaderValue, Response, StatusCode};
use swiftwater_http::web::body::{Body, text_response};
use thiserror::Error;

use crate::ip::ScopeError;
use crate::policy::TargetDenied;
use crate::proxy_status::{PROXY_STATUS, ProxyError, refused};
use crate::target::TargetError;

/// Why a request is refused.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error("no such resource")]
    NotFound,
    #[error("this protocol is not proxied")]
    OtherProtocol,
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error("no valid token was presented")]
    Unauthenticated,
    #[error("neither a certificate nor a valid token was presented")]
    Unidentified,
    #[error("the subject of the certificate is no user of this proxy")]
    UnknownSubject,
    #[error("requests of this origin are not allowed")]
    Origin,
    #[error(transparent)]
    Denied(#[from] TargetDenied),
    #[error("the resolution of the name took too long")]
    SlowResolution,
    #[error("the name can't be resolved: {0}")]
    Resolution(io::Error),
    #[error("the name has no address")]
    NoAddress,
    #[error("the proxy's network has no addresses of this version of IP")]
    NoSuchVersion,
    #[error("the proxy has no capacity for another tunnel")]
    Full,
    #[error("too many tunnels of one user")]
    TooMany,
    #[error("too many new tunnels to one target")]
    BusyTarget,
    #[error("no socket to the target: {0}")]
    Socket(io::Error),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::OtherProtocol => StatusCode::NOT_IMPLEMENTED,
            Self::Malformed(_) | Self::Target(_) | Self::Scope(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated | Self::Unidentified => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            Self::UnknownSubject | Self::Origin | Self::Denied(_) => StatusCode::FORBIDDEN,
            Self::SlowResolution => StatusCode::GATEWAY_TIMEOUT,
            Self::Socket(error) if error.kind() == io::ErrorKind::TimedOut => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::Resolution(_) | Self::NoAddress | Self::NoSuchVersion | Self::Socket(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Full => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooMany | Self::BusyTarget => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The type of error in Proxy-Status, if there is one.
    fn proxy_error(&self) -> Option<ProxyError> {
        Some(match self {
            Self::NotFound | Self::OtherProtocol => return None,
            Self::Malformed(_) | Self::Target(_) | Self::Scope(_) => ProxyError::HttpRequestError,
            Self::Unauthenticated
            | Self::Unidentified
            | Self::UnknownSubject
            | Self::Origin
            | Self::Denied(TargetDenied::Port(_)) => ProxyError::HttpRequestDenied,
            Self::Denied(_) => ProxyError::DestinationIpProhibited,
            Self::SlowResolution => ProxyError::DnsTimeout,
            Self::Resolution(_) | Self::NoAddress => ProxyError::DnsError,
            Self::NoSuchVersion => ProxyError::DestinationIpUnroutable,
            Self::Full | Self::TooMany | Self::BusyTarget => ProxyError::ConnectionLimitReached,
            Self::Socket(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => ProxyError::ConnectionRefused,
                io::ErrorKind::TimedOut => ProxyError::ConnectionTimeout,
                _ if is_failure_of_proxy(error) => ProxyError::ProxyInternalError,
                _ => ProxyError::DestinationUnavailable,
            },
        })
    }

    /// The response.
    pub(super) fn response(&self) -> Response<Body> {
        // Addresses that a name has within the proxy's network are not the client's business.
        let details = match self {
            Self::Denied(TargetDenied::Port(_)) | Self::Malformed(_) | Self::Target(_) => {
                self.to_string()
            }
            Self::Denied(_) => "the target's address is not allowed".to_owned(),
            Self::Resolution(_) => "the name can't be resolved".to_owned(),
            Self::Socket(_) => "the target can't be reached".to_owned(),
            other => other.to_string(),
        };
        let mut response = text_response(self.status(), &details);
        let headers = response.headers_mut();
        if let Some(error) = self.proxy_error()
            && let Some(value) = refused(error, &details)
        {
            headers.insert(PROXY_STATUS, value);
        }
        if matches!(self, Self::Unauthenticated | Self::Unidentified) {
            let challenge = HeaderValue::from_static("Bearer realm=\"swiftwater\"");
            headers.insert(PROXY_AUTHENTICATE, challenge);
        }
        response
    }
}

/// True for errors of the proxy's own machine: no memory, too many open files.
fn is_failure_of_proxy(error: &io::Error) -> bool {
    use io::ErrorKind;
    !matches!(
        error.kind(),
        ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::AddrNotAvailable
            | ErrorKind::PermissionDenied
            | ErrorKind::InvalidInput
    )
}
