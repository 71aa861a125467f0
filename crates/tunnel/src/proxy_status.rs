//! The Proxy-Status field (RFC 9209): why a proxy refused a request, or where it leads.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue};
use sfv::{KeyRef, ListSerializer, StringRef, TokenRef};

/// The name of the field.
pub const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The name of this proxy in the field.
const PROXY: &str = "swiftwater";

/// Types of errors of proxies (RFC 9209, section 2.3) that occur with UDP.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ProxyError {
    /// The name was not resolved in time.
    DnsTimeout,
    /// The name has no addresses.
    DnsError,
    /// There is no route to the target, or its port is closed.
    DestinationUnavailable,
    /// The proxy does not reach this address.
    DestinationIpProhibited,
    /// The proxy has no capacity for another tunnel.
    ConnectionLimitReached,
    /// The request is malformed.
    HttpRequestError,
    /// The user may not do this.
    HttpRequestDenied,
    /// An error of the proxy itself.
    ProxyInternalError,
}

impl ProxyError {
    /// Its name in the field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DnsTimeout => "dns_timeout",
            Self::DnsError => "dns_error",
            Self::DestinationUnavailable => "destination_unavailable",
            Self::DestinationIpProhibited => "destination_ip_prohibited",
            Self::ConnectionLimitReached => "connection_limit_reached",
            Self::HttpRequestError => "http_request_error",
            Self::HttpRequestDenied => "http_request_denied",
            Self::ProxyInternalError => "proxy_internal_error",
        }
    }
}

/// The field of a request that was refused; `details` is for people.
pub fn refused(error: ProxyError, details: &str) -> Option<HeaderValue> {
    field("error", error.name(), Some(details))
}

/// The field of a request that leads to `next_hop`.
pub fn connected(next_hop: SocketAddr) -> Option<HeaderValue> {
    let mut list = ListSerializer::new();
    let item = list.bare_item(TokenRef::from_str(PROXY).ok()?);
    let hop = next_hop.to_string();
    let _ = item.parameter(
        KeyRef::from_str("next-hop").ok()?,
        StringRef::from_str(&hop).ok()?,
    );
    HeaderValue::from_str(&list.finish()?).ok()
}

fn field(key: &str, token: &str, details: Option<&str>) -> Option<HeaderValue> {
    let mut list = ListSerializer::new();
    let item = list.bare_item(TokenRef::from_str(PROXY).ok()?);
    let item = item.parameter(KeyRef::from_str(key).ok()?, TokenRef::from_str(token).ok()?);
    if let Some(details) = details {
        // Strings of structured fields are printable ASCII.
        let printable = |c: char| c.is_ascii_graphic() || c == ' ';
        let text: String = details.chars().filter(|&c| printable(c)).collect();
        let _ = item.parameter(
            KeyRef::from_str("details").ok()?,
            StringRef::from_str(&text).ok()?,
        );
    }
    HeaderValue::from_str(&list.finish()?).ok()
}
