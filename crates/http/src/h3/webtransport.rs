//! Helpers for WebTransport over HTTP/3 (draft-ietf-webtrans-http3) in addition to the engine's
//! streams and datagrams: names, error codes (section 4.4) and the capsules that end a session
//! (sections 4.7 and 5).

use bytes::Bytes;

use super::capsule::{Capsule, capsule_type};
use super::code::Code;

/// Start of the range of a session's error codes.
const FIRST_CODE: u64 = 0x52e4_a40f_a8db;

/// Most bytes of a reason (draft-ietf-webtrans-http3, section 5).
const MAX_REASON: usize = 1024;

/// True for the values of `:protocol` that request a session: that of browsers (drafts up to 13), and
/// that of later drafts.
pub fn is_protocol(name: &str) -> bool {
    matches!(name, "webtransport" | "webtransport-h3")
}

/// The HTTP/3 error code of the application's code `n` for RESET_STREAM and STOP_SENDING. Reserved
/// codes of HTTP/3 are left out, one in 31.
pub const fn stream_code(n: u32) -> Code {
    let n = n as u64;
    Code(FIRST_CODE + n + n / 0x1e)
}

/// The application's code of an HTTP/3 error code; `None` if it is outside the range.
pub fn application_code(code: Code) -> Option<u32> {
    let n = code.0.checked_sub(FIRST_CODE)?;
    // Reserved codes are 0x1f * N + 0x21.
    if code.0 % 0x1f == 0x21 % 0x1f {
        return None;
    }
    u32::try_from(n - n / 0x1f).ok()
}

/// Ends a session with the application's code and a reason, cut to 1024 bytes; only the end of the
/// request's stream may follow it.
pub fn close_session(code: u32, reason: &str) -> Capsule {
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut value = code.to_be_bytes().to_vec();
    value.extend_from_slice(&reason.as_bytes()[..end]);
    Capsule {
        capsule_type: capsule_type::CLOSE_WEBTRANSPORT_SESSION,
        value: value.into(),
    }
}

/// Asks the peer to end a session soon.
pub fn drain_session() -> Capsule {
    Capsule {
        capsule_type: capsule_type::DRAIN_WEBTRANSPORT_SESSION,
        value: Bytes::new(),
    }
}

/// The code and reason of a capsule that ends a session; `None` if it is malformed or another one.
pub fn closed_session(capsule: &Capsule) -> Option<(u32, String)> {
    if capsule.capsule_type != capsule_type::CLOSE_WEBTRANSPORT_SESSION {
        return None;
    }
    let (code, reason) = capsule.value.split_first_chunk::<4>()?;
    if reason.len() > MAX_REASON {
        return None;
    }
    let reason = std::str::from_utf8(reason).ok()?;
    Some((u32::from_be_bytes(*code), reason.to_owned()))
}
