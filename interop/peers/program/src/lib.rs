//! What the foreign peers in Rust have in common: the command line, `hq-interop`, the report that a
//! client prints, and TLS settings for stacks on rustls. Nothing here knows a QUIC library.

pub mod arguments;
pub mod hq;
pub mod http;
pub mod report;
#[cfg(feature = "rustls")]
pub mod tls;
