//! The protocol that carried a request, and the reason for it.

use std::fmt;

/// An HTTP version and its transport.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1 over TCP (RFC 9112).
    Http1,
    /// HTTP/2 over TLS and TCP (RFC 9113).
    Http2,
    /// HTTP/3 over QUIC (RFC 9114).
    Http3,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        })
    }
}

/// The hint that an origin offers HTTP/3.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Hint {
    /// An Alt-Svc field of an earlier response (RFC 7838).
    AltSvc,
    /// An HTTPS record of the DNS (RFC 9460).
    HttpsRecord,
    /// None: the policy attempts HTTP/3 without a hint.
    Assumed,
    /// An open HTTP/3 connection.
    Connected,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AltSvc => "an Alt-Svc field named it",
            Self::HttpsRecord => "an HTTPS record named it",
            Self::Assumed => "the policy tries it without a hint",
            Self::Connected => "a connection is open",
        })
    }
}

/// Why a response came over its protocol.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// The policy permits nothing else.
    Policy,
    /// There was a hint of HTTP/3, and it connected first.
    Hinted(Hint),
    /// TCP: no hint that the origin offers HTTP/3.
    NoHint,
    /// TCP: the client was built without QUIC.
    NoQuic,
    /// TCP: HTTP/3 is not defined for `http` URIs.
    PlainText,
    /// TCP: a proxy is used, which does not carry QUIC.
    Proxy,
    /// TCP: QUIC failed before TCP did.
    QuicFailed,
    /// TCP: it connected while the QUIC handshake was in progress.
    QuicSlower,
    /// TCP: an earlier request's QUIC handshake is still in progress.
    QuicPending,
    /// TCP: QUIC failed recently on this network.
    QuicBroken,
    /// The selection of protocols chose it; [`ArmChoice`](super::ArmChoice) has the reason.
    Selected,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Policy => "the policy permits nothing else",
            Self::Hinted(hint) => return write!(f, "HTTP/3 connected first: {hint}"),
            Self::NoHint => "no hint that the origin offers HTTP/3",
            Self::NoQuic => "the client has no QUIC",
            Self::PlainText => "HTTP/3 is not defined for http URIs",
            Self::Proxy => "a proxy is used, which does not carry QUIC",
            Self::QuicFailed => "QUIC failed",
            Self::QuicSlower => "TCP connected before QUIC did",
            Self::QuicPending => "a QUIC handshake is still in progress",
            Self::QuicBroken => "QUIC failed recently on this network",
            Self::Selected => "the selection chose it",
        })
    }
}

/// How a response was obtained, in its extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chosen {
    /// The protocol of the response.
    pub protocol: Protocol,
    /// The reason.
    pub why: Why,
    /// Connection attempts made for the request, over all addresses and protocols; 0 on an open
    /// connection.
    pub attempts: u32,
    /// Times that the request was sent; more than 1 only after evidence that it was not processed,
    /// or after 425.
    pub sent: u32,
    /// The connection had carried requests before.
    pub reused: bool,
    /// The request was sent as early data (RFC 8470).
    pub early: bool,
}
