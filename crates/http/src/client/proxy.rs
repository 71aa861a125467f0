//! Proxies of the TCP side: selection by origin from the usual environment variables, and the CONNECT
//! tunnel (RFC 9110, section 9.3.6). Only `http` proxies are supported.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;

use super::error::AttemptCause;
use super::origin::Origin;

/// A proxy's address can't be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("the proxy {name} is not an http:// URI with a host")]
pub struct ProxyAddressError {
    /// The environment variable with the address.
    pub name: &'static str,
}

/// A proxy and its credentials.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Proxy {
    pub(super) origin: Origin,
    credentials: Option<HeaderValue>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// The origins that an entry of `NO_PROXY` matches.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Exception {
    All,
    /// The name or address, and its subdomains; at one port or all.
    Host(String, Option<u16>),
}

/// The proxy of each origin. The default uses none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Proxies {
    https: Option<Arc<Proxy>>,
    http: Option<Arc<Proxy>>,
    exceptions: Vec<Exception>,
}

impl Proxies {
    /// No proxy.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the environment: `HTTPS_PROXY`, `http_proxy` (in lower case only, because servers' CGI
    /// programs see request fields in upper case), `ALL_PROXY`, `NO_PROXY`; the others in lower
    /// case too, and lower case takes precedence. `NO_PROXY` supports names, addresses and ports,
    /// but no address ranges.
    pub fn from_env() -> Result<Self, ProxyAddressError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The same from any source of variables.
    pub fn from_variables(
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ProxyAddressError> {
        let proxy = |names: &[&'static str]| {
            let mut set = names.iter().filter_map(|&name| {
                let value = read(name)?;
                (!value.trim().is_empty()).then_some((name, value))
            });
            let found = set.next();
            found.map(|(name, value)| parse(name, &value)).transpose()
        };
        let all = ["all_proxy", "ALL_PROXY"];
        let fallback = || proxy(&all);
        let https = match proxy(&["https_proxy", "HTTPS_PROXY"])? {
            None => fallback()?,
            found => found,
        };
        let http = match proxy(&["http_proxy"])? {
            None => fallback()?,
            found => found,
        };
        let exceptions = read("no_proxy").or_else(|| read("NO_PROXY"));
        let exceptions = exceptions.unwrap_or_default();
        Ok(Self {
            https: https.map(Arc::new),
            http: http.map(Arc::new),
            exceptions: exceptions.split(',').filter_map(exception).collect(),
        })
    }

    /// The proxy for `origin`, if any.
    pub(super) fn of(&self, origin: &Origin) -> Option<&Arc<Proxy>> {
        let proxy = if origin.is_https() {
            self.https.as_ref()
        } else {
            self.http.as_ref()
        };
        let excepted = |exception: &Exception| match exception {
            Exception::All => true,
            Exception::Host(host, port) => {
                let below = origin.host().strip_suffix(host.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                    && port.is_none_or(|port| port == origin.port())
            }
        };
        proxy.filter(|_| !self.exceptions.iter().any(excepted))
    }
}

fn parse(name: &'static str, value: &str) -> Result<Proxy, ProxyAddressError> {
    let wrong = || ProxyAddressError { name };
    let value = value.trim();
    let value = if value.contains("://") {
        value.to_owned()
    } else {
        format!("http://{value}")
    };
    let uri: Uri = value.parse().map_err(|_| wrong())?;
    let origin = Origin::of(&uri).map_err(|_| wrong())?;
    if origin.is_https() {
        return Err(wrong());
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let credentials = match authority.rsplit_once('@') {
        None => None,
        Some((user, _)) => {
            let user: Vec<u8> = percent_encoding::percent_decode_str(user).collect();
            let value = format!("Basic {}", base64(&user));
            let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            Some(value)
        }
    };
    Ok(Proxy {
        origin,
        credentials,
    })
}

fn exception(entry: &str) -> Option<Exception> {
    let entry = entry.trim().to_ascii_lowercase();
    if entry == "*" {
        return Some(Exception::All);
    }
    let entry = entry.trim_start_matches("*.").trim_start_matches('.');
    if entry.is_empty() {
        return None;
    }
    let (host, port) = match entry.rsplit_once(':') {
        // More than one colon: an IPv6 address, whose port follows the brackets.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().ok())
        }
        _ => (entry, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(Exception::Host(host.to_owned(), port))
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |nth: usize| u32::from(group.get(nth).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for nth in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * nth)) as usize & 63];
            out.push(if nth <= group.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}

/// Requests a tunnel to `origin` from the proxy at the other end of `stream`.
pub(super) async fn tunnel(
    stream: TcpStream,
    proxy: &Proxy,
    origin: &Origin,
) -> Result<TokioIo<hyper::upgrade::Upgraded>, AttemptCause> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "the connection to the proxy failed");
        }
    });
    let authority = origin.authority();
    let uri = Uri::builder().authority(authority.as_str()).build();
    let host = HeaderValue::from_str(&authority);
    let (Ok(uri), Ok(host)) = (uri, host) else {
        return Err(AttemptCause::ServerName);
    };
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri;
    request.headers_mut().insert(HOST, host);
    if let Some(credentials) = &proxy.credentials {
        let value = credentials.clone();
        request.headers_mut().insert(PROXY_AUTHORIZATION, value);
    }
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        return Err(AttemptCause::Proxy(response.status()));
    }
    Ok(TokioIo::new(hyper::upgrade::on(response).await?))
}

#[cfg(test)]
mod tests;
