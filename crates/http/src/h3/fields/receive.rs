//! Validation of received field lines, common to requests, responses and trailers.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::h3::error::Fault;
use crate::qpack::Field;

/// Fields that belong to a connection of HTTP/1 and make a message malformed (RFC 9114, section
/// 4.2).
const CONNECTION_SPECIFIC: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn is_connection_specific(name: &HeaderName) -> bool {
    CONNECTION_SPECIFIC.contains(&name.as_str())
}

/// Fields for which capacity is reserved; more are added as needed.
const MANY: usize = 64;

/// The field lines of one section under construction.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) headers: HeaderMap,
    /// Cookies received in several lines (RFC 9114, section 4.2.1).
    cookies: Vec<u8>,
}

impl Lines {
    pub(super) fn with_capacity(fields: usize) -> Self {
        Self {
            headers: HeaderMap::with_capacity(fields.min(MANY)),
            cookies: Vec::new(),
        }
    }

    /// Adds a line that is not a pseudo-header.
    pub(super) fn push(&mut self, field: Field) -> Result<(), Fault> {
        let name = HeaderName::from_lowercase(&field.name)
            .map_err(|_| Fault::malformed("a field name that is invalid or not in lower case"))?;
        if is_connection_specific(&name) {
            return Err(Fault::malformed("a connection-specific field"));
        }
        if name == header::TE && *field.value != *b"trailers" {
            return Err(Fault::malformed("a TE field with more than trailers"));
        }
        let value = value(field)?;
        if name == header::COOKIE {
            if !self.cookies.is_empty() {
                self.cookies.extend_from_slice(b"; ");
            }
            self.cookies.extend_from_slice(value.as_bytes());
            return Ok(());
        }
        self.headers
            .try_append(name, value)
            .map_err(|_| Fault::malformed("too many fields"))?;
        Ok(())
    }

    /// All lines were added.
    pub(super) fn finish(mut self) -> Result<HeaderMap, Fault> {
        if !self.cookies.is_empty() {
            let value = HeaderValue::from_maybe_shared(bytes::Bytes::from(self.cookies))
                .map_err(|_| Fault::malformed("a cookie that is not a valid field value"))?;
            self.headers
                .try_insert(header::COOKIE, value)
                .map_err(|_| Fault::malformed("too many fields"))?;
        }
        Ok(self.headers)
    }
}

/// The field's value, without white space around it and without control characters.
pub(super) fn value(field: Field) -> Result<HeaderValue, Fault> {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if blank(field.value.first()) || blank(field.value.last()) {
        return Err(Fault::malformed("white space around a field value"));
    }
    let sensitive = field.sensitive;
    let mut value = HeaderValue::from_maybe_shared(field.value)
        .map_err(|_| Fault::malformed("a control character in a field value"))?;
    value.set_sensitive(sensitive);
    Ok(value)
}

/// Stores the value of a pseudo-header, which must occur once.
pub(super) fn put_once(slot: &mut Option<bytes::Bytes>, field: Field) -> Result<(), Fault> {
    if slot.is_some() {
        return Err(Fault::malformed("a repeated pseudo-header"));
    }
    *slot = Some(field.value);
    Ok(())
}

/// The value of content-length; several must agree (RFC 9110, section 8.6).
pub(super) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let wrong = || Fault::malformed("content-length is not one number");
    let mut length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        for part in value.as_bytes().split(|&byte| byte == b',') {
            let part = part.trim_ascii();
            if part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
                return Err(wrong());
            }
            let number = std::str::from_utf8(part).ok().and_then(|s| s.parse().ok());
            let number: u64 = number.ok_or_else(wrong)?;
            if length.is_some_and(|earlier| earlier != number) {
                return Err(wrong());
            }
            length = Some(number);
        }
    }
    Ok(length)
}

/// A trailer section: no pseudo-headers (RFC 9114, section 4.3).
pub(crate) fn trailers_from_fields(fields: Vec<Field>) -> Result<HeaderMap, Fault> {
    let mut lines = Lines::with_capacity(fields.len());
    for field in fields {
        if field.name.first() == Some(&b':') {
            return Err(Fault::malformed("a pseudo-header in trailers"));
        }
        lines.push(field)?;
    }
    lines.finish()
}
