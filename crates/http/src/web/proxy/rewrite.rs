//! From the request of a client to the request for the upstream, and back from the response.

use http::header::{CONNECTION, EXPECT, HOST, TE, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, Uri, Version, request};
use percent_encoding::percent_decode_str;

use super::error::ProxyError;
use super::fields::{
    add_forwarded, add_via, clean_response, has_token, join_cookies, remove_hop_by_hop,
    remove_misleading, unify_content_length,
};
use super::location::{self, Public};
use super::options::{ProxyOptions, Upstream};
use crate::web::connection_info::ConnectionInfo;
use crate::web::early_data::{EARLY_DATA, EarlyData, says_early};

/// The head of a request for the upstream.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    /// Whether the client waits for 100 (Continue) before it sends its body.
    pub(super) expects_continue: bool,
    /// Where the client asked.
    pub(super) public: Public,
}

impl Outgoing {
    /// The request for `upstream` that stands for the client's.
    pub(super) fn new(
        client: request::Parts,
        upstream: &Upstream,
        options: &ProxyOptions,
    ) -> Result<Self, ProxyError> {
        refuse_tunnels(&client)?;
        if options.behind_route && is_ambiguous(client.uri.path()) {
            return Err(ProxyError::Target);
        }
        let uri = target(&client.uri, upstream)?;
        let host = host(&client);
        let connection = client.extensions.get::<ConnectionInfo>();
        // A replay may also have come to the proxy before this one.
        let early = client.extensions.get::<EarlyData>().is_some() || says_early(&client.headers);
        let mut headers = client.headers;
        let takes_trailers = has_token(&headers, &TE, "trailers");
        remove_hop_by_hop(&mut headers);
        remove_misleading(&mut headers);
        if !unify_content_length(&mut headers) {
            return Err(ProxyError::ContentLength);
        }
        let expects_continue = take_expectation(&mut headers)?;
        join_cookies(&mut headers);
        add_forwarded(
            &mut headers,
            connection,
            host.as_ref(),
            options.trust_forwarded,
        );
        add_via(&mut headers, client.version, &options.pseudonym);
        headers.remove(EARLY_DATA);
        if early {
            headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
        }
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        let authority = match &host {
            Some(host) if options.preserve_host => host,
            _ => &upstream.authority,
        };
        let authority =
            HeaderValue::from_str(authority.as_str()).map_err(|_| ProxyError::Target)?;
        headers.insert(HOST, authority);
        let public = Public {
            host,
            scheme: connection.map(|connection| connection.protocol.scheme()),
        };
        Ok(Self {
            method: client.method,
            uri,
            headers,
            expects_continue,
            public,
        })
    }

    /// The request with `body`.
    pub(super) fn with_body<B>(self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        *request.version_mut() = Version::HTTP_11;
        request
    }
}

/// What `Expect` asks for; the field is set again where it is forwarded.
fn take_expectation(headers: &mut HeaderMap) -> Result<bool, ProxyError> {
    let expectations = headers.get_all(EXPECT);
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !expectations.iter().all(known) {
        return Err(ProxyError::Expectation);
    }
    Ok(headers.remove(EXPECT).is_some())
}

/// CONNECT and upgrades to WebSocket make tunnels; TRACE shows what proxies add. Other upgrades, such as that to HTTP/2, are
/// offers that a server may pass over (RFC 9110, section 7.8).
fn refuse_tunnels(client: &request::Parts) -> Result<(), ProxyError> {
    let websocket = has_token(&client.headers, &CONNECTION, "upgrade")
        && has_token(&client.headers, &UPGRADE, "websocket");
    if client.method == Method::CONNECT || websocket {
        return Err(ProxyError::Tunnel);
    }
    if client.method == Method::TRACE {
        return Err(ProxyError::Trace);
    }
    Ok(())
}

/// The host that the client asked for: of the target, which HTTP/2 and HTTP/3 always name it in, or
/// of `Host`.
fn host(client: &request::Parts) -> Option<Authority> {
    if let Some(authority) = client.uri.authority() {
        return Some(authority.clone());
    }
    client.headers.get(HOST)?.to_str().ok()?.parse().ok()
}

fn target(uri: &Uri, upstream: &Upstream) -> Result<Uri, ProxyError> {
    let path = uri.path();
    if !path.starts_with('/') {
        return Err(ProxyError::Target);
    }
    // What lies outside of the prefix is not for the public.
    if !upstream.prefix.is_empty() && goes_upwards(path) {
        return Err(ProxyError::Target);
    }
    let path = match uri.query() {
        Some(query) => format!("{}{path}?{query}", upstream.prefix),
        None => format!("{}{path}", upstream.prefix),
    };
    let path = PathAndQuery::try_from(path).map_err(|_| ProxyError::Target)?;
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(upstream.authority.clone());
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| ProxyError::Target)
}

/// Whether any reading of `path` has a segment `..`: decoded, and with either kind of slash.
fn goes_upwards(path: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    decoded
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .any(|segment| segment == b"..")
}

/// Whether an upstream might resolve `path` to something else than a route sees in it.
fn is_ambiguous(path: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let segments = |bytes: &[u8]| bytes.split(|&byte| byte == b'/').count();
    segments(&decoded) != segments(path.as_bytes())
        || decoded.contains(&b'\\')
        || decoded.split(|&byte| byte == b'/').any(|segment| {
            let name = segment.split(|&byte| byte == b';').next();
            matches!(name, Some(b"." | b".."))
        })
}

/// Turns a response of the upstream into one for the client.
pub(super) fn response<B>(
    response: &mut Response<B>,
    upstream: &Upstream,
    options: &ProxyOptions,
    public: &Public,
) {
    // What the client of the upstream noted there means nothing to ours.
    *response.extensions_mut() = Extensions::new();
    let received = response.version();
    let headers = response.headers_mut();
    clean_response(headers);
    location::correct(headers, upstream, public);
    add_via(headers, received, &options.pseudonym);
    *response.version_mut() = Version::HTTP_11;
}
