//! `perf`: throughput, requests and handshakes per second, and their CPU cost.
//!
//! The protocol, ALPN `perf`, is the one that other QUIC implementations use for the same purpose: on
//! each bidirectional stream that the client opens it sends a number (8 bytes, big-endian), then any
//! number of bytes, then the end. The server reads all of it and answers with as many bytes as the
//! number states, and the end. The values of the bytes have no meaning. The server also answers HTTP
//! of all versions, for measurements with `--protocol`.

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
