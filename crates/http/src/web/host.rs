//! The host of a request (RFC 9110, section 7.2), and its validation.

use std::net::Ipv6Addr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderValue, Request, Version};
use thiserror::Error;

/// The host that `request` is for, as sent by the client, with its port if there is one: the
/// authority of the target, else the field `Host`. `None` if neither is there, or if `Host` is not
/// text.
pub fn host<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(HOST)?.to_str().ok(),
    }
}

/// The name or address in such a `host`: without port, in lower case, without the dot at the end that
/// makes names absolute. IPv6 addresses keep their brackets. `None` if it is invalid, as with user
/// information before it or an empty label in it.
pub fn host_name(host: &str) -> Option<String> {
    let name = split(host)?;
    let name = name.strip_suffix('.').unwrap_or(name);
    Some(name.to_ascii_lowercase())
}

/// Why the host of a request is invalid. Such requests must be answered with 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Neither the target nor a field has one.
    #[error("no host")]
    Missing,
    /// There are several `Host` fields.
    #[error("several hosts")]
    Several,
    /// It is not a name or address with an optional port.
    #[error("not a host")]
    Invalid,
    /// `Host` differs from `:authority`.
    #[error("two different hosts")]
    Different,
}

/// Whether `request` has its host as required: HTTP/1.1 in one `Host` field, whatever the form of its target
/// (RFC 9112, section 3.2), HTTP/2 and HTTP/3 in `:authority`, in `Host`, or the same in both (RFC 9113,
/// section 8.3.1; RFC 9114, section 4.3.1).
pub fn check<B>(request: &Request<B>) -> Result<(), HostError> {
    let mut fields = request.headers().get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err(HostError::Several);
    }
    let field = field.map(valid).transpose()?;
    let target = request.uri().authority().map(Authority::as_str);
    if target.is_some_and(|target| split(target).is_none()) {
        return Err(HostError::Invalid);
    }
    match (target, field, request.version()) {
        (_, None, Version::HTTP_11) | (None, None, Version::HTTP_2 | Version::HTTP_3) => {
            Err(HostError::Missing)
        }
        (Some(target), Some(field), Version::HTTP_2 | Version::HTTP_3)
            if !target.eq_ignore_ascii_case(field) =>
        {
            Err(HostError::Different)
        }
        _ => Ok(()),
    }
}

fn valid(value: &HeaderValue) -> Result<&str, HostError> {
    let text = value.to_str().map_err(|_| HostError::Invalid)?;
    split(text).map(|_| text).ok_or(HostError::Invalid)
}

/// The name or address in `host`, which may have a port (RFC 3986, sections 3.2.2 and 3.2.3); `None` if it is
/// not valid.
fn split(host: &str) -> Option<&str> {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        address.parse::<Ipv6Addr>().ok()?;
        (&host[..address.len() + 2], port)
    } else {
        let end = host.find(':').unwrap_or(host.len());
        is_name(&host[..end]).then(|| host.split_at(end))?
    };
    let is_port = match port.strip_prefix(':') {
        Some(digits) => {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
        None => port.is_empty(),
    };
    is_port.then_some(name)
}

/// Whether `name` is a registered name or an IPv4 address, without empty labels.
fn is_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~!$&'()*+,;=%".contains(&byte);
    name.split('.')
        .all(|label| !label.is_empty() && label.bytes().all(allowed))
}
