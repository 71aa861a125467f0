//! The tests of `swiftwater`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod facade;
mod outages;
mod path_planner;
mod tracing;
mod web;
