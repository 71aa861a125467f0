//! The tests of `swiftwater-tunnel`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-tunnel --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod packets;
mod stage;

mod address_ranges;
mod client_versions;
mod contexts;
mod endpoint;
mod fairness;
mod forwarding;
mod forwarding_codecs;
