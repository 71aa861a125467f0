//! Errors of requests: why there is no response, or no more of its content.

use std::io;
use std::net::SocketAddr;

use swiftwater_net::quic::{ConnectError, ConnectionError};
use thiserror::Error;

use super::protocol_choice::Why;
use super::race::AttemptTransport;
use super::timeouts::Phase;
use crate::h3::BodyError;
use crate::udp::ClientError;

/// Why a request failed, or the content of its response.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The request's URI names no origin (scheme, host, port) that the client can connect to.
    #[error("the URI can't be requested: {0}")]
    InvalidUri(&'static str),
    /// CONNECT requests are not sent by this client.
    #[error("CONNECT is not sent by this client")]
    Connect,
    /// The lookup of the host failed.
    #[error("looking up {host}: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The host has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// The policy requires HTTP/3, which is impossible here.
    #[error("HTTP/3 is impossible: {0}")]
    Http3Impossible(Why),
    /// The client was built without TLS over TCP, and the request needs it.
    #[error("the client has no TLS configuration for TCP")]
    NoTls,
    /// No connection attempt succeeded; at least one was made.
    #[error("no connection: {}", list(.0))]
    Unreachable(Vec<AttemptError>),
    /// A phase exceeded its time limit.
    #[error("timed out: {0}")]
    Timeout(Phase),
    /// A value to be sent can't be written as JSON.
    #[error("the value can't be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// HTTP/3 failed before the response's head.
    #[error(transparent)]
    Http3(#[from] ClientError),
    /// HTTP/3 failed within the response's content.
    #[error(transparent)]
    Content(#[from] BodyError),
    /// HTTP/1.1 or HTTP/2 failed.
    #[error("{}", with_sources(.0))]
    Tcp(#[from] hyper::Error),
}

/// One failed connection attempt.
#[derive(Debug, Error)]
#[error("{transport:?} to {address}: {cause}")]
pub struct AttemptError {
    /// Protocol of the attempt.
    pub transport: AttemptTransport,
    /// Address of the attempt; the proxy's if there is one.
    pub address: SocketAddr,
    /// Why it failed.
    pub cause: AttemptCause,
}

/// Why a connection attempt failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttemptCause {
    /// TCP or TLS failed; or the UDP port is unreachable, as reported by ICMP.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The QUIC connection could not be created.
    #[error(transparent)]
    QuicConnect(#[from] ConnectError),
    /// The QUIC connection failed.
    #[error(transparent)]
    Quic(#[from] ConnectionError),
    /// The server supports QUIC but did not choose the ALPN name `h3`.
    #[error("the server did not choose h3")]
    NotHttp3,
    /// The host is not a name that a certificate can hold.
    #[error("the host is not a valid server name")]
    ServerName,
    /// The proxy refused the tunnel, or the connection to it failed.
    #[error("the proxy answered {0}")]
    Proxy(http::StatusCode),
    /// HTTP could not start on the connection.
    #[error("{}", with_sources(.0))]
    Http(#[from] hyper::Error),
    /// The attempt exceeded its time limit.
    #[error("timed out: {0}")]
    Timeout(Phase),
    /// The attempt's task ended without a result.
    #[error("the attempt was cancelled")]
    GivenUp,
}

fn list(errors: &[AttemptError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

/// The messages of hyper's errors omit their causes, so the sources are appended.
fn with_sources(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
