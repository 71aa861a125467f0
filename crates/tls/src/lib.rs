//! The crypto traits of `swiftwater-quic`, implemented twice: with rustls for real connections, and
//! with a null cipher for fast, bit-for-bit reproducible simulations.
//!
//! - [`ClientTls`] and [`ServerTls`] are the configurations of a program: trust, certificate, ALPN,
//!   key log, cipher suites. The server's certificate is verified unless the constructor with
//!   `dangerous` in its name is used.
//! - [`ClientAuthorities`]: whose certificates a server accepts of its clients.
//! - [`RustlsSession`] and [`RustlsPrimitives`] are the adapters below them (RFC 9001).
//! - [`DevCertificate`] generates self-signed certificates for development and tests.
//! - [`random_secret`] draws a key; [`EndpointSecrets`] has the keys of an endpoint's stateless reset and address validation
//!   tokens (RFC 9000, sections 8.1.3 and 10.3.2).
//! - [`Aes128Block`] is the cipher of QUIC-LB connection IDs; [`Aes128Counter`] that of packets which proxies forward.
//! - [`null`] has the simulator's replacement: packets and flights of real sizes, no protection.
//!
//! - [`SessionStore`] stores sessions that clients resume; [`Tickets`] configures the tickets that
//!   servers issue.
//!
//! No socket is opened and no packet is parsed here.

#![forbid(unsafe_code)]

mod block;
mod checks;
mod cipher_suite;
mod client;
mod client_authorities;
mod client_hello;
mod client_sessions;
mod config_error;
mod confirmed_session;
mod counter_mode;
mod derived_keys;
mod dev_cert;
mod endpoint_key;
mod error_text;
mod expand_label;
mod exporter;
mod handshake_output;
pub mod null;
mod rustls_keys;
mod rustls_session;
mod secret;
mod secret_tap;
mod server;
mod sessions;
mod skipped_tickets;
mod tickets;
mod trusted_leaf;
mod verifier;

pub use block::Aes128Block;
pub use cipher_suite::CipherSuite;
pub use client::ClientTls;
pub use client_authorities::ClientAuthorities;
pub use config_error::ConfigError;
pub use counter_mode::Aes128Counter;
pub use dev_cert::DevCertificate;
pub use endpoint_key::{EndpointSecrets, random_secret};
pub use error_text::{certificate_error_text, error_text};
pub use rustls;
pub use rustls_keys::RustlsPrimitives;
pub use rustls_pki_types as pki_types;
pub use rustls_session::RustlsSession;
pub use server::ServerTls;
pub use sessions::{MemorySessionStore, ServerId, SessionStore, StoredSession};
pub use tickets::Tickets;
