//! QPACK through its public interface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "qpack/encoder.rs"]
mod encoder;
#[path = "qpack/examples.rs"]
mod examples;
#[path = "qpack/limits.rs"]
mod limits;
#[path = "qpack/malformed.rs"]
mod malformed;
#[path = "qpack/network.rs"]
mod network;
#[path = "qpack/support.rs"]
mod support;
