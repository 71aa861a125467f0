//! The Proxy-Status field (RFC 9209): why a proxy refused a request, or where it leads.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue};
use sfv::{KeyRef, List, ListEntry, ListSerializer, Parser, StringRef, TokenRef};

/// The name of the field.
pub const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The name of this proxy in the field.
const PROXY: &str = "swiftwater";

/// Types of errors of proxies (RFC 9209, section 2.3) that occur with tunnels.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ProxyError {
    /// The name was not resolved in time.
    DnsTimeout,
    /// The name has no addresses.
    DnsError,
    /// The proxy knows no such target.
    DestinationNotFound,
    /// The target can't be reached.
    DestinationUnavailable,
    /// There is no route to the target.
    DestinationIpUnroutable,
    /// The target refused the connection.
    ConnectionRefused,
    /// The connection to the target took too long.
    ConnectionTimeout,
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
    const ALL: [Self; 12] = [
        Self::DnsTimeout,
        Self::DnsError,
        Self::DestinationNotFound,
        Self::DestinationUnavailable,
        Self::DestinationIpUnroutable,
        Self::ConnectionRefused,
        Self::ConnectionTimeout,
        Self::DestinationIpProhibited,
        Self::ConnectionLimitReached,
        Self::HttpRequestError,
        Self::HttpRequestDenied,
        Self::ProxyInternalError,
    ];

    /// The error that a field names, of the proxy that is nearest to the target if there are several; `None` if it
    /// names none of these.
    pub fn in_field(text: &str) -> Option<Self> {
        let list: List = Parser::new(text).parse().ok()?;
        let named = list.iter().find_map(|entry| {
            let ListEntry::Item(item) = entry else {
                return None;
            };
            item.params.get("error")?.as_token()
        })?;
        let mut all = Self::ALL.into_iter();
        all.find(|error| error.name() == named.as_str())
    }
    /// Its name in the field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DnsTimeout => "dns_timeout",
            Self::DnsError => "dns_error",
            Self::DestinationNotFound => "destination_not_found",
            Self::DestinationUnavailable => "destination_unavailable",
            Self::DestinationIpUnroutable => "destination_ip_unroutable",
            Self::ConnectionRefused => "connection_refused",
            Self::ConnectionTimeout => "connection_timeout",
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
