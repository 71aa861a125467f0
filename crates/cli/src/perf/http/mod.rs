//! `perf` over HTTP: what the server answers, and the client's end of a connection of each version.
//!
//! The client takes the shortest way to each version, without the pool and the choices of
//! `swiftwater_http::client`: what is measured are the protocols.

pub(super) mod link;
pub(super) mod server;
mod service;
