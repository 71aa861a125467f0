//! Schemes that protect frames against loss: retransmission, erasure codes, re-injection.
//!
//! Each decides how much redundancy goes with which packets, or computes it. Sending, loss detection
//! and retransmission are the session's ([`crate::session`]).

pub mod block_code;
pub mod hairpin;
mod scheme;
pub mod tambur;
pub mod webrtc;

pub use scheme::{ParseSchemeError, Protector, Scheme, SchemeTables, UnknownPolicy};
