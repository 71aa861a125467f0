//! Which host a request is for (RFC 9110, section 7.2).

use http::Request;
use http::header::HOST;
use http::uri::Authority;

/// The host that `request` is for, as the client wrote it, with its port if there is one: the
/// authority of the target, else the field `Host`. `None` if neither is there, or if `Host` is not
/// text.
pub fn host<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(HOST)?.to_str().ok(),
    }
}

/// The name or address in a `host` of that kind: without port, in lower case, without the dot at the
/// end that makes names absolute. IPv6 addresses keep their brackets. `None` if it is no host.
pub fn host_name(host: &str) -> Option<String> {
    let authority: Authority = host.parse().ok()?;
    let name = authority.host();
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}
