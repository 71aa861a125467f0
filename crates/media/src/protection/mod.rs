//! Loss protection schemes for frames: retransmission, erasure codes, re-injection.
//!
//! Each decides the amount of redundancy, or computes it. Sending, loss detection and retransmission
//! are implemented by the session ([`crate::session`]).

pub mod block_code;
pub mod hairpin;
mod scheme;
pub mod tambur;
pub mod webrtc;

pub use scheme::{ParseSchemeError, Protector, Scheme, SchemeTables, UnknownPolicy};
