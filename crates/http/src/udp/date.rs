//! The Date field of responses (RFC 9110, section 6.6.1), formatted once a second instead of once
//! per response.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

thread_local! {
    /// The last value and its second since the Unix epoch.
    static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The present time in the field's format; `None` if the clock is before 1970.
pub(super) fn date() -> Option<HeaderValue> {
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    LAST.with_borrow_mut(|last| match last {
        Some((at, value)) if *at == second => Some(value.clone()),
        _ => {
            let value = HeaderValue::from_str(&httpdate::fmt_http_date(now)).ok()?;
            *last = Some((second, value.clone()));
            Some(value)
        }
    })
}
