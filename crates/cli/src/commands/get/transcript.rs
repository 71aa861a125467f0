//! What `-v`, `-i` and `-I` show of requests and responses.

use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, Request, Response};
use swiftwater_http::client::Chosen;

use crate::exit::one_line;
use crate::progress::Progress;

/// The head of a response as text, line by line, with an empty one at the end.
pub(super) fn head<B>(response: &Response<B>) -> String {
    let status = response.status();
    let protocol = response.extensions().get::<Chosen>();
    let protocol = protocol.map_or_else(String::new, |chosen| chosen.protocol.to_string());
    let reason = status.canonical_reason().unwrap_or_default();
    let mut lines = vec![one_line(&format!(
        "{protocol} {} {reason}",
        status.as_u16()
    ))];
    lines.extend(fields(response.headers()));
    lines.push(String::new());
    lines.join("\n")
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        one_line(&format!("{name}: {value}"))
    })
}

/// Prints what is asked. Credentials are not shown: logs are passed around.
pub(super) fn request<B>(request: &Request<B>, to: &Progress) {
    to.note(&one_line(&format!(
        "> {} {}",
        request.method(),
        request.uri()
    )));
    let mut shown = request.headers().clone();
    for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
        if let Some(value) = shown.get_mut(&name) {
            *value = http::HeaderValue::from_static("(not shown)");
        }
    }
    for line in fields(&shown) {
        to.note(&format!("> {line}"));
    }
}

/// Prints how the answer came about, and its head.
pub(super) fn response<B>(response: &Response<B>, to: &Progress) {
    if let Some(chosen) = response.extensions().get::<Chosen>() {
        let connection = if chosen.reused {
            "on a standing connection"
        } else {
            "on a new connection"
        };
        let early = if chosen.early { ", as early data" } else { "" };
        let again = match chosen.sent {
            0 | 1 => String::new(),
            sent => format!(", sent {sent} times"),
        };
        let (protocol, why) = (chosen.protocol, chosen.why);
        to.note(&format!("* {protocol} {connection}{early}{again}: {why}"));
    }
    for line in head(response).trim_end().lines() {
        to.note(&format!("< {line}"));
    }
}

/// Prints what came behind the content.
pub(super) fn trailers(trailers: &HeaderMap, to: &Progress) {
    for line in fields(trailers) {
        to.note(&format!("< (trailer) {line}"));
    }
}
