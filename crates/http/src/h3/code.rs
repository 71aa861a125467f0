//! Error codes of HTTP/3 (RFC 9114, section 8.1), of QPACK (RFC 9204, section 6) and of HTTP
//! datagrams (RFC 9297, section 5.2).

use std::fmt;

/// An application error code of CONNECTION_CLOSE, RESET_STREAM and STOP_SENDING. Any 62-bit value
/// can come from a peer.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Code(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $wire:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The name in the RFC; `None` for an unknown code.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($wire),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// The peer violated the protocol in a way that no other code describes.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// An internal error of this end.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// The peer opened a stream that it must not open.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A control or QPACK stream was closed.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame that is not permitted in the current state or on the current stream.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame with an invalid layout or size.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer causes excessive load.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// An identifier of a stream or push that is invalid, such as one that increased where it must
    /// not.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// SETTINGS that violate the RFC or contradict earlier ones.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream did not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// The server did not process the request: it can be sent again on another connection.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is no longer needed.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The request's stream ended before the request was complete.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A malformed message (RFC 9114, section 4.1.2).
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The TCP connection of a CONNECT tunnel was reset or closed abnormally.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The request must be made over HTTP/1.1.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// A field section that can't be decompressed.
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// An instruction of the peer's encoder that is invalid.
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// An instruction of the peer's decoder that is invalid.
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
    /// An HTTP datagram that can't be parsed (RFC 9297, section 2.1), or a malformed capsule.
    DATAGRAM_ERROR = 0x33, "H3_DATAGRAM_ERROR";
    /// A WebTransport stream that came before its session and could not be buffered
    /// (draft-ietf-webtrans-http3, section 4.6).
    WEBTRANSPORT_BUFFERED_STREAM_REJECTED = 0x3994_bd84, "WEBTRANSPORT_BUFFERED_STREAM_REJECTED";
    /// The session of a WebTransport stream has ended (draft-ietf-webtrans-http3, section 6).
    WEBTRANSPORT_SESSION_GONE = 0x170d_7b68, "WEBTRANSPORT_SESSION_GONE";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
