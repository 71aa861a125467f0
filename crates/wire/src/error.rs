//! Errors of received bytes, and the error codes of the RFCs.

use std::fmt;

use thiserror::Error;

/// Received bytes that are not a valid packet, frame or parameter.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside a field.
    #[error("the bytes end inside a field")]
    UnexpectedEnd,
    /// A frame type that no supported document defines (RFC 9000, section 12.4).
    #[error("unknown frame type {0:#x}")]
    UnknownFrame(u64),
    /// A frame type not in its shortest encoding (RFC 9000, section 12.4: `PROTOCOL_VIOLATION`).
    #[error("frame type {0:#x} is not encoded in the fewest bytes")]
    NonMinimalFrameType(u64),
    /// A path identifier above 2^32 - 1, hence above every limit (draft-ietf-quic-multipath-21, section 4:
    /// `PROTOCOL_VIOLATION`).
    #[error("path identifier {0} is above 2^32 - 1")]
    PathIdTooLarge(u64),
    /// A field has a value that its definition forbids.
    #[error("{0}")]
    Invalid(&'static str),
}

impl DecodeError {
    /// The code to close the connection with if the bytes were authenticated.
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            Self::NonMinimalFrameType(_) | Self::PathIdTooLarge(_) => ErrorCode::PROTOCOL_VIOLATION,
            Self::UnexpectedEnd | Self::UnknownFrame(_) | Self::Invalid(_) => {
                ErrorCode::FRAME_ENCODING_ERROR
            }
        }
    }
}

/// A transport error code (RFC 9000, section 20.1; draft-ietf-quic-multipath-21, section 6).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ErrorCode(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The code's name in its document, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    0x100..=0x1ff => Some("CRYPTO_ERROR"),
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error.
    NO_ERROR = 0x0;
    /// Internal error of the endpoint.
    INTERNAL_ERROR = 0x1;
    /// The server refuses the connection.
    CONNECTION_REFUSED = 0x2;
    /// More data than the flow-control limit.
    FLOW_CONTROL_ERROR = 0x3;
    /// More streams than the limit.
    STREAM_LIMIT_ERROR = 0x4;
    /// A frame for a stream in a state that doesn't permit it.
    STREAM_STATE_ERROR = 0x5;
    /// Data beyond a stream's final size, or a change of the final size.
    FINAL_SIZE_ERROR = 0x6;
    /// A malformed frame.
    FRAME_ENCODING_ERROR = 0x7;
    /// Invalid transport parameters.
    TRANSPORT_PARAMETER_ERROR = 0x8;
    /// More connection IDs than the limit.
    CONNECTION_ID_LIMIT_ERROR = 0x9;
    /// Any other violation of the protocol.
    PROTOCOL_VIOLATION = 0xa;
    /// A client's Initial carried an invalid token.
    INVALID_TOKEN = 0xb;
    /// The application or its protocol closed the connection during the handshake.
    APPLICATION_ERROR = 0xc;
    /// More crypto data than can be buffered.
    CRYPTO_BUFFER_EXCEEDED = 0xd;
    /// An error in key updates.
    KEY_UPDATE_ERROR = 0xe;
    /// The limit of an AEAD algorithm was reached.
    AEAD_LIMIT_REACHED = 0xf;
    /// No viable network path.
    NO_VIABLE_PATH = 0x10;
    /// Version negotiation failed or was tampered with (RFC 9368, section 10.2).
    VERSION_NEGOTIATION_ERROR = 0x11;
    /// draft-ietf-quic-multipath-10, section 8: a violation of the multipath extension of that age.
    MP_PROTOCOL_VIOLATION = 0x1001_d76d_3ded_42f3;
    /// The application abandoned a path.
    APPLICATION_ABANDON_PATH = 0x3e;
    /// The endpoint has no resources for another path.
    PATH_RESOURCE_LIMIT_REACHED = 0x3e75;
    /// The path is unstable or too weak to be of use.
    PATH_UNSTABLE_OR_POOR = 0x3e76;
    /// The peer opened a path for which the endpoint has no connection ID.
    NO_CID_AVAILABLE_FOR_PATH = 0x3e77;
}

impl ErrorCode {
    /// The code of a TLS alert: 0x100 plus the alert (RFC 9001, section 4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 + alert as u64)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "{:#x}", self.0),
        }
    }
}
