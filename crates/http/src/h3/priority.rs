//! Priorities of requests (RFC 9218): the Priority field, which is a dictionary of structured fields
//! (RFC 9651, section 3.2), and the PRIORITY_UPDATE frame.
//!
//! Only the parameters `u` and `i` are defined, so only integers and booleans are parsed; other
//! members are skipped.

use http::HeaderMap;
use swiftwater_wire::Reader;

use super::code::Code;
use super::error::Fault;
use super::frame::{FrameType, put_frame};
use super::stream_type::put_int;

/// Priority of a response (RFC 9218, section 4).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Priority {
    /// 0 (first) to 7 (last); default 3.
    pub urgency: u8,
    /// True if the response can be processed incrementally; default false.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// The least urgent level.
    pub const MAX_URGENCY: u8 = 7;

    /// The priority of a Priority field's value; missing or invalid parameters have their defaults
    /// (RFC 9218, section 4).
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for (key, value) in members(value) {
            match (key, value) {
                (b"u", Some(value)) => {
                    let number = std::str::from_utf8(value).ok().and_then(|s| s.parse().ok());
                    if let Some(urgency @ 0..=Self::MAX_URGENCY) = number {
                        priority.urgency = urgency;
                    }
                }
                (b"i", None | Some(b"?1")) => priority.incremental = true,
                (b"i", Some(b"?0")) => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// The priority in a message's Priority field; `None` without one. Several lines are one list
    /// (RFC 9651, section 3.2).
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let lines: Vec<_> = headers
            .get_all("priority")
            .iter()
            .map(http::HeaderValue::as_bytes)
            .collect();
        (!lines.is_empty()).then(|| Self::parse(&lines.join(&b',')))
    }

    /// The value of a Priority field; empty for the default.
    pub fn to_field_value(self) -> String {
        let urgency = self.urgency.min(Self::MAX_URGENCY);
        let mut members = Vec::new();
        if urgency != Self::default().urgency {
            members.push(format!("u={urgency}"));
        }
        if self.incremental {
            members.push("i".to_owned());
        }
        members.join(", ")
    }

    /// The transport's representation.
    pub(crate) const fn for_transport(self) -> swiftwater_quic::Priority {
        swiftwater_quic::Priority::new(self.urgency, self.incremental)
    }
}

/// The members of a dictionary: key, and value without parameters. Commas and semicolons within
/// strings and inner lists are not separators.
fn members(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = outside(rest, b',');
        let member = rest[..end].trim_ascii();
        rest = rest.get(end + 1..).unwrap_or_default();
        let bare = &member[..outside(member, b';')];
        let mut halves = bare.splitn(2, |&byte| byte == b'=');
        let key = halves.next().unwrap_or_default().trim_ascii();
        Some((key, halves.next().map(<[u8]>::trim_ascii)))
    })
}

/// The first position of `wanted` outside of strings and inner lists, or the length.
fn outside(bytes: &[u8], wanted: u8) -> usize {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_usize);
    for (at, &byte) in bytes.iter().enumerate() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match byte {
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            byte if byte == wanted && depth == 0 => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Appends a PRIORITY_UPDATE frame for the request of stream `id` (RFC 9218, section 7.2).
pub(crate) fn put_update(out: &mut Vec<u8>, id: u64, priority: Priority) {
    let mut payload = Vec::new();
    put_int(&mut payload, id);
    payload.extend_from_slice(priority.to_field_value().as_bytes());
    put_frame(out, FrameType::PriorityUpdateRequest, &payload);
}

/// The payload of a PRIORITY_UPDATE frame: request or push, and its priority.
pub(crate) fn parse_update(payload: &[u8]) -> Result<(u64, Priority), Fault> {
    let mut reader = Reader::new(payload);
    let id = reader
        .varint()
        .map_err(|_| Fault::connection(Code::FRAME_ERROR, "truncated PRIORITY_UPDATE"))?;
    Ok((id, Priority::parse(reader.rest())))
}
