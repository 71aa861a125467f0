//! TECC (NSDI 2024): a tunnel that repairs losses near the client and reports to the server. Without I/O: what a
//! proxy and a client have to decide, for whatever carries the datagrams.
//!
//! - [`Repair`]: what the proxy has sent and may have to send again.
//! - [`TunnelReport`]: what the proxy tells the client about rate, queue and repairs; [`Reporter`]: when.
//! - [`REPORT_ROOM`], [`MAX_PAYLOAD_BESIDE_REPORT`]: how large payloads may be so that reports share packets with them.
//! - [`queue_limit`], [`MAX_QUEUE_DELAY`]: what may wait at the proxy, and for how long.
//! - [`is_numbered`], [`URGENCY_OF_REPAIRS`], [`URGENCY_OF_REPORTS`]: which payloads have numbers, and what goes ahead of them.
//! - [`Classifier`]: what became of the packets that the client misses.
//!
//! What the server does with it is in `swiftwater-policies` (`tecc`), the fields of HTTP and the contexts of RFC 9298
//! are in `swiftwater-tunnel`.

#![forbid(unsafe_code)]

mod classify;
mod numbering;
mod queue;
mod repair;
mod report;
mod reporter;
mod room;
mod urgency;

pub use classify::{Classifier, LossPlace, LostPackets};
pub use numbering::is_numbered;
pub use queue::{MAX_QUEUE_DELAY, queue_limit};
pub use repair::{Repair, RepairLimits, RepairStats};
pub use report::{MalformedReport, ReportFlags, TunnelReport};
pub use reporter::{Reporter, ReporterConfig, TunnelState};
pub use room::{MAX_PAYLOAD_BESIDE_REPORT, REPORT_ROOM};
pub use urgency::{URGENCY_OF_REPAIRS, URGENCY_OF_REPORTS};
