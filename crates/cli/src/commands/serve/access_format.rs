//! The lines of the access log: requests in the common or combined log format or as JSON, ends of connections as
//! JSON.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::Version;
use serde::Serialize;
use swiftwater_http::web::access_log::Record;
use time::OffsetDateTime;

use super::connection_log::End;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A request in the common log format: client, two unused fields, time, request, status, bytes. The
/// client is an address without port; the HTTP version identifies the protocol.
pub(super) fn common(record: &Record, now: SystemTime) -> String {
    let now = OffsetDateTime::from(now);
    let month = MONTHS[usize::from(u8::from(now.month()) - 1)];
    let mut line = match record.peer {
        Some(peer) => peer.ip().to_canonical().to_string(),
        None => "-".to_owned(),
    };
    // Writing to a string can't fail.
    let _ = write!(
        line,
        " - - [{:02}/{month}/{:04}:{:02}:{:02}:{:02} +0000] \"",
        now.day(),
        now.year(),
        now.hour(),
        now.minute(),
        now.second()
    );
    escape(record.method.as_str(), &mut line);
    line.push(' ');
    escape(&record.target, &mut line);
    let _ = write!(line, " {:?}\" ", record.version);
    let _ = match record.status {
        Some(status) => write!(line, "{status} {}", record.bytes),
        None => write!(line, "- {}", record.bytes),
    };
    line
}

/// The same, followed by `Referer` and `User-Agent`.
pub(super) fn combined(record: &Record, now: SystemTime) -> String {
    let mut line = common(record, now);
    for field in [&record.referer, &record.user_agent] {
        line.push_str(" \"");
        match field {
            Some(value) => escape_bytes(value.as_bytes(), b' ', &mut line),
            None => line.push('-'),
        }
        line.push('"');
    }
    line
}

/// The text comes from clients: quotes, backslashes and all but printable ASCII are written as
/// `\xHH`.
fn escape(text: &str, line: &mut String) {
    escape_bytes(text.as_bytes(), b'!', line);
}

/// The same for bytes, of which those from `least` on may be printable.
fn escape_bytes(bytes: &[u8], least: u8, line: &mut String) {
    for &byte in bytes {
        if (least..=b'~').contains(&byte) && byte != b'"' && byte != b'\\' {
            line.push(char::from(byte));
        } else {
            let _ = write!(line, "\\x{byte:02X}");
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AccessLine<'a> {
    Request {
        time: String,
        peer: Option<SocketAddr>,
        host: Option<&'a str>,
        method: &'a str,
        path: &'a str,
        protocol: &'static str,
        early: bool,
        status: Option<u16>,
        bytes: u64,
        seconds: f64,
        ending: &'static str,
    },
    Connection {
        time: String,
        #[serde(flatten)]
        end: &'a End,
    },
}

/// A request as a JSON object.
pub(super) fn json(record: &Record, now: SystemTime) -> String {
    to_text(&AccessLine::Request {
        time: timestamp(now),
        peer: record.peer.map(canonical),
        host: record.host.as_deref(),
        method: record.method.as_str(),
        path: &record.target,
        protocol: protocol_name(record.version),
        early: record.early,
        status: record.status,
        bytes: record.bytes,
        seconds: seconds(record.elapsed),
        ending: record.ending(),
    })
}

/// The end of a connection as a JSON object.
pub(super) fn json_end(end: &End, now: SystemTime) -> String {
    to_text(&AccessLine::Connection {
        time: timestamp(now),
        end,
    })
}

fn to_text(line: &AccessLine<'_>) -> String {
    // All values can be represented in JSON.
    serde_json::to_string(line).unwrap_or_default()
}

/// Whole microseconds.
pub(super) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

/// In the format of RFC 3339, in UTC, with milliseconds.
fn timestamp(now: SystemTime) -> String {
    let now = OffsetDateTime::from(now);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.millisecond()
    )
}

/// An IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2), as dual-stack sockets report it, as IPv4:
/// the client has the same address over TCP and over QUIC.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// As in ALPN.
pub(super) fn protocol_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "h3",
        Version::HTTP_2 => "h2",
        Version::HTTP_11 => "http/1.1",
        // The only status here without a number.
        Version::HTTP_09 => "hq-interop",
        _ => "http/1.0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        let then = SystemTime::UNIX_EPOCH + Duration::from_millis(951_782_400_250);
        assert_eq!(timestamp(then), "2000-02-29T00:00:00.250Z");
    }

    #[test]
    fn mapped_addresses_are_shown_as_they_are() {
        let mapped = "[::ffff:192.0.2.7]:4433".parse().map(canonical);
        assert_eq!(mapped, "192.0.2.7:4433".parse());
        let other = "[2001:db8::7]:4433".parse();
        assert_eq!(other.clone().map(canonical), other);
    }

    #[test]
    fn the_combined_format_ends_with_what_clients_say_of_themselves() {
        let mut record = Record::new(http::Method::GET, "/a".to_owned(), Version::HTTP_3);
        let end = |record: &Record| {
            let line = combined(record, SystemTime::UNIX_EPOCH);
            line.split_once(" - 0 ").unwrap().1.to_owned()
        };
        assert_eq!(end(&record), "\"-\" \"-\"");
        record.user_agent = Some(http::HeaderValue::from_static("agent/1 (x; y) \"z\""));
        assert_eq!(end(&record), "\"-\" \"agent/1 (x; y) \\x22z\\x22\"");
    }

    #[test]
    fn clients_cannot_forge_fields() {
        let mut line = String::new();
        escape("/a\" 200 1\\\n\u{e9}", &mut line);
        assert_eq!(line, "/a\\x22\\x20200\\x201\\x5C\\x0A\\xC3\\xA9");
    }
}
