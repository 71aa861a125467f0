//! Requests (RFC 9114, section 4.3.1; CONNECT: section 4.4; extended CONNECT: RFC 9220).

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version, request};

use super::ConnectProtocol;
use super::receive::{Lines, content_length, put_once};
use super::send::{pseudo, push_headers};
use crate::h3::error::{Fault, HeadError};
use crate::qpack::{Field, FieldLine};

/// The pseudo-headers of a request.
#[derive(Debug, Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
}

impl Pseudo {
    fn take(&mut self, field: Field) -> Result<(), Fault> {
        let slot = match &*field.name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            _ => {
                return Err(Fault::malformed(
                    "a pseudo-header that is not defined for requests",
                ));
            }
        };
        put_once(slot, field)
    }
}

/// The request of a field section, and its Content-Length.
pub(crate) fn request_from_fields(
    fields: Vec<Field>,
) -> Result<(request::Parts, Option<u64>), Fault> {
    let mut pseudo = Pseudo::default();
    let mut lines = Lines::with_capacity(fields.len().saturating_sub(4));
    let mut regular = false;
    for field in fields {
        if field.name.first() != Some(&b':') {
            regular = true;
            lines.push(field)?;
        } else if regular {
            return Err(Fault::malformed("a pseudo-header after other fields"));
        } else {
            pseudo.take(field)?;
        }
    }
    let headers = lines.finish()?;
    let length = content_length(&headers)?;
    Ok((assemble(pseudo, headers)?, length))
}

fn assemble(pseudo: Pseudo, headers: HeaderMap) -> Result<request::Parts, Fault> {
    let method = pseudo.method.ok_or(Fault::malformed("no :method"))?;
    let method = Method::from_bytes(&method).map_err(|_| Fault::malformed("no valid :method"))?;
    let protocol = pseudo.protocol.as_deref().map(protocol).transpose()?;
    if protocol.is_some() && method != Method::CONNECT {
        return Err(Fault::malformed(":protocol without CONNECT"));
    }
    let authority = authority(pseudo.authority, &headers)?;
    let uri = if method == Method::CONNECT && protocol.is_none() {
        if pseudo.scheme.is_some() || pseudo.path.is_some() {
            return Err(Fault::malformed("CONNECT with :scheme or :path"));
        }
        let authority = authority.ok_or(Fault::malformed("CONNECT without :authority"))?;
        if authority.port_u16().is_none() {
            return Err(Fault::malformed("CONNECT without a port"));
        }
        Uri::from(authority)
    } else {
        let scheme = pseudo.scheme.ok_or(Fault::malformed("no :scheme"))?;
        let path = pseudo.path.ok_or(Fault::malformed("no :path"))?;
        absolute(&scheme, authority, path, &method)?
    };
    let mut parts = Request::new(()).into_parts().0;
    parts.method = method;
    parts.uri = uri;
    parts.version = Version::HTTP_3;
    parts.headers = headers;
    if let Some(protocol) = protocol {
        parts.extensions.insert(protocol);
    }
    Ok(parts)
}

fn protocol(value: &[u8]) -> Result<ConnectProtocol, Fault> {
    let name = std::str::from_utf8(value).ok();
    name.and_then(ConnectProtocol::new)
        .ok_or(Fault::malformed("no valid :protocol"))
}

/// The authority, of `:authority` or else of Host; if both are present, they must be equal.
fn authority(given: Option<Bytes>, headers: &HeaderMap) -> Result<Option<Authority>, Fault> {
    let parse = |value: Bytes| {
        let authority = Authority::from_maybe_shared(value)
            .map_err(|_| Fault::malformed("no valid authority"))?;
        // RFC 9114, section 4.3.1.
        if authority.as_str().contains('@') {
            return Err(Fault::malformed("an authority with user information"));
        }
        Ok(authority)
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Fault::malformed("several Host fields"));
    }
    let host = host.map(|host| parse(Bytes::copy_from_slice(host.as_bytes())));
    let host = host.transpose()?;
    let given = given.map(parse).transpose()?;
    match (given, host) {
        (Some(given), Some(host)) if given != host => {
            Err(Fault::malformed("Host differs from :authority"))
        }
        (given, host) => Ok(given.or(host)),
    }
}

