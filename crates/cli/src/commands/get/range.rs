//! Versions of files and parts of them: strong validators (RFC 9110, section 8.8) and Content-Range
//! (section 14.4).

use std::time::Duration;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, LAST_MODIFIED};

use super::part::Record;

/// A date is a strong validator if the response is so much younger: two changes within a second have the
/// same date, and clocks differ.
const SETTLED: Duration = Duration::from_secs(60);

/// The record of a whole response, if it has a validator.
pub(super) fn record(url: &str, headers: &HeaderMap) -> Option<Record> {
    let validator = strong_tag(headers).or_else(|| settled_date(headers))?;
    Some(Record {
        url: url.to_owned(),
        validator: validator.to_owned(),
        length: length(headers),
    })
}

/// The length of the content.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    text(headers, &CONTENT_LENGTH)?.parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn strong_tag(headers: &HeaderMap) -> Option<&str> {
    let tag = text(headers, &ETAG)?;
    let is_strong = tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
    is_strong.then_some(tag)
}

fn settled_date(headers: &HeaderMap) -> Option<&str> {
    let written = text(headers, &LAST_MODIFIED)?;
    let modified = httpdate::parse_http_date(written).ok()?;
    let now = httpdate::parse_http_date(text(headers, &DATE)?).ok()?;
    let age = now.duration_since(modified).ok()?;
    (age >= SETTLED).then_some(written)
}

/// The last part of a file, as announced by a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Rest {
    /// Bytes of the whole file, if announced.
    pub(super) total: Option<u64>,
}

/// Checks that a 206 has the bytes after `offset` of the version in `record`; `None` if it does not.
pub(super) fn rest(headers: &HeaderMap, offset: u64, record: &Record) -> Option<Rest> {
    let (first, last, total) = content_range(text(headers, &CONTENT_RANGE)?)?;
    let contradicts = |now: Option<&str>| now.is_some_and(|now| now != record.validator);
    let by_tag = record.validator.starts_with('"');
    let changed = if by_tag {
        contradicts(text(headers, &ETAG))
    } else {
        contradicts(text(headers, &LAST_MODIFIED))
    };
    let other_length = record.length.zip(total).is_some_and(|(was, is)| was != is);
    let encoded = headers.contains_key(CONTENT_ENCODING);
    let fits = first == offset
        && last >= first
        && total.is_none_or(|total| last < total)
        && !changed
        && !other_length
        && !encoded;
    fits.then_some(Rest {
        total: total.or(record.length),
    })
}

/// Whether a 416 states that `offset` bytes are the whole content.
pub(super) fn is_all(headers: &HeaderMap, offset: u64, record: &Record) -> bool {
    let said = text(headers, &CONTENT_RANGE).and_then(|value| value.strip_prefix("bytes */"));
    let total = said.and_then(|total| total.trim().parse().ok());
    total == Some(offset) && record.length.is_none_or(|length| length == offset)
}

/// `bytes first-last/total`, the total perhaps `*`.
fn content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    Some((first.parse().ok()?, last.parse().ok()?, total))
}

#[cfg(test)]
mod tests;
