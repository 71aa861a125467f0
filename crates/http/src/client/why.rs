//! Which protocol carried a request, and the reason.

use std::fmt;

/// A version of HTTP and what it runs on.
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

/// What said that an origin speaks HTTP/3.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Hint {
    /// An Alt-Svc field of an earlier response (RFC 7838).
    AltSvc,
    /// An HTTPS record of the DNS (RFC 9460).
    HttpsRecord,
    /// Nobody: the policy tries without.
    Assumed,
    /// An HTTP/3 connection to it stands.
    Connected,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AltSvc => "an Alt-Svc field named it",
            Self::HttpsRecord => "an HTTPS record named it",
            Self::Assumed => "the policy tries it without a hint",
            Self::Connected => "a connection stands",
        })
    }
}

/// Why a response came by the protocol that it came by.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// The policy permits nothing else.
    Policy,
    /// HTTP/3 was known and connected first.
    Hinted(Hint),
    /// TCP: nothing says that the origin speaks HTTP/3.
    NoHint,
    /// TCP: the client was built without QUIC.
    NoQuic,
    /// TCP: `http` URIs have no HTTP/3.
    PlainText,
    /// TCP: a proxy stands between, which QUIC doesn't pass.
    Proxy,
    /// TCP: QUIC failed before TCP did.
    QuicFailed,
    /// TCP: it connected while QUIC was still trying.
    QuicSlower,
    /// TCP: an earlier request's QUIC handshake is still under way.
    QuicPending,
    /// TCP: QUIC failed on this network not long ago.
    QuicBroken,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Policy => "the policy permits nothing else",
            Self::Hinted(hint) => return write!(f, "HTTP/3 connected first: {hint}"),
            Self::NoHint => "nothing says that the origin speaks HTTP/3",
            Self::NoQuic => "the client has no QUIC",
            Self::PlainText => "http URIs have no HTTP/3",
            Self::Proxy => "a proxy stands between, which QUIC does not pass",
            Self::QuicFailed => "QUIC failed",
            Self::QuicSlower => "TCP connected before QUIC did",
            Self::QuicPending => "QUIC is still trying to connect",
            Self::QuicBroken => "QUIC failed on this network not long ago",
        })
    }
}

/// How a response came about, in its extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chosen {
    /// What carried it.
    pub protocol: Protocol,
    /// The reason.
    pub why: Why,
    /// Connection attempts that were begun for the request, over all addresses and protocols; 0 if a
    /// connection stood.
    pub attempts: u32,
    /// Times that the request was sent; more than 1 only after answers that prove that it was not
    /// processed, or after 425.
    pub sent: u32,
    /// The connection had carried requests before.
    pub reused: bool,
    /// The request went out as early data (RFC 8470).
    pub early: bool,
}
