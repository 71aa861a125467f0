//! Builds the responses: status, headers and body.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RETRY_AFTER,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};

use super::body::FileBody;
use super::cache::CachedFile;
use super::error::FileError;
use super::ranges::{Selection, select};
use super::representation::Representation;
use super::validators::Verdict;
use crate::web::body::status_line;

/// The response to a request for a file, which was GET or HEAD. `whole` is the content, from which ranges are chosen.
pub(super) fn file(
    request: &request::Parts,
    representation: &Representation,
    whole: impl FnOnce() -> FileBody,
    now: SystemTime,
) -> Response<FileBody> {
    let validators = &representation.validators;
    let length = representation.length;
    let mut response = Response::new(FileBody::empty());
    match validators.evaluate(&request.method, &request.headers) {
        Verdict::Proceed => {}
        Verdict::NotModified => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.headers_mut() = representation.state_fields();
            return response;
        }
        Verdict::Failed => return status(StatusCode::PRECONDITION_FAILED, "", &request.method),
    }
    *response.headers_mut() = representation.head.clone();
    // Ranges are defined for GET alone (RFC 9110, section 14.2).
    if request.method != Method::GET {
        return response;
    }
    let selection = validators
        .applicable_range(&request.headers, now)
        .map_or(Selection::Whole, |field| select(field, length));
    let mut body = whole();
    match selection {
        Selection::Unsatisfiable => return unsatisfiable(length),
        Selection::Whole => body.push_range(0..length),
        Selection::Parts(parts) => {
            push_parts(response.headers_mut(), &mut body, &parts, length);
            let remaining = HeaderValue::from(body.remaining());
            response.headers_mut().insert(CONTENT_LENGTH, remaining);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
    }
    *response.body_mut() = body;
    response
}

/// As [`file`], for one that is in memory.
pub(super) fn cached(
    request: &request::Parts,
    cached: &CachedFile,
    now: SystemTime,
) -> Response<FileBody> {
    let whole = || FileBody::of_content(cached.content.clone());
    file(request, &cached.representation, whole, now)
}

/// Pushes the content of a 206 to `body`, and sets its `Content-Type` and `Content-Range` (RFC 9110, section 15.3.7).
/// `length` is that of the whole.
fn push_parts(headers: &mut HeaderMap, body: &mut FileBody, parts: &[Range<u64>], length: u64) {
    if let [part] = parts {
        headers.insert(CONTENT_RANGE, ascii(&content_range(part, length)));
        body.push_range(part.clone());
        return;
    }
    let boundary = next_boundary();
    let content_type = headers.get(CONTENT_TYPE);
    let type_line = content_type.and_then(|value| value.to_str().ok());
    let type_line = type_line.unwrap_or_default();
    for (index, part) in parts.iter().enumerate() {
        let line_end = if index == 0 { "" } else { "\r\n" };
        body.push_text(Bytes::from(format!(
            "{line_end}--{boundary}\r\nContent-Type: {type_line}\r\nContent-Range: {}\r\n\r\n",
            content_range(part, length)
        )));
        body.push_range(part.clone());
    }
    body.push_text(Bytes::from(format!("\r\n--{boundary}--\r\n")));
    let multipart = format!("multipart/byteranges; boundary={boundary}");
    headers.insert(CONTENT_TYPE, ascii(&multipart));
}

fn content_range(part: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.start, part.end - 1)
}

fn unsatisfiable(length: u64) -> Response<FileBody> {
    let mut response = status(StatusCode::RANGE_NOT_SATISFIABLE, "", &Method::GET);
    let range = ascii(&format!("bytes */{length}"));
    response.headers_mut().insert(CONTENT_RANGE, range);
    response
}

/// The response to a failure.
pub(super) fn error(error: &FileError, method: &Method) -> Response<FileBody> {
    let text = match error.status() {
        // Messages of the file system may name paths.
        StatusCode::INTERNAL_SERVER_ERROR => String::new(),
        // Hidden files must be indistinguishable from missing ones.
        StatusCode::NOT_FOUND => FileError::NotFound.to_string(),
        _ => error.to_string(),
    };
    let mut response = status(error.status(), &text, method);
    if matches!(error, FileError::Method) {
        let allow = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allow);
    }
    if matches!(error, FileError::Busy) {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(1));
    }
    response
}

/// A permanent redirect to `location`.
pub(super) fn redirect(location: &str, method: &Method) -> Response<FileBody> {
    let mut response = status(StatusCode::MOVED_PERMANENTLY, "", method);
    response.headers_mut().insert(LOCATION, ascii(location));
    response
}

/// A generated page.
pub(super) fn page(html: Bytes, method: &Method) -> Response<FileBody> {
    let html_type = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = text(html, html_type, method);
    let no_cache = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(CACHE_CONTROL, no_cache);
    response
}

fn status(status: StatusCode, reason: &str, method: &Method) -> Response<FileBody> {
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let line = Bytes::from(status_line(status, reason));
    let mut response = text(line, plain, method);
    *response.status_mut() = status;
    response
}

fn text(content: Bytes, content_type: HeaderValue, method: &Method) -> Response<FileBody> {
    let length = content.len();
    let mut response = Response::new(FileBody::empty());
    if method != Method::HEAD {
        *response.body_mut() = FileBody::text(content);
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// A header value of ASCII text generated by this module.
fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A boundary that no file can contain on purpose: it depends on keys that are secret to this
/// process.
fn next_boundary() -> String {
    static KEYS: LazyLock<(RandomState, RandomState)> = LazyLock::new(Default::default);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{:016x}{:016x}",
        KEYS.0.hash_one(number),
        KEYS.1.hash_one(number)
    )
}
