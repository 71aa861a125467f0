//! Converts the request of a client to the request for the upstream, and the upstream's response to
//! the client's.

use http::header::{CONNECTION, EXPECT, HOST, TE, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, Uri, Version, request};
use hyper::ext::Protocol;
use percent_encoding::percent_decode_str;

use super::error::ProxyError;
use super::fields::{
    add_forwarded, add_via, clean_response, has_token, join_cookies, remove_hop_by_hop,
    remove_misleading, unify_content_length,
};
use super::location::{self, Public};
use super::options::ProxyOptions;
use super::upstream::Upstream;
use crate::web::connection_info::ConnectionInfo;
use crate::web::early_data::{EARLY_DATA, EarlyData, says_early};

/// The head of a request for the upstream.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    /// Of extended CONNECT (RFC 8441, section 4).
    pub(super) protocol: Option<Protocol>,
    /// Whether the client waits for 100 (Continue) before it sends its body.
    pub(super) expects_continue: bool,
    /// Host and scheme of the client's request.
    pub(super) public: Public,
}

impl Outgoing {
    /// The request for `upstream` that corresponds to the client's, which `makes_tunnel` if it is a handshake that is
    /// permitted.
    pub(super) fn new(
        client: request::Parts,
        upstream: &Upstream,
        options: &ProxyOptions,
        makes_tunnel: bool,
    ) -> Result<Self, ProxyError> {
        if !makes_tunnel {
            refuse_tunnels(&client)?;
        }
        if options.behind_route && is_ambiguous(client.uri.path()) {
            return Err(ProxyError::Target);
        }
        let uri = target(&client.uri, upstream)?;
        let host = host(&client);
        let connection = client.extensions.get::<ConnectionInfo>();
        // The request may also be a replay if the previous proxy received it as early data.
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
        let authority = match (&options.host, &host) {
            (Some(host), _) => host,
            (None, Some(host)) if options.preserve_host => host,
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
            protocol: None,
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
        if let Some(protocol) = self.protocol {
            request.extensions_mut().insert(protocol);
        }
        request
    }
}

/// The expectation in `Expect`; the field is set again where it is forwarded.
fn take_expectation(headers: &mut HeaderMap) -> Result<bool, ProxyError> {
    let expectations = headers.get_all(EXPECT);
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !expectations.iter().all(known) {
        return Err(ProxyError::Expectation);
    }
    Ok(headers.remove(EXPECT).is_some())
}

/// CONNECT and other upgrades to WebSocket make tunnels; TRACE shows what proxies add. Other upgrades, such as that to HTTP/2, are
/// offers that a server may ignore (RFC 9110, section 7.8).
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

/// The host of the client's request: of the target, as always in HTTP/2 and HTTP/3, or of `Host`.
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
    // Paths outside of the prefix are not public.
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

/// Whether any reading of `path` has a segment `..`: decoded, with either kind of slash, and with parameters (`..;x`), which some
/// servers take off before they resolve it.
fn goes_upwards(path: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    decoded
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .any(|segment| segment.split(|&byte| byte == b';').next() == Some(b".."))
}

/// Whether an upstream might resolve `path` differently from the router.
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

/// Converts a response of the upstream to one for the client.
pub(super) fn response<B>(
    response: &mut Response<B>,
    upstream: &Upstream,
    options: &ProxyOptions,
    public: &Public,
) {
    // Extensions set by the upstream's HTTP client have no meaning for the server.
    *response.extensions_mut() = Extensions::new();
    let received = response.version();
    let headers = response.headers_mut();
    clean_response(headers);
    location::correct(headers, upstream, public);
    add_via(headers, received, &options.pseudonym);
    *response.version_mut() = Version::HTTP_11;
}
