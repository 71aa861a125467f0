//! TECC (NSDI 2024): a tunnel that repairs losses near the client and reports to the server. Without I/O: what a
//! proxy and a client have to decide, for whatever carries the datagrams.
//!
//! - [`Repair`]: what the proxy has sent and may have to send again.
//! - [`TunnelReport`]: what the proxy tells the client about rate, queue and repairs; [`Reporter`]: when.
//! - [`queue_limit`]: what may wait at the proxy.
//! - [`Classifier`]: what became of the packets that the client misses.
//!
//! What the server does with it is in `swiftwater-policies` (`tecc`), the fields of HTTP and the contexts of RFC 9298
//! are in `swiftwater-tunnel`.

#![forbid(unsafe_code)]

mod classify;
mod queue;
mod repair;
mod report;
mod reporter;

pub use classify::{Classifier, LossPlace, LostPackets};
pub use queue::queue_limit;
pub use repair::{Repair, RepairLimits, RepairStats};
pub use report::{MalformedReport, ReportFlags, TunnelReport};
pub use reporter::{Reporter, ReporterConfig, TunnelState};
