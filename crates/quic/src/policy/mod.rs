//! The policy seams: traits that decide, and the read-only views they decide on.
//!
//! A policy sees plain values, returns a decision, and never touches the machine; the connection
//! validates every decision. Implementations other than the defaults live in
//! `swiftwater-policies`, one file per system.

mod ack;
mod hints;
mod reinject;
mod schedule;

pub use ack::{AckDecision, AckPolicy, AckView, EveryOther, RequestedFrequency};
pub use hints::Hints;
pub use reinject::{
    ConfigureError, Copied, Datum, NoReinjection, Occasion, OutstandingRange, PacketFate,
    PacketOutcome, Reinjection, Reinjector, ReinjectorReport, Repair, RepairCause,
};
pub use schedule::{Decision, Demand, PathView, Scheduler, SinglePath};

use std::fmt;

/// Makes the policies of a new connection.
pub trait PolicyFactory: Send + Sync + fmt::Debug {
    /// Chooses the path of each packet.
    fn scheduler(&self) -> Box<dyn Scheduler>;
    /// Chooses what to send a second time.
    fn reinjector(&self) -> Box<dyn Reinjector>;
    /// Chooses when to acknowledge. `threshold` is the configured number of ack-eliciting packets.
    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy>;
}

/// The RFC's behaviour: one path, no re-injection, acknowledgement per RFC 9000, section 13.2.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultPolicies;

impl PolicyFactory for DefaultPolicies {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(NoReinjection)
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        Box::new(EveryOther { threshold })
    }
}
