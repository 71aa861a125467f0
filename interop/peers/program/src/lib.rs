//! Common parts of the foreign peers in Rust: the command line, `hq-interop`, the report that a
//! client prints, and TLS settings for stacks on rustls. Independent of QUIC libraries.

pub mod arguments;
pub mod hq;
pub mod http;
pub mod paths;
pub mod report;
#[cfg(feature = "rustls")]
pub mod tls;
