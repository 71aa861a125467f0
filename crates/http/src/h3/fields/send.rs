//! Encoding of field lines, common to messages of all kinds.

use std::borrow::Cow;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::receive::is_connection_specific;
use crate::qpack::FieldLine;

/// Size of each field in addition to its bytes (RFC 9114, section 4.2.2).
const FIELD_OVERHEAD: u64 = 32;

/// Cookies shorter than this could be guessed from compressed sizes (RFC 9204, section 7.1.3), so
/// they are not inserted into the table.
const SHORT_COOKIE: usize = 20;

/// The size of a field section as defined for its limits.
pub(crate) fn section_size(fields: &[FieldLine<'_>]) -> u64 {
    let size =
        |field: &FieldLine<'_>| (field.name.len() + field.value.len()) as u64 + FIELD_OVERHEAD;
    fields.iter().map(size).sum()
}

/// A pseudo-header.
pub(super) fn pseudo<'a>(name: &'static str, value: &'a [u8]) -> FieldLine<'a> {
    FieldLine {
        name: name.as_bytes(),
        value: Cow::Borrowed(value),
        sensitive: false,
    }
}

/// Appends all header fields except those that HTTP/3 forbids: a message received over HTTP/1 can
/// be forwarded unchanged (RFC 9114, section 4.2).
pub(super) fn push_headers<'a>(fields: &mut Vec<FieldLine<'a>>, headers: &'a HeaderMap) {
    let nominated = nominated(headers);
    let any_sensitive = headers.values().any(HeaderValue::is_sensitive);
    for (name, value) in headers {
        if is_connection_specific(name) || nominated.contains(name) {
            continue;
        }
        if name == header::COOKIE {
            push_crumbs(fields, value);
            continue;
        }
        let value = if name == header::TE {
            if !asks_for_trailers(value) {
                continue;
            }
            &b"trailers"[..]
        } else {
            value.as_bytes()
        };
        fields.push(FieldLine {
            name: name.as_str().as_bytes(),
            value: Cow::Borrowed(value),
            sensitive: is_sensitive(name)
                || any_sensitive && headers_value_sensitive(headers, name),
        });
    }
}

fn headers_value_sensitive(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().any(HeaderValue::is_sensitive)
}

fn is_sensitive(name: &HeaderName) -> bool {
    name == header::AUTHORIZATION || name == header::PROXY_AUTHORIZATION
}

/// Fields that a Connection field lists as connection-specific.
fn nominated(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect()
}

fn asks_for_trailers(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|value| {
        let mut codings = value.split(',').map(str::trim);
        codings.any(|coding| coding.eq_ignore_ascii_case("trailers"))
    })
}

/// One line for each cookie: most of them recur from request to request (RFC 9114, section 4.2.1).
fn push_crumbs<'a>(fields: &mut Vec<FieldLine<'a>>, value: &'a HeaderValue) {
    for crumb in value.as_bytes().split(|&byte| byte == b';') {
        let crumb = crumb.trim_ascii();
        if crumb.is_empty() {
            continue;
        }
        fields.push(FieldLine {
            name: b"cookie",
            value: Cow::Borrowed(crumb),
            sensitive: value.is_sensitive() || crumb.len() < SHORT_COOKIE,
        });
    }
}

/// The field lines of a trailer section.
pub(crate) fn trailers_to_fields(trailers: &HeaderMap) -> Vec<FieldLine<'_>> {
    let mut fields = Vec::with_capacity(trailers.len());
    push_headers(&mut fields, trailers);
    fields
}
