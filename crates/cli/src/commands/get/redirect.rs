//! The target of a redirect and the request to it (RFC 9110, section 15.4).

use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};

use super::order::Ask;
use crate::exit::{Exit, Failure};
use crate::url::Scheme;

/// Most redirects in a row.
pub(super) const MAX_REDIRECTS: u32 = 10;

/// Result for a response.
#[derive(Debug)]
pub(super) enum Next {
    /// It is not a redirect.
    Stay,
    Follow(Ask),
}

/// The request that follows `ask`, which was answered with `status` and `headers`.
pub(super) fn next(ask: &Ask, status: StatusCode, headers: &HeaderMap) -> Result<Next, Failure> {
    let keeps_method = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => ask.method != Method::POST,
        StatusCode::SEE_OTHER => ask.method == Method::HEAD,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        _ => return Ok(Next::Stay),
    };
    let Some(location) = location(headers) else {
        return Ok(Next::Stay);
    };
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Status,
            format_args!("{}: redirected, but {error}", ask.url),
        )
    };
    let url = ask.url.join(&location).map_err(|error| wrong(&error))?;
    if ask.url.scheme() == Scheme::Https && url.scheme() == Scheme::Http {
        return Err(wrong(&format_args!(
            "{url} is not encrypted: request it directly if you trust the network"
        )));
    }
    let trusted = ask.trusted && url.has_origin_of(&ask.url);
    let (method, with_data) = if keeps_method {
        (ask.method.clone(), ask.with_data)
    } else {
        (Method::GET, false)
    };
    Ok(Next::Follow(Ask {
        url,
        method,
        with_data,
        trusted,
    }))
}

/// The value of the Location field; bytes beyond ASCII are read as UTF-8.
pub(super) fn location(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(LOCATION)?;
    String::from_utf8(value.as_bytes().to_vec()).ok()
}
