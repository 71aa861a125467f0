//! The crypto traits of `swiftwater-quic`, implemented twice: with rustls for the real thing, and
//! with a null cipher for simulations that want speed and bit-for-bit repetition.
//!
//! - [`ClientTls`] and [`ServerTls`] are what a program configures: trust, certificate, ALPN, key
//!   log, cipher suites. Verification of the server's certificate is on unless it is switched off
//!   by a constructor whose name says so.
//! - [`RustlsSession`] and [`RustlsPrimitives`] are the adapters below them (RFC 9001).
//! - [`DevCertificate`] makes self-signed certificates for development and tests.
//! - [`EndpointSecrets`] keys an endpoint's reset and address tokens (RFC 9000, sections 8.1.3 and
//!   10.3.2).
//! - [`Aes128Block`] is the cipher of QUIC-LB connection IDs.
//! - [`null`] has the simulator's stand-in: packets and flights of real sizes, no protection.
//!
//! - [`SessionStore`] keeps what clients resume; [`Tickets`] says what servers give out for it.
//!
//! No socket is opened and no packet is parsed here.

#![forbid(unsafe_code)]

mod block;
mod checks;
mod cipher_suite;
mod client;
mod client_hello;
mod client_sessions;
mod config_error;
mod derived_keys;
mod dev_cert;
mod endpoint_key;
mod error_text;
mod expand_label;
mod exporter;
pub mod null;
mod outbox;
mod rustls_keys;
mod rustls_session;
mod secret;
mod secret_tap;
mod server;
mod sessions;
mod settled;
mod tickets;
mod trusted_leaf;
mod verifier;

pub use block::Aes128Block;
pub use cipher_suite::CipherSuite;
pub use client::ClientTls;
pub use config_error::ConfigError;
pub use dev_cert::DevCertificate;
pub use endpoint_key::EndpointSecrets;
pub use error_text::{certificate_error_text, error_text};
pub use rustls;
pub use rustls_keys::RustlsPrimitives;
pub use rustls_pki_types as pki_types;
pub use rustls_session::RustlsSession;
pub use server::ServerTls;
pub use sessions::{MemorySessionStore, ServerId, SessionStore, StoredSession};
pub use tickets::Tickets;
