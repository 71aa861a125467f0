//! TECC, tunnels that repair losses near the client and report on their rate and queue (NSDI 2024).
//!
//! A tunnel whose ends have agreed ([`Agreement`]) numbers the payloads to the client ([`data`]); the proxy keeps
//! each until QUIC says what became of its datagram, and sends lost ones again ([`Repair`]). The client passes
//! payloads on as they come: QUIC within the tunnel takes reordered packets, and each only once. If the client asked
//! for them, the proxy also sends reports ([`TunnelReport`]), which the client hands to the QUIC connection in the
//! tunnel. Without an agreement the tunnel is plain RFC 9298.
//!
//! Here is what HTTP and RFC 9298 need; the rest is in [`swiftwater_tecc`].

mod agreement;
pub mod data;

pub use agreement::{Agreement, TECC};
pub use swiftwater_tecc::{
    Classifier, LossPlace, LostPackets, MAX_QUEUE_DELAY, MalformedReport, Repair, RepairLimits,
    RepairStats, ReportFlags, Reporter, ReporterConfig, TunnelReport, TunnelState,
    URGENCY_OF_REPAIRS, URGENCY_OF_REPORTS, queue_limit,
};
