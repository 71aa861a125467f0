//! The tests of `swiftwater-wire`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-wire --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acks;
mod frames;
mod headers;
mod multipath_versions;
mod packet_numbers;
mod transport_parameters;
mod varint;
