//! TECC, tunnels that repair losses near the client (NSDI 2024): datagram mode with retransmission.
//!
//! A tunnel whose ends have agreed ([`Agreement`]) numbers the payloads to the client ([`data`]); the proxy keeps
//! each until QUIC says what became of its datagram, and sends lost ones again ([`Repair`]). The client passes
//! payloads on as they come: QUIC within the tunnel takes reordered packets, and each only once. Without an
//! agreement the tunnel is plain RFC 9298.
//!
//! Not here yet: reports of the proxy about its rate and queue, and what the server does with them (suppression of
//! its own loss recovery, pacing).

mod agreement;
pub mod data;
mod repair;

pub use agreement::{Agreement, TECC};
pub use repair::{Repair, RepairLimits, RepairStats};
