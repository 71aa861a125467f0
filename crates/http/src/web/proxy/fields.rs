//! Header fields at a proxy: connection-specific ones are removed, those of the proxy are added
//! (RFC 9110, section 7.6; RFC 7239).

use std::fmt::Write;
use std::net::IpAddr;

use http::header::{
    ALT_SVC, CONNECTION, CONTENT_LENGTH, COOKIE, FORWARDED, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use crate::web::connection_info::ConnectionInfo;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Connection-specific fields, whether `Connection` lists them or not. `Trailer` is not among them:
/// trailers are forwarded.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes connection-specific fields, and those that `Connection` names (RFC 9110, section 7.6.1).
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|token| token.parse().ok())
        .collect();
    for name in listed.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Whether `token` is in the comma-separated list of field `name`.
pub(super) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|member| member.split(';').next().unwrap_or_default().trim())
        .filter(|member| !member.is_empty())
}

/// Appends this proxy to `Via`: the version by which it received the message, and its name.
pub(super) fn add_via(headers: &mut HeaderMap, received: Version, pseudonym: &str) {
    let version = match received {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    };
    if let Ok(value) = HeaderValue::from_str(&format!("{version} {pseudonym}")) {
        headers.append(VIA, value);
    }
}

/// Joins the lines of `Cookie`, which HTTP/2 and HTTP/3 may split (RFC 9113, section 8.2.3).
pub(super) fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if let Ok(joined) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

/// Removes what must not reach an upstream from clients: `Proxy`, which CGI programs interpret as their own
/// proxy setting, and fields with underscores that CGI and WSGI can't distinguish from another field of the
/// request or from one that this proxy sets.
pub(super) fn remove_misleading(headers: &mut HeaderMap) {
    headers.remove("proxy");
    let misleading: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().contains('_'))
        .filter(|name| {
            let twin = name.as_str().replace('_', "-");
            headers.contains_key(&twin) || is_decided_here(&twin)
        })
        .cloned()
        .collect();
    for name in misleading {
        headers.remove(name);
    }
}

/// Whether field `name`, in lower case, is not accepted from clients.
fn is_decided_here(name: &str) -> bool {
    is_trusted_only(name)
        || HOP_BY_HOP.iter().any(|field| field == name)
        || matches!(name, "content-length" | "early-data" | "proxy")
}

/// Whether field `name`, in lower case, may only be set by trusted proxies: it identifies the client or the
/// original request.
fn is_trusted_only(name: &str) -> bool {
    name.starts_with("x-forwarded-")
        || matches!(
            name,
            "forwarded" | "x-real-ip" | "x-original-url" | "x-rewrite-url"
        )
}

/// Makes `Content-Length` one decimal number without leading zeros (RFC 9110, section 8.6); false if it is
/// not a number, or several that differ.
pub(super) fn unify_content_length(headers: &mut HeaderMap) -> bool {
    let mut length: Option<u64> = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let Ok(text) = value.to_str() else {
            return false;
        };
        for member in text.split(',') {
            let member = member.trim_matches([' ', '\t']);
            let digits = member.bytes().all(|byte| byte.is_ascii_digit());
            match member.parse() {
                Ok(number) if digits && length.is_none_or(|length| length == number) => {
                    length = Some(number);
                }
                _ => return false,
            }
        }
    }
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    true
}

/// Removes fields of a response that apply to the upstream's own connection or origin: a length that the
/// transfer coding overrides (RFC 9112, section 6.3), connection-specific fields, and alternative services
/// (RFC 7838), which are not those of the public origin.
pub(super) fn clean_response(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    remove_hop_by_hop(headers);
    headers.remove(ALT_SVC);
}

/// The client address that the previous proxy recorded: the last in `X-Forwarded-For`.
pub(super) fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let value = headers.get_all(X_FORWARDED_FOR).iter().next_back()?;
    let last = value.to_str().ok()?.rsplit(',').next()?;
    last.trim().parse().ok()
}

/// Adds the client, the host and the scheme of the request. Values already present are kept only if
/// they are trusted.
pub(super) fn add_forwarded(
    headers: &mut HeaderMap,
    connection: Option<&ConnectionInfo>,
    host: Option<&Authority>,
    trust: bool,
) {
    if !trust {
        let claims = headers.keys().filter(|name| is_trusted_only(name.as_str()));
        for name in claims.cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
    }
    let peer = connection.map(|connection| connection.peer.ip().to_canonical());
    let scheme = connection.map(|connection| connection.protocol.scheme());
    if let Some(element) = forwarded_element(peer, host, scheme) {
        headers.append(FORWARDED, element);
    }
    if let Some(value) = peer.and_then(|peer| HeaderValue::from_str(&peer.to_string()).ok()) {
        headers.append(X_FORWARDED_FOR, value);
    }
    if let Some(scheme) = scheme {
        let value = HeaderValue::from_static(scheme);
        headers.entry(X_FORWARDED_PROTO).or_insert(value);
    }
    if let Some(value) = host.and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        headers.entry(X_FORWARDED_HOST).or_insert(value);
    }
}

/// One element of `Forwarded` (RFC 7239, section 4); `None` if nothing is known.
fn forwarded_element(
    peer: Option<IpAddr>,
    host: Option<&Authority>,
    scheme: Option<&str>,
) -> Option<HeaderValue> {
    let mut element = String::new();
    // Writing to a string can't fail.
    let _ = match peer {
        Some(IpAddr::V4(address)) => write!(element, "for={address};"),
        Some(IpAddr::V6(address)) => write!(element, "for=\"[{address}]\";"),
        None => Ok(()),
    };
    if let Some(host) = host {
        let _ = write!(element, "host=\"{host}\";");
    }
    if let Some(scheme) = scheme {
        let _ = write!(element, "proto={scheme};");
    }
    element.pop()?;
    HeaderValue::from_str(&element).ok()
}
