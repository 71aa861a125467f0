//! `quic:connection_closed` (QUIC events draft, section 4.3).

use std::borrow::Cow;

use serde::Serialize;
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{ConnectionError, TransportError};

use crate::text::shortened;

#[derive(Default, Serialize)]
pub(crate) struct ConnectionClosed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    initiator: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_error: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    trigger: &'static str,
}

impl<'a> ConnectionClosed<'a> {
    pub(crate) fn new(reason: &'a ConnectionError) -> Self {
        match reason {
            ConnectionError::VersionMismatch => Self::plain("local", "version_mismatch"),
            ConnectionError::Transport(error) => Self::transport("local", error),
            ConnectionError::PeerTransport(error) => Self::transport("remote", error),
            ConnectionError::PeerApplication { code, reason } => {
                Self::application("remote", *code, String::from_utf8_lossy(reason))
            }
            ConnectionError::LocallyClosed { code } => {
                Self::application("local", *code, Cow::Borrowed(""))
            }
            ConnectionError::Reset => Self::plain("remote", "stateless_reset"),
            ConnectionError::TimedOut => Self::plain("local", "idle_timeout"),
            // The draft has no value for it, and it was not an idle timeout.
            ConnectionError::HandshakeTimedOut => Self {
                reason: Some(Cow::Borrowed("the handshake took too long")),
                ..Self::plain("local", "aborted")
            },
            other => Self {
                reason: text(Cow::Owned(other.to_string())),
                trigger: "unspecified",
                ..Self::default()
            },
        }
    }

    fn plain(initiator: &'static str, trigger: &'static str) -> Self {
        Self {
            initiator: Some(initiator),
            trigger,
            ..Self::default()
        }
    }

    fn application(initiator: &'static str, code: u64, reason: Cow<'a, str>) -> Self {
        Self {
            application_error: Some("unknown"),
            error_code: Some(code),
            reason: text(reason),
            ..Self::plain(initiator, "application")
        }
    }

    fn transport(initiator: &'static str, error: &'a TransportError) -> Self {
        let name = transport_error(error.code);
        Self {
            error_code: (name == "unknown").then_some(error.code.0),
            connection_error: Some(name),
            reason: text(Cow::Borrowed(&error.reason)),
            ..Self::plain(initiator, "error")
        }
    }
}

/// The draft's name of a transport error; it has those of RFC 9000 (`$TransportError`).
pub(crate) fn transport_error(code: ErrorCode) -> Cow<'static, str> {
    match (code.0, code.name()) {
        (0x100..=0x1ff, _) => format!("crypto_error_{:#x}", code.0).into(),
        (0..=0x10, Some(name)) => name.to_ascii_lowercase().into(),
        _ => "unknown".into(),
    }
}

/// A text of bounded length; none if it is empty.
fn text(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    if text.is_empty() {
        return None;
    }
    Some(match text {
        Cow::Borrowed(text) => Cow::Borrowed(shortened(text)),
        Cow::Owned(text) => Cow::Owned(shortened(&text).to_owned()),
    })
}
