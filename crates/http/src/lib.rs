//! HTTP over Swiftwater's transport, and HTTP/1.1 and HTTP/2 over TLS.
//!
//! - [`qpack`]: field compression (RFC 9204), sans-I/O.
//! - [`h3`]: the HTTP/3 engine (RFC 9114, 9218, 9220, 9297), sans-I/O, on a connection of
//!   `swiftwater-quic`.
//! - [`web`]: version-independent server parts: files, reverse proxy, logs, metrics, as tower
//!   services and layers.
//! - [`client`]: requests over the best available version, with a connection pool.
//! - [`tcp`]: HTTP/1.1 and HTTP/2 over TLS and TCP, through hyper; [`udp`]: HTTP/3 on real connections.

#![forbid(unsafe_code)]

pub mod client;
pub mod h3;
pub mod qpack;
pub mod tcp;
pub mod udp;
pub mod web;
