//! The fields of responses with one version of a file, whatever the request. No I/O.

use std::path::Path;
use std::time::SystemTime;

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, VARY,
};
use http::{HeaderMap, HeaderValue};

use super::locate::OpenFile;
use super::options::FileOptions;
use super::validators::Validators;

/// What responses with one version of a file have in common.
#[derive(Debug)]
pub(super) struct Representation {
    /// Bytes of content.
    pub(super) length: u64,
    pub(super) validators: Validators,
    /// The fields of a response with status 200.
    pub(super) head: HeaderMap,
}

impl Representation {
    /// That of `found`.
    pub(super) fn of(found: &OpenFile, options: &FileOptions, now: SystemTime) -> Self {
        let suffix = found.coding.map_or("", |coding| coding.suffix);
        let validators = Validators::new(found.length, found.modified, suffix, now);
        let mut head = HeaderMap::with_capacity(12);
        head.insert(CONTENT_TYPE, content_type(&found.name, options.utf8));
        head.insert(CONTENT_LENGTH, HeaderValue::from(found.length));
        head.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Ok(etag) = HeaderValue::from_str(validators.etag()) {
            head.insert(ETAG, etag);
        }
        if let Some(date) = validators.last_modified() {
            head.insert(LAST_MODIFIED, date);
        }
        if let Some(cache_control) = &options.cache_control {
            head.insert(CACHE_CONTROL, cache_control.clone());
        }
        if found.negotiated {
            head.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(coding) = found.coding {
            head.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name));
        }
        Self {
            length: found.length,
            validators,
            head,
        }
    }

    /// The fields that a 304 carries (RFC 9110, section 15.4.5).
    pub(super) fn state_fields(&self) -> HeaderMap {
        let mut fields = self.head.clone();
        for of_content in [CONTENT_TYPE, CONTENT_LENGTH, ACCEPT_RANGES] {
            fields.remove(of_content);
        }
        fields
    }
}

/// The media type of a file, by its name.
fn content_type(name: &Path, utf8: bool) -> HeaderValue {
    let Some(guess) = streaming_type(name).or_else(|| mime_guess::from_path(name).first_raw())
    else {
        return HeaderValue::from_static("application/octet-stream");
    };
    if utf8 && (guess.starts_with("text/") || guess == "application/javascript") {
        let declared = format!("{guess}; charset=utf-8");
        return HeaderValue::from_str(&declared).unwrap_or(HeaderValue::from_static(guess));
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
