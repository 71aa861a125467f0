//! Error codes of HTTP/3 (RFC 9114, section 8.1), of QPACK (RFC 9204, section 6) and of HTTP
//! datagrams (RFC 9297, section 5.2).

use std::fmt;

/// An application error code, as it goes into CONNECTION_CLOSE, RESET_STREAM and STOP_SENDING. Any
/// 62-bit value can come from a peer.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Code(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $wire:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The RFC's name; `None` for a code that no RFC of ours names.
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
    /// Nothing went wrong.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// The peer broke the protocol in a way that no other code names.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// A fault of our own.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// A stream of a kind that the peer must not open.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A control or QPACK stream ended.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame where it must not be.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame whose layout or size is wrong.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer asks for more than we give.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// An identifier of a stream or push that is wrong, such as one that went back up.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// SETTINGS that contradict the RFC, themselves or earlier ones.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream did not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// The server did nothing with the request: it can be sent again elsewhere.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is not wanted any more.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The request ended before it was complete.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A malformed message (RFC 9114, section 4.1.2).
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The other end of a CONNECT tunnel broke or was reset.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The request must be made over HTTP/1.1.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// A field section that can't be decompressed.
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// An instruction of the peer's encoder that can't be carried out.
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// An instruction of the peer's decoder that can't be carried out.
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
    /// An HTTP datagram that can't be parsed (RFC 9297, section 2.1), or a malformed capsule.
    DATAGRAM_ERROR = 0x33, "H3_DATAGRAM_ERROR";
    /// A WebTransport stream came before its session, and there was no room to keep it
    /// (draft-ietf-webtrans-http3, section 4.6).
    WEBTRANSPORT_BUFFERED_STREAM_REJECTED = 0x3994_bd84, "WEBTRANSPORT_BUFFERED_STREAM_REJECTED";
    /// The session of a WebTransport stream is over (draft-ietf-webtrans-http3, section 6).
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
