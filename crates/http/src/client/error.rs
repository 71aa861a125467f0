//! Why there is no response, or no more of it.

use std::io;
use std::net::SocketAddr;

use swiftwater_net::quic::{ConnectError, ConnectionError};
use thiserror::Error;

use super::race::Transport;
use super::timeouts::Phase;
use super::why::Why;
use crate::h3::BodyError;
use crate::udp::ClientError;

/// A request failed, or the content of its response.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The URI of the request names no origin that can be asked.
    #[error("the URI can't be asked for: {0}")]
    InvalidUri(&'static str),
    /// CONNECT makes tunnels, not requests.
    #[error("CONNECT is not sent by this client")]
    Connect,
    /// The host could not be looked up.
    #[error("looking up {host}: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The host has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// The policy asks for HTTP/3, which is impossible here.
    #[error("HTTP/3 is impossible: {0}")]
    Http3Impossible(Why),
    /// The client was built without TLS over TCP, and the request needs it.
    #[error("the client has no TLS configuration for TCP")]
    NoTls,
    /// No attempt to connect succeeded; at least one was made.
    #[error("no connection: {}", list(.0))]
    Unreachable(Vec<AttemptError>),
    /// A phase took too long.
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

/// One attempt to connect failed.
#[derive(Debug, Error)]
#[error("{transport:?} to {address}: {cause}")]
pub struct AttemptError {
    /// What it connected with.
    pub transport: Transport,
    /// Where to; the proxy's address if there is one.
    pub address: SocketAddr,
    /// Why it failed.
    pub cause: AttemptCause,
}

/// Why an attempt to connect failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttemptCause {
    /// TCP or TLS failed; or nobody listens at the UDP port, as the host or a firewall says by ICMP.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// QUIC could not begin.
    #[error(transparent)]
    QuicConnect(#[from] ConnectError),
    /// QUIC failed.
    #[error(transparent)]
    Quic(#[from] ConnectionError),
    /// The server speaks QUIC, but not HTTP/3.
    #[error("the server did not choose h3")]
    NotHttp3,
    /// The host is no name that certificates have.
    #[error("the host is not a valid server name")]
    ServerName,
    /// The proxy refused the tunnel, or failed.
    #[error("the proxy answered {0}")]
    Proxy(http::StatusCode),
    /// HTTP could not begin on the connection.
    #[error("{}", with_sources(.0))]
    Http(#[from] hyper::Error),
    /// A phase took too long.
    #[error("timed out: {0}")]
    Timeout(Phase),
    /// The attempt's task ended without a result.
    #[error("the attempt was given up")]
    GivenUp,
}

fn list(errors: &[AttemptError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

/// hyper's errors say little without their sources.
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
