//! Errors of tunnels at the client.

use std::io;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use swiftwater_http::h3::{BodyError, DatagramError, SendError};
use swiftwater_http::udp::ClientError;
use swiftwater_http::web::body::BoxError;
use thiserror::Error;

use crate::forwarding::{CidCapsuleError, NotOffered, ZeroLimit};
use crate::ip::{CapsuleError, IcmpError, MIN_IPV6_MTU, PacketError};
use crate::proxy_status::{PROXY_STATUS, ProxyError};
use crate::target::TemplateError;

/// The proxy can't be reached.
#[derive(Debug, Error)]
#[error("no connection to the proxy: {0}")]
pub struct ConnectError(pub BoxError);

/// UDP payload that every path for QUIC carries, bytes (RFC 9000, section 14).
pub(super) const MIN_QUIC_DATAGRAM: usize = 1200;

/// Why a tunnel was not opened, or is of no use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The proxy can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The template does not yield a URI for the target.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The target can't be in a request.
    #[error("the request can't be made: {0}")]
    Request(#[from] http::Error),
    /// The request failed.
    #[error("the proxy did not answer: {0}")]
    Client(#[from] ClientError),
    /// The request over HTTP/2 or HTTP/1.1 failed.
    #[error("the proxy did not answer: {0}")]
    Http(#[from] hyper::Error),
    /// The proxy does not accept the certificate of the client. Over HTTP/3 the connection attempt fails, with the reason.
    #[error("the proxy does not accept the certificate of this client: {0}")]
    CertificateRefused(&'static str),
    /// The proxy has no extended CONNECT over HTTP/2 (RFC 8441), which UDP needs.
    #[error("the proxy takes no requests for UDP over HTTP/2")]
    NoExtendedConnect,
    /// The proxy agreed to what was not offered.
    #[error(transparent)]
    NotOffered(#[from] NotOffered),
    /// The proxy refused.
    #[error("the proxy refused with {status}{}", reason(proxy_status.as_deref()))]
    Refused {
        /// The status of the response.
        status: StatusCode,
        /// Its Proxy-Status field (RFC 9209), if there is one.
        proxy_status: Option<String>,
    },
    /// The proxy opened the tunnel, and ended it before anything came from the target.
    #[error("the proxy ended the tunnel: nobody receives UDP at the target")]
    Unanswered,
    /// The tunnel is open, and the connection to the proxy can't carry datagrams of 1200 bytes, which QUIC needs: the path to
    /// the proxy, or the tunnel that it goes through, is for smaller packets.
    #[error(
        "datagrams of {max_payload} bytes at most pass in a tunnel of the proxy, and QUIC needs {MIN_QUIC_DATAGRAM}"
    )]
    SmallDatagrams {
        /// The largest UDP payload that fits, bytes.
        max_payload: usize,
    },
}

/// Why there is no QUIC connection through a proxy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndpointConnectError {
    /// The endpoint can't begin a connection.
    #[error(transparent)]
    Begin(#[from] swiftwater_net::quic::ConnectError),
    /// There is no tunnel.
    #[error(transparent)]
    Tunnel(Arc<OpenError>),
    /// The handshake failed.
    #[error(transparent)]
    Connection(#[from] swiftwater_net::quic::ConnectionError),
}

impl OpenError {
    /// True if the same request may succeed a little later: the connection to the proxy failed, or the proxy answered that it
    /// has too much to do or is not available (429, 5xx).
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Client(_) | Self::Http(_) => true,
            Self::Refused { status, .. } => {
                *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
            }
            _ => false,
        }
    }

    /// The type of error in the Proxy-Status field of a refusal, if it is a known one.
    pub fn proxy_error(&self) -> Option<ProxyError> {
        match self {
            Self::Refused { proxy_status, .. } => ProxyError::in_field(proxy_status.as_deref()?),
            _ => None,
        }
    }
}

/// The Proxy-Status field of an answer that agrees, or the refusal.
pub(super) fn check_answer(
    accepts: bool,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<String>, OpenError> {
    let proxy_status = proxy_status_of(headers);
    if accepts {
        return Ok(proxy_status);
    }
    Err(OpenError::Refused {
        status,
        proxy_status,
    })
}

/// The Proxy-Status field of an answer.
pub(super) fn proxy_status_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(PROXY_STATUS)?;
    Some(value.to_str().ok()?.to_owned())
}

fn reason(proxy_status: Option<&str>) -> String {
    proxy_status.map_or_else(String::new, |status| format!(" ({status})"))
}

/// Why a tunnel carries no more datagrams.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The proxy ended it: the target can't be reached, or nothing passed for too long.
    #[error("the proxy ended the tunnel")]
    Ended,
    /// The proxy reset it, or the connection to the proxy is gone.
    #[error("the tunnel broke: {0}")]
    Broken(#[from] BodyError),
    /// The datagram was not sent.
    #[error("the datagram was not sent: {0}")]
    Datagram(#[from] DatagramError),
    /// The capsule was not sent.
    #[error("the datagram was not sent: {0}")]
    Capsule(#[from] SendError),
    /// The stream over TCP broke.
    #[error("the tunnel broke: {0}")]
    Stream(Arc<io::Error>),
    /// The queue of datagrams over TCP is full, and the datagram was dropped.
    #[error("the datagram was not sent: the connection to the proxy is too slow")]
    Full,
    /// The proxy sent a capsule of addresses or routes that is malformed (RFC 9484, section 4.7).
    #[error("the proxy sent a malformed capsule: {0}")]
    MalformedIp(#[from] CapsuleError),
    /// The proxy assigned an address of IPv6, and the connection to it carries too small packets (RFC 9484,
    /// section 7.2).
    #[error(
        "the connection to the proxy carries packets of {mtu} bytes only, and IPv6 needs {MIN_IPV6_MTU}"
    )]
    SmallLink {
        /// The largest packet that it carries, bytes.
        mtu: usize,
    },
    /// The proxy sent a connection ID capsule that is malformed.
    #[error("the proxy sent a malformed capsule: {0}")]
    MalformedCid(#[from] CidCapsuleError),
    /// The proxy permits too few connection IDs.
    #[error(transparent)]
    ZeroLimit(#[from] ZeroLimit),
    /// The proxy sent content that ends within a capsule.
    #[error("the proxy sent an incomplete capsule")]
    Malformed,
}

/// Why an IP packet was not sent.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SendPacketError {
    /// It is no IP packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The proxy has not assigned its source address.
    #[error("the proxy has not assigned the source address of the packet")]
    Source,
    /// There is no route to its destination, for its protocol.
    #[error("the proxy has no route for the packet")]
    NoRoute,
    /// It can't be forwarded: its hop limit is used up, or it is too large.
    #[error("the packet can't be forwarded: {error:?}")]
    Forwarding {
        /// Why.
        error: IcmpError,
        /// The ICMP error for its sender, a packet from the packet's destination; `None` if there must be none.
        reply: Option<Vec<u8>>,
    },
    /// The tunnel did not take it.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
}
