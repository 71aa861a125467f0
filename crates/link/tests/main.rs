//! The tests of `swiftwater-link`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-link --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod aqm_codel;
mod aqm_conservation;
mod aqm_dual_pi2;
mod aqm_fq_codel;
mod aqm_red;
mod aqm_text;
mod condition;
mod conservation;
mod loss;
mod order;
mod parse;
mod queue;
mod timing;
mod trace;
