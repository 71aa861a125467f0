//! The tests of `swiftwater-tls`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-tls --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sessions;

mod client_certificates;
mod early_data;
mod endpoint_secrets;
mod handshake;
mod null;
mod over_tcp;
mod quic_lb;
mod resumption;
mod rfc9001;
mod rfc9369;
mod trust;
mod versions;
