//! QPACK through its public interface.

mod encoder;
mod examples;
mod limits;
mod malformed;
mod network;
mod support;
