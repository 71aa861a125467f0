//! Rewriting of `Location` in responses: a location on the upstream itself is not reachable by
//! clients.

use http::header::LOCATION;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

use super::upstream::Upstream;

/// Where clients reach the upstream's resources.
#[derive(Debug, Clone)]
pub(super) struct Public {
    /// The host of the client's request.
    pub(super) host: Option<Authority>,
    /// The scheme of the client's request; `None` if it is unknown.
    pub(super) scheme: Option<&'static str>,
}

/// Turns a `Location` on the upstream's own origin, or on the public one, into a path on the public one: that
/// is correct whatever host name clients use, and layers with a path prefix can add it. The prefix of the
/// upstream is removed.
pub(super) fn correct(headers: &mut HeaderMap, upstream: &Upstream, public: &Public) {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(path) = location.and_then(|location| own_path(location, upstream, public)) else {
        return;
    };
    if let Ok(value) = HeaderValue::from_str(&path) {
        headers.insert(LOCATION, value);
    }
}

/// The path, query and fragment of `location` as clients see them; `None` if it is to be left
/// unchanged.
fn own_path(location: &str, upstream: &Upstream, public: &Public) -> Option<String> {
    // Two slashes start another host; without any, the reference is relative already.
    if location.starts_with('/') && !starts_host(location) {
        return without_prefix(location, &upstream.prefix).map(str::to_owned);
    }
    let (reference, fragment) = match location.split_once('#') {
        Some((reference, fragment)) => (reference, Some(fragment)),
        None => (location, None),
    };
    let uri: Uri = reference.parse().ok()?;
    let authority = uri.authority()?;
    let scheme = upstream.scheme();
    let is_upstream =
        uri.scheme_str() == Some(scheme) && same_origin(authority, &upstream.authority, scheme);
    if !is_upstream && !is_public(&uri, public) {
        return None;
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    // A path that starts with two slashes would be parsed as a host.
    if starts_host(path) {
        return None;
    }
    let path = if is_upstream {
        without_prefix(path, &upstream.prefix).unwrap_or(path)
    } else {
        path
    };
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some(match fragment {
        Some(fragment) => format!("{slash}{path}#{fragment}"),
        None => format!("{slash}{path}"),
    })
}

/// Whether `uri` has the client's origin. With another scheme the port may differ, unless it is explicit.
fn is_public(uri: &Uri, public: &Public) -> bool {
    let (Some(authority), Some(host)) = (uri.authority(), &public.host) else {
        return false;
    };
    let scheme = uri.scheme_str().unwrap_or_default();
    let same_scheme = public.scheme.is_none_or(|public| public == scheme);
    let is_web = matches!(scheme, "http" | "https");
    is_web
        && same_origin(authority, host, scheme)
        && (same_scheme || authority.port_u16().is_some())
}

/// Whether two authorities are the same under `scheme`, with an explicit or implicit default port.
fn same_origin(one: &Authority, other: &Authority, scheme: &str) -> bool {
    let default = if scheme == "https" { 443 } else { 80 };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    one.host().eq_ignore_ascii_case(other.host()) && port(one) == port(other)
}

/// Whether a reference starts a host; browsers take `\` for a slash.
fn starts_host(reference: &str) -> bool {
    reference.starts_with("//") || reference.starts_with("/\\")
}

/// `path` below `prefix`; `None` if there is no prefix, or the path is not below it.
fn without_prefix<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix.is_empty() {
        return None;
    }
    let rest = path.strip_prefix(prefix)?;
    match rest.as_bytes().first() {
        None => Some("/"),
        // Two slashes would start a host.
        Some(b'/') if !starts_host(rest) => Some(rest),
        _ => None,
    }
}