fn absolute(
    scheme: &[u8],
    authority: Option<Authority>,
    path: Bytes,
    method: &Method,
) -> Result<Uri, Fault> {
    // RFC 3986, section 3.1; the URI type accepts an empty one.
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(Fault::malformed("no valid :scheme"));
    }
    let scheme = Scheme::try_from(scheme).map_err(|_| Fault::malformed("no valid :scheme"))?;
    let web = scheme == Scheme::HTTP || scheme == Scheme::HTTPS;
    if web && authority.is_none() {
        return Err(Fault::malformed("neither :authority nor Host"));
    }
    let rooted = path.first() == Some(&b'/');
    let asterisk = *path == *b"*" && method == Method::OPTIONS;
    if web && !rooted && !asterisk {
        return Err(Fault::malformed("a :path that does not begin with a slash"));
    }
    // A fragment would be dropped silently.
    if path.contains(&b'#') {
        return Err(Fault::malformed("a :path with a fragment"));
    }
    let path =
        PathAndQuery::from_maybe_shared(path).map_err(|_| Fault::malformed("no valid :path"))?;
    let mut parts = http::uri::Parts::default();
    // A URI without authority can't have a scheme here; only schemes other than http and https can
    // lack an authority.
    parts.scheme = authority.is_some().then_some(scheme);
    parts.authority = authority;
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| Fault::malformed("no valid URI"))
}

/// The field lines of a request. `:authority` is the Host field's value if there is one, else the
/// URI's authority; `:scheme` is https if the URI has none.
pub(crate) fn request_to_fields(head: &request::Parts) -> Result<Vec<FieldLine<'_>>, HeadError> {
    let protocol = head.extensions.get::<ConnectProtocol>();
    if protocol.is_some() && head.method != Method::CONNECT {
        return Err(HeadError::ProtocolWithoutConnect);
    }
    let mut fields = Vec::with_capacity(head.headers.len() + 5);
    fields.push(pseudo(":method", head.method.as_str().as_bytes()));
    let authority = authority_to_send(head)?;
    if head.method != Method::CONNECT || protocol.is_some() {
        let scheme = head.uri.scheme_str().unwrap_or("https");
        fields.push(pseudo(":scheme", scheme.as_bytes()));
        fields.push(pseudo(":authority", authority));
        fields.push(FieldLine {
            value: path_to_send(head),
            ..pseudo(":path", b"")
        });
    } else {
        fields.push(pseudo(":authority", authority));
    }
    if let Some(protocol) = protocol {
        fields.push(pseudo(":protocol", protocol.as_str().as_bytes()));
    }
    push_headers(&mut fields, &head.headers);
    fields.retain(|field| *field.name != *b"host");
    Ok(fields)
}

fn authority_to_send(head: &request::Parts) -> Result<&[u8], HeadError> {
    if let Some(host) = head.headers.get(header::HOST) {
        let host = host.as_bytes();
        let valid =
            Authority::try_from(host).is_ok_and(|authority| !authority.as_str().contains('@'));
        return valid.then_some(host).ok_or(HeadError::InvalidHost);
    }
    let authority = head.uri.authority().ok_or(HeadError::NoAuthority)?;
    // User information is never sent (RFC 9114, section 4.3.1).
    let text = authority.as_str();
    let text = text.rsplit_once('@').map_or(text, |(_, host)| host);
    Ok(text.as_bytes())
}

fn path_to_send(head: &request::Parts) -> Cow<'_, [u8]> {
    let path = head.uri.path_and_query().map_or("", PathAndQuery::as_str);
    match path {
        "" if head.method == Method::OPTIONS => Cow::Borrowed(b"*"),
        "" => Cow::Borrowed(b"/"),
        path if path.starts_with('?') => Cow::Owned([b"/", path.as_bytes()].concat()),
        path => Cow::Borrowed(path.as_bytes()),
    }
}
