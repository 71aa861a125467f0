//! Responses (RFC 9114, section 4.3.2).

use http::{Method, Response, StatusCode, Version, response};

use super::receive::{Lines, content_length, put_once};
use super::send::{pseudo, push_headers};
use crate::h3::error::{Fault, HeadError};
use crate::qpack::{Field, FieldLine};

/// The response of a field section, and its Content-Length. `method` is the request's: responses to
/// some methods have a Content-Length and no content (RFC 9110, section 8.6).
pub(crate) fn response_from_fields(
    fields: Vec<Field>,
    method: &Method,
) -> Result<(response::Parts, Option<u64>), Fault> {
    let mut status = None;
    let mut lines = Lines::with_capacity(fields.len().saturating_sub(1));
    let mut regular = false;
    for field in fields {
        if field.name.first() != Some(&b':') {
            regular = true;
            lines.push(field)?;
        } else if regular {
            return Err(Fault::malformed("a pseudo-header after other fields"));
        } else if *field.name == *b":status" {
            put_once(&mut status, field)?;
        } else {
            return Err(Fault::malformed(
                "a pseudo-header that is not defined for responses",
            ));
        }
    }
    let status = status.ok_or(Fault::malformed("no :status"))?;
    let status =
        StatusCode::from_bytes(&status).map_err(|_| Fault::malformed("no valid :status"))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Fault::malformed("a 101 response"));
    }
    let headers = lines.finish()?;
    let declared = content_length(&headers)?;
    let declared = match (method, status) {
        // The field describes a response that is not sent.
        (&Method::HEAD, _) | (_, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT) => Some(0),
        (&Method::CONNECT, status) if status.is_success() => None,
        _ => declared,
    };
    let mut parts = Response::new(()).into_parts().0;
    parts.status = status;
    parts.version = Version::HTTP_3;
    parts.headers = headers;
    Ok((parts, declared))
}

/// The field lines of a response.
pub(crate) fn response_to_fields(head: &response::Parts) -> Result<Vec<FieldLine<'_>>, HeadError> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(HeadError::SwitchingProtocols);
    }
    let mut fields = Vec::with_capacity(head.headers.len() + 1);
    fields.push(pseudo(":status", head.status.as_str().as_bytes()));
    push_headers(&mut fields, &head.headers);
    Ok(fields)
}
