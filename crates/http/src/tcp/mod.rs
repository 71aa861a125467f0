//! HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) over TLS and TCP: hyper with limits, certificates that
//! can be replaced, and an orderly end.
//!
//! - [`TcpServer`], [`RunningServer`]: a socket and a tower service; draining.
//! - [`Limits`]: the cap of everything that clients can make grow, and of every wait.
//! - [`Certificates`], [`server_config`]: TLS.
//! - [`ConnectionEnd`]: what is known of a connection that is over.
//!
//! What services do lives in [`crate::web`]; HTTP/3 in [`crate::h3`].

mod activity;
mod adapter;
mod certificates;
mod connection;
mod exchange;
mod limits;
mod metered;
mod observer;
mod plain_http;
mod server;
mod streams;
mod tls;
mod unread;

pub use certificates::{CertificateError, Certificates};
pub use limits::Limits;
pub use observer::{ConnectionEnd, Outcome};
pub use server::{ConnectionCount, Drained, RunningServer, TcpServer};
pub use tls::{ALPN_HTTP2, ALPN_HTTP11, MinTls, server_config, server_config_from};
