//! The validators of a file and the preconditions that requests attach to them (RFC 9110, sections
//! 8.8 and 13). Takes the time as an argument.
//!
//! The entity tag is made of modification time, in nanoseconds, and size: strong as nginx's, finer
//! in time. Two changes within one tick of the file system's clock that keep the size can't be
//! distinguished; replacing files by renaming avoids that.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderValue, Method};

/// After a modification this recent, another may follow within the same second, so the date is not
/// a strong validator (RFC 9110, section 8.8.2.2).
const DATE_IS_STRONG_AFTER: Duration = Duration::from_secs(2);

/// Validators of one state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    etag: String,
    modified: Option<SystemTime>,
}

/// Result of evaluating the preconditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as if there were none.
    Proceed,
    /// The client has this state already: 304.
    NotModified,
    /// A precondition failed: 412.
    Failed,
}

impl Validators {
    /// The validators of a file of `length` bytes, changed at `modified`, served in a content
    /// coding that file names mark with `suffix` (empty: none). A time in the future counts as `now`
    /// (RFC 9110, section 8.8.2.1).
    pub fn new(length: u64, modified: Option<SystemTime>, suffix: &str, now: SystemTime) -> Self {
        let since = modified
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .unwrap_or_default();
        let etag = format!(
            "\"{:x}.{:x}-{length:x}{suffix}\"",
            since.as_secs(),
            since.subsec_nanos()
        );
        Self {
            etag,
            modified: modified.map(|time| whole_seconds(time.min(now))),
        }
    }

    /// The value of `ETag`, with its quotes.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// The value of `Last-Modified`; none if the file system keeps no times.
    pub fn last_modified(&self) -> Option<HeaderValue> {
        let date = httpdate::fmt_http_date(self.modified?);
        HeaderValue::from_str(&date).ok()
    }

    /// Evaluates the preconditions in the order of RFC 9110, section 13.2.2.
    pub fn evaluate(&self, method: &Method, headers: &HeaderMap) -> Verdict {
        if headers.contains_key(IF_MATCH) {
            if !self.matches(headers, &IF_MATCH, Comparison::Strong) {
                return Verdict::Failed;
            }
        } else if let Some(date) = date(headers, &IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > date)
        {
            return Verdict::Failed;
        }
        let reads = method == Method::GET || method == Method::HEAD;
        if headers.contains_key(IF_NONE_MATCH) {
            if self.matches(headers, &IF_NONE_MATCH, Comparison::Weak) {
                return if reads {
                    Verdict::NotModified
                } else {
                    Verdict::Failed
                };
            }
        } else if reads
            && let Some(date) = date(headers, &IF_MODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified <= date)
        {
            return Verdict::NotModified;
        }
        Verdict::Proceed
    }

    /// The `Range` field, if there is exactly one and `If-Range` permits it (RFC 9110, section
    /// 13.1.5).
    pub fn applicable_range<'a>(&self, headers: &'a HeaderMap, now: SystemTime) -> Option<&'a str> {
        let mut fields = headers.get_all(RANGE).iter();
        let range = fields.next()?.to_str().ok()?;
        if fields.next().is_some() {
            return None;
        }
        let Some(condition) = headers.get(IF_RANGE) else {
            return Some(range);
        };
        let condition = condition.to_str().ok()?.trim();
        let applies = if condition.starts_with(['"', 'W']) && condition.ends_with('"') {
            condition == self.etag
        } else {
            self.is_strong_date(condition, now)
        };
        applies.then_some(range)
    }

    fn is_strong_date(&self, condition: &str, now: SystemTime) -> bool {
        let (Ok(date), Some(modified)) = (httpdate::parse_http_date(condition), self.modified)
        else {
            return false;
        };
        date == modified
            && now
                .duration_since(modified)
                .is_ok_and(|age| age >= DATE_IS_STRONG_AFTER)
    }

    fn matches(
        &self,
        headers: &HeaderMap,
        name: &http::HeaderName,
        comparison: Comparison,
    ) -> bool {
        headers.get_all(name).iter().any(|value| {
            value
                .to_str()
                .is_ok_and(|list| list_matches(list, &self.etag, comparison))
        })
    }
}

/// How entity tags are compared (RFC 9110, section 8.8.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Weak tags never match.
    Strong,
    /// Whether a tag is weak does not matter.
    Weak,
}

/// Whether `etag`, which is strong, is in a list of entity tags, or the list is `*`. Tags may
/// contain commas. Members after a malformed one are ignored.
fn list_matches(list: &str, etag: &str, comparison: Comparison) -> bool {
    let mut rest = list.trim();
    if rest == "*" {
        return true;
    }
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (weak, tag) = match rest.strip_prefix("W/") {
            Some(tag) => (true, tag),
            None => (false, rest),
        };
        let Some(close) = tag
            .strip_prefix('"')
            .and_then(|opaque| opaque.find('"'))
            .map(|position| position + 2)
        else {
            return false;
        };
        let comparable = comparison == Comparison::Weak || !weak;
        if comparable && &tag[..close] == etag {
            return true;
        }
        rest = &tag[close..];
    }
}

/// The date of a field; none if it is absent, repeated or malformed (RFC 9110, section 13.1.3).
fn date(headers: &HeaderMap, name: &http::HeaderName) -> Option<SystemTime> {
    let mut fields = headers.get_all(name).iter();
    let text = fields.next()?.to_str().ok()?;
    if fields.next().is_some() {
        return None;
    }
    httpdate::parse_http_date(text).ok()
}

/// `time` without the fraction of a second, which HTTP dates can't express.
fn whole_seconds(time: SystemTime) -> SystemTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => UNIX_EPOCH + Duration::from_secs(since.as_secs()),
        Err(_) => UNIX_EPOCH,
    }
}
