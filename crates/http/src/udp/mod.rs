//! HTTP/3 on connections of `swiftwater-net`: a server for tower services, a client, and for both HTTP datagrams
//! of extended CONNECT requests ([`connect`]) and WebTransport sessions ([`webtransport`]).
//!
//! The engine ([`h3`](crate::h3)) runs inside the worker of its QUIC connection; tasks of requests
//! call it directly, under the connection's lock. Content is read from and written to the transport
//! only on demand, so flow control acts from the peer to the service and back.

mod answer;
mod body;
mod client;
pub mod connect;
mod connection;
mod content;
mod datagram_buffer;
mod date;
mod exchange;
mod hosted;
mod idle;
mod request_tasks;
mod server;
pub mod webtransport;

pub use body::RecvBody;
pub use client::{ClientError, SendRequest};
pub use server::{H3Server, ServeError};

/// The name of HTTP/3 in ALPN (RFC 9114, section 3.1).
pub const ALPN_HTTP3: &[u8] = b"h3";
