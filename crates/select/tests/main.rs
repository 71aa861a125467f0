//! The tests of `swiftwater-select`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-select --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

mod choice;
mod hedging;
mod invariants;
mod models;
mod parts;
mod shipped;
