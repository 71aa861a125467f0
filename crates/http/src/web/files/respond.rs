//! Builds the responses: status, headers and body.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};

use super::body::{FileBody, Source};
use super::error::FileError;
use super::locate::OpenFile;
use super::options::FileOptions;
use super::ranges::{Selection, select};
use super::validators::{Validators, Verdict};
use crate::web::body::status_line;

/// The response to a request for `found`, which was GET or HEAD. `read` may read its content at once.
pub(super) fn file(
    request: &request::Parts,
    found: OpenFile,
    options: &FileOptions,
    now: SystemTime,
    read: fn(&mut FileBody),
) -> Response<FileBody> {
    let suffix = found.coding.map_or("", |coding| coding.suffix);
    let validators = Validators::new(found.length, found.modified, suffix, now);
    let mut response = Response::new(FileBody::empty());
    describe_state(response.headers_mut(), &found, &validators, options);
    match validators.evaluate(&request.method, &request.headers) {
        Verdict::Proceed => {}
        Verdict::NotModified => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        Verdict::Failed => return status(StatusCode::PRECONDITION_FAILED, "", &request.method),
    }
    let selection = if request.method == Method::GET {
        validators
            .applicable_range(&request.headers, now)
            .map_or(Selection::Whole, |field| select(field, found.length))
    } else {
        // Ranges are defined for GET alone (RFC 9110, section 14.2).
        Selection::Whole
    };
    let content_type = content_type(&found.name, options.utf8);
    let (status, mut body) = match selection {
        Selection::Unsatisfiable => return unsatisfiable(found.length),
        Selection::Whole => {
            let length = found.length;
            response
                .headers_mut()
                .insert(CONTENT_TYPE, content_type.clone());
            let mut body = body_of(found, options);
            body.push_range(0..length);
            (StatusCode::OK, body)
        }
        Selection::Parts(parts) => {
            let body = partial(response.headers_mut(), found, &parts, content_type, options);
            (StatusCode::PARTIAL_CONTENT, body)
        }
    };
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.remaining()));
    *response.status_mut() = status;
    if request.method == Method::GET {
        read(&mut body);
        *response.body_mut() = body;
    }
    response
}

/// The fields that a 304 carries as well (RFC 9110, section 15.4.5).
fn describe_state(
    headers: &mut HeaderMap,
    found: &OpenFile,
    validators: &Validators,
    options: &FileOptions,
) {
    if let Ok(etag) = HeaderValue::from_str(validators.etag()) {
        headers.insert(ETAG, etag);
    }
    if let Some(date) = validators.last_modified() {
        headers.insert(LAST_MODIFIED, date);
    }
    if let Some(cache_control) = &options.cache_control {
        headers.insert(CACHE_CONTROL, cache_control.clone());
    }
    if found.negotiated {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    if let Some(coding) = found.coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name));
    }
}

/// The body of a 206, and its `Content-Type` and `Content-Range` (RFC 9110, section 15.3.7).
fn partial(
    headers: &mut HeaderMap,
    found: OpenFile,
    parts: &[Range<u64>],
    content_type: HeaderValue,
    options: &FileOptions,
) -> FileBody {
    let length = found.length;
    let mut body = body_of(found, options);
    if let [part] = parts {
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(CONTENT_RANGE, ascii(&content_range(part, length)));
        body.push_range(part.clone());
        return body;
    }
    let boundary = next_boundary();
    let type_line = content_type.to_str().unwrap_or_default();
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
    body
}

fn body_of(found: OpenFile, options: &FileOptions) -> FileBody {
    FileBody::of(Source {
        length: found.length,
        modified: found.modified,
        file: found.file,
        chunk: options.chunk.clamp(4 * 1024, 1024 * 1024),
        pieces: found.pieces,
        _permit: found.permit,
    })
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

fn content_type(name: &Path, utf8: bool) -> HeaderValue {
    let Some(guess) = streaming_type(name).or_else(|| mime_guess::from_path(name).first_raw())
    else {
        return HeaderValue::from_static("application/octet-stream");
    };
    if utf8 && (guess.starts_with("text/") || guess == "application/javascript") {
        return ascii(&format!("{guess}; charset=utf-8"));
    }
    HeaderValue::from_static(guess)
}

/// Types of HTTP Live Streaming (RFC 8216, section 4) and MPEG-DASH, for which `mime_guess` has other
/// types or none.
fn streaming_type(name: &Path) -> Option<&'static str> {
    let extension = name.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "m3u8" => "application/vnd.apple.mpegurl",
        "ts" => "video/mp2t",
        "m4s" => "video/iso.segment",
        "mpd" => "application/dash+xml",
        "mjs" => "text/javascript",
        "wasm" => "application/wasm",
        _ => return None,
    })
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
