//! The tests of `swiftwater-qlog`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-qlog --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod arbitrary;
mod connections;
mod packets;
mod qvis;
mod sinks;
