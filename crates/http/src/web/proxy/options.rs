//! Configuration of the proxy.

use std::fmt;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use thiserror::Error;

/// The server that requests are forwarded to: `http://host[:port][/prefix]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub(super) authority: Authority,
    /// Empty, or starts with a slash and does not end in one.
    pub(super) prefix: String,
}

/// The text that [`Upstream::parse`] accepts.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

/// Why a text is not an upstream.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The text is not a URI.
    #[error("not a URI: {0}")]
    Syntax(#[from] http::uri::InvalidUri),
    /// The scheme is not `http`: the proxy uses HTTP/1.1 without TLS to its upstream.
    #[error("an upstream URI must begin with http://")]
    Scheme,
    /// There is no host.
    #[error("the upstream has no host")]
    NoHost,
    /// It has a query or user information, which have no meaning here.
    #[error("an upstream has neither query nor user information")]
    Superfluous,
}

impl Upstream {
    /// Reads `http://host[:port][/prefix]`. A slash at the end of the prefix has no meaning.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let uri: Uri = text.parse()?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(UpstreamError::Scheme);
        }
        let authority = uri.authority().ok_or(UpstreamError::NoHost)?;
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(UpstreamError::Superfluous);
        }
        if authority.host().is_empty() {
            return Err(UpstreamError::NoHost);
        }
        Ok(Self {
            authority: authority.clone(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// How requests are forwarded.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Whether the client's host is sent to the upstream, instead of the upstream's own. Default:
    /// no.
    pub preserve_host: bool,
    /// Whether the proxy is one of several routes that are chosen by the path: then paths are rejected
    /// that an upstream might resolve to below another route, with a segment `.` or `..`, also before a
    /// `;`, with a backslash, or with an encoded slash or backslash. Default: no.
    pub behind_route: bool,
    /// Whether `Forwarded` and `X-Forwarded-…` of requests are trusted and extended, as required
    /// behind another proxy. Otherwise they are replaced, and `X-Real-IP`, `X-Original-URL` and
    /// `X-Rewrite-URL` are removed. The last address in `X-Forwarded-For` then is the client's, as
    /// [`in_flight`](Self::in_flight) counts it. Default: no.
    pub trust_forwarded: bool,
    /// The name of this proxy in `Via`, a token (RFC 9110, section 7.6.3). Default: `swiftwater`.
    pub pseudonym: String,
    /// Time to connect. Default: 5 s.
    pub connect_timeout: Duration,
    /// Time for the head of the response, counted from the last piece of the request. Default:
    /// 60 s.
    pub head_timeout: Duration,
    /// The longest gap between pieces of the response. Default: 120 s.
    pub body_gap: Duration,
    /// Whether WebSocket is forwarded (RFC 6455), from clients of every version of HTTP. Default: yes.
    pub websocket: bool,
    /// How long a WebSocket connection may be without a byte either way; at most 10 s once the client has ended it.
    /// Default: 10 minutes.
    pub websocket_timeout: Duration,
    /// How long a body waits for the upstream's 100 (Continue), if the client expects it, before it
    /// is sent anyway (RFC 9110, section 10.1.1). Default: 1 s.
    pub continue_timeout: Duration,
    /// Idle connections in the pool. Default: 64.
    pub idle_connections: usize,
    /// How long they stay in the pool. Default: 60 s.
    pub idle_timeout: Duration,
    /// Concurrent requests; further ones are answered with 503, and so are those of a client that has
    /// more in progress than are free ([`SharedLimit`](crate::web::shared_limit::SharedLimit)). At least
    /// 1. Default: 4096.
    pub in_flight: usize,
    /// Bytes of the head of a response, at least 8192. Default: 64 KiB.
    pub header_size: usize,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            preserve_host: false,
            behind_route: false,
            trust_forwarded: false,
            pseudonym: "swiftwater".to_owned(),
            connect_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(60),
            body_gap: Duration::from_secs(120),
            websocket: true,
            websocket_timeout: Duration::from_secs(600),
            continue_timeout: Duration::from_secs(1),
            idle_connections: 64,
            idle_timeout: Duration::from_secs(60),
            in_flight: 4096,
            header_size: 64 * 1024,
        }
    }
}
