//! The server that requests are forwarded to, and how it is reached.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;

/// The host sent to an upstream that has none: at a Unix socket.
const LOCALHOST: Authority = Authority::from_static("localhost");

/// Protocols to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    /// HTTP/1.1 without TLS.
    Http1,
    /// HTTP/2 without TLS, from the first byte on (RFC 9113, section 3.3).
    Http2,
    /// HTTP/2 or HTTP/1.1 over TLS, as ALPN decides.
    Tls,
}

/// The server that requests are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub(super) speaks: Speaks,
    pub(super) authority: Authority,
    /// Empty, or starts with a slash and does not end in one.
    pub(super) prefix: String,
    /// A Unix socket, in the place of the authority.
    pub(super) socket: Option<PathBuf>,
}

/// The text that [`Upstream::parse`] accepts.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = &self.socket {
            return write!(f, "unix:{}", socket.display());
        }
        let scheme = match self.speaks {
            Speaks::Http1 => "http",
            Speaks::Http2 => "h2c",
            Speaks::Tls => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

/// Why a text is not an upstream.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The text is not a URI.
    #[error("not a URI: {0}")]
    Syntax(#[from] http::uri::InvalidUri),
    /// The scheme is unknown.
    #[error("an upstream must begin with http://, https://, h2c:// or unix:/")]
    Scheme,
    /// There is no host.
    #[error("the upstream has no host")]
    NoHost,
    /// It has a query or user information, which have no meaning here.
    #[error("an upstream has neither query nor user information")]
    Superfluous,
    /// The path of a Unix socket is not absolute, or the system has no such sockets.
    #[error("a Unix socket has an absolute path, and only Unix has them")]
    Socket,
}

impl Upstream {
    /// Reads `http://host[:port][/prefix]` (HTTP/1.1), `https://…` (HTTP/2 or HTTP/1.1 over TLS), `h2c://…` (HTTP/2
    /// without TLS) or `unix:/path` (HTTP/1.1 at a Unix socket). A slash at the end of the prefix has no meaning.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        if let Some(path) = text.strip_prefix("unix:") {
            if !cfg!(unix) || !Path::new(path).is_absolute() {
                return Err(UpstreamError::Socket);
            }
            return Ok(Self {
                speaks: Speaks::Http1,
                authority: LOCALHOST,
                prefix: String::new(),
                socket: Some(path.into()),
            });
        }
        let uri: Uri = text.parse()?;
        let speaks = match uri.scheme_str() {
            Some("http") => Speaks::Http1,
            Some("h2c") => Speaks::Http2,
            Some("https") => Speaks::Tls,
            _ => return Err(UpstreamError::Scheme),
        };
        let authority = uri.authority().ok_or(UpstreamError::NoHost)?;
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(UpstreamError::Superfluous);
        }
        if authority.host().is_empty() {
            return Err(UpstreamError::NoHost);
        }
        Ok(Self {
            speaks,
            authority: authority.clone(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            socket: None,
        })
    }

    /// Whether TLS protects the connections to it.
    pub fn is_secure(&self) -> bool {
        self.speaks == Speaks::Tls
    }

    /// The scheme of URIs on its origin.
    pub(super) fn scheme(&self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        let default = if self.is_secure() { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(default)
    }

    /// Its name in TLS; `None` if the host is neither a name nor an address.
    pub(super) fn server_name(&self) -> Option<ServerName<'static>> {
        let host = self.authority.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(host.to_owned()).ok()
    }
}

/// TLS to upstreams.
#[derive(Debug, Clone)]
pub struct UpstreamTls {
    /// Decides which certificates are trusted, and what is shown; its list of protocols (ALPN) is replaced.
    pub config: Arc<ClientConfig>,
    /// The name sent to the upstream (RFC 6066, section 3), which its certificate must have. Default: the upstream's
    /// host.
    pub name: Option<ServerName<'static>>,
}
