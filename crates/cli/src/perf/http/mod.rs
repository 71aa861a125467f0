//! `perf` over HTTP: the server's service, and the client's end of a connection of each version.
//!
//! The client uses each version directly, without the pool and the protocol selection of
//! `swiftwater_http::client`, so that the protocols are measured.

pub(super) mod link;
pub(super) mod server;
mod service;
