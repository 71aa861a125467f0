//! HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) over TLS and TCP: hyper with limits, certificates that
//! can be replaced, and graceful shutdown.
//!
//! - [`TcpServer`], [`RunningServer`]: a socket and a tower service; draining.
//! - [`TcpLimits`]: bounds on all state that clients can cause, and on every wait.
//! - [`Certificates`], [`server_config`]: TLS; [`server_config_with_clients`]: with certificates of clients; [`TlsAlpnChallenges`]: validation of names by a certificate authority.
//! - [`ConnectionEnd`]: facts about a closed connection.
//!
//! Services are in [`crate::web`]; HTTP/3 is in [`crate::h3`].

mod activity;
mod adapter;
mod after_others;
mod certificates;
mod connection;
mod exchange;
mod limits;
mod lingering_close;
mod metered;
mod observer;
mod plain_http;
mod server;
mod streams;
mod tls;
mod tls_alpn_challenge;
mod tunnel;
mod unread;

pub use certificates::{CertificateError, Certificates};
pub use limits::TcpLimits;
pub use observer::{ConnectionEnd, Outcome};
pub use server::{ConnectionCount, Drained, RunningServer, TcpServer};
pub use tls::{
    ALPN_HTTP2, ALPN_HTTP11, MinTls, server_config, server_config_from, server_config_with_clients,
};
pub use tls_alpn_challenge::{ALPN_ACME_TLS, TlsAlpnChallenges};
