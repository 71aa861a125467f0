//! Interprets a response in the context of its request.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};

use super::failures::status_failure;
use super::order::{Ask, From};
use super::part::Record;
use super::range;
use super::redirect::location;
use super::retry::Incomplete;
use crate::exit::Failure;
use crate::url::Url;

/// The request, and the expected response.
pub(super) struct Expected<'a> {
    /// The URL as given by the user.
    pub(super) url: &'a Url,
    /// The request at the end of the redirects.
    pub(super) ask: &'a Ask,
    /// The partial download that it continues.
    pub(super) from: Option<&'a From>,
    /// The user requests a range.
    pub(super) has_range: bool,
    /// Redirects are followed; one that arrives here can't be.
    pub(super) follow: bool,
    pub(super) compressed: bool,
    /// The content of failure responses is written.
    pub(super) keep_failures: bool,
}

/// What to do with the content of a response.
pub(super) enum Take {
    /// It is complete: its length if known, and its version if it can be continued.
    Whole(Option<u64>, Option<Record>),
    /// It is the rest, up to this length.
    Rest(Option<u64>),
    /// There was nothing left to fetch.
    Nothing,
    /// It belongs to a failure response, and is written anyway.
    Failed(Failure),
}

impl Expected<'_> {
    pub(super) fn judge(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Take, Incomplete> {
        match (self.from, status) {
            (Some(from), StatusCode::PARTIAL_CONTENT) => {
                let rest = range::rest(headers, from.offset, &from.record);
                let rest = rest.ok_or(Incomplete::Afresh)?;
                return Ok(Take::Rest(rest.total));
            }
            (Some(from), StatusCode::RANGE_NOT_SATISFIABLE) => {
                let all = range::is_all(headers, from.offset, &from.record);
                return all.then_some(Take::Nothing).ok_or(Incomplete::Afresh);
            }
            (None, StatusCode::PARTIAL_CONTENT) if !self.has_range => {
                let more = "a range that was not requested";
                return Err(Incomplete::Final(status_failure(
                    &self.ask.url,
                    status,
                    more,
                )));
            }
            _ => {}
        }
        if status.is_success() {
            let length = range::length(headers).filter(|_| !self.compressed);
            let record = self.is_plain(status).then(|| {
                let url = self.url.to_string();
                range::record(&url, headers)
            });
            return Ok(Take::Whole(length, record.flatten()));
        }
        self.failed(status, headers)
    }

    fn failed(&self, status: StatusCode, headers: &HeaderMap) -> Result<Take, Incomplete> {
        let more = match location(headers) {
            Some(to) if status.is_redirection() && !self.follow => {
                format!("it is at {to}; -L follows")
            }
            _ => String::new(),
        };
        let failure = status_failure(&self.ask.url, status, &more);
        // The existing bytes are worth more than the content of a failure response.
        if self.keep_failures && self.from.is_none() {
            return Ok(Take::Failed(failure));
        }
        Err(if is_busy(status) {
            Incomplete::Busy(failure, retry_after(headers))
        } else {
            Incomplete::Final(failure)
        })
    }

    /// A later request could continue the response.
    fn is_plain(&self, status: StatusCode) -> bool {
        self.ask.method == Method::GET
            && !self.ask.with_data
            && status == StatusCode::OK
            && !self.compressed
            && !self.has_range
    }
}

/// Failures that may be temporary.
fn is_busy(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Seconds; dates are not supported (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    seconds.ok().map(Duration::from_secs)
}
