//! The output of `-v`, `-i` and `-I`: heads of requests and responses.

use clap::ValueEnum;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use swiftwater_http::client::{ArmChoice, Chosen, Why};

use super::args::Protocol;

use crate::exit::one_line;
use crate::progress::Progress;

/// Fields whose values `-v` doesn't show: its output is often shared.
const SECRET: [HeaderName; 4] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE];

/// The head of a response as text, line by line, with an empty one at the end.
pub(super) fn head<B>(response: &Response<B>) -> String {
    let mut lines = vec![status_line(response)];
    lines.extend(fields(response.headers()));
    lines.push(String::new());
    lines.join("\n")
}

fn status_line<B>(response: &Response<B>) -> String {
    let status = response.status();
    let protocol = response.extensions().get::<Chosen>();
    let protocol = protocol.map_or_else(String::new, |chosen| chosen.protocol.to_string());
    let reason = status.canonical_reason().unwrap_or_default();
    one_line(&format!("{protocol} {} {reason}", status.as_u16()))
}

/// The same fields, with every value of a secret field replaced.
fn without_secrets(headers: &HeaderMap) -> HeaderMap {
    let shown = headers.iter().map(|(name, value)| {
        let value = if SECRET.contains(name) {
            HeaderValue::from_static("(not shown)")
        } else {
            value.clone()
        };
        (name.clone(), value)
    });
    shown.collect()
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        one_line(&format!("{name}: {value}"))
    })
}

/// Prints the request. Credentials are not shown: logs are often shared.
pub(super) fn request<B>(request: &Request<B>, to: &Progress) {
    to.note(&one_line(&format!(
        "> {} {}",
        request.method(),
        request.uri()
    )));
    for line in fields(&without_secrets(request.headers())) {
        to.note(&format!("> {line}"));
    }
}

/// Prints the protocol of the response, given `--protocol`, and its head.
pub(super) fn response<B>(response: &Response<B>, wanted: Protocol, to: &Progress) {
    if let Some(chosen) = response.extensions().get::<Chosen>() {
        let connection = if chosen.reused {
            "on an open connection"
        } else {
            "on a new connection"
        };
        let early = if chosen.early { ", as early data" } else { "" };
        let again = match chosen.sent {
            0 | 1 => String::new(),
            sent => format!(", sent {sent} times"),
        };
        let (protocol, why) = (chosen.protocol, why(chosen.why, wanted));
        to.note(&format!("* {protocol} {connection}{early}{again}: {why}"));
    }
    if let Some(choice) = response.extensions().get::<ArmChoice>() {
        let twice = if choice.hedged {
            ", sent over TCP too"
        } else {
            ""
        };
        to.note(&format!(
            "* selected {}: {}{twice}",
            choice.decided, choice.reason
        ));
    }
    to.note(&format!("< {}", status_line(response)));
    for line in fields(&without_secrets(response.headers())) {
        to.note(&format!("< {line}"));
    }
}

/// The reason, in terms of the command line.
fn why(why: Why, wanted: Protocol) -> String {
    match (why, wanted.to_possible_value()) {
        (Why::Policy, Some(value)) => format!("because of --protocol {}", value.get_name()),
        _ => why.to_string(),
    }
}

/// Prints the trailers.
pub(super) fn trailers(trailers: &HeaderMap, to: &Progress) {
    for line in fields(&without_secrets(trailers)) {
        to.note(&format!("< (trailer) {line}"));
    }
}
