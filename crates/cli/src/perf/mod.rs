//! `perf`: throughput, requests and handshakes per second, and what they cost.
//!
//! The protocol, ALPN `perf`, is the one that other QUIC implementations use for the same purpose:
//! on each bidirectional stream that the client opens it sends a number (8 bytes, big-endian), then
//! any number of bytes, then the end. The server reads all of it and answers with as many bytes as
//! the number says, and the end. What the bytes are means nothing. The server also answers HTTP of all
//! versions, for measurements with `--protocol`.

pub(crate) mod args;
pub mod client;
mod http;
pub mod loopback;
pub mod protocol;
pub mod report;
pub mod server;
mod target;
mod zeroes;

/// The protocol's name in ALPN.
pub const ALPN: &[u8] = b"perf";
