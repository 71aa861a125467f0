//! Origins (RFC 9110, section 4.3.1): the key of pooled connections, hints and QUIC failures.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;

use super::error::Error;

/// Scheme, host and port. Hosts are compared in lower case; IPv6 addresses have no brackets here.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Origin {
    https: bool,
    host: Arc<str>,
    port: u16,
}

impl Origin {
    /// The origin of `uri`, which must be absolute and `http` or `https`.
    pub fn of(uri: &Uri) -> Result<Self, Error> {
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(Error::InvalidUri("neither http nor https")),
        };
        let host = uri.host().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() {
            return Err(Error::InvalidUri("no host"));
        }
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        if port == 0 {
            return Err(Error::InvalidUri("port 0"));
        }
        Ok(Self {
            https,
            host: lower_case(host),
            port,
        })
    }

    /// Whether TLS or QUIC is used.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// The host's name or address, in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, stated or the scheme's own.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host as an IP address, if it is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// `host:port` as an authority; IPv6 addresses in brackets.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// `host` in lower case, as it mostly is already.
fn lower_case(host: &str) -> Arc<str> {
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        host.to_ascii_lowercase().into()
    } else {
        host.into()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}
