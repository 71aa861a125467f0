//! The policy seams: traits that decide, and the read-only views they decide on.
//!
//! | seam | decides |
//! |---|---|
//! | [`Scheduler`] | which path carries the next datagram |
//! | [`Reinjector`] | what is sent a second time before it is known to be lost |
//! | [`AckPolicy`] | when a packet is acknowledged |
//! | [`LossJudge`] | when a packet counts as lost, and how long a probe timeout is |
//! | [`FeedbackPolicy`] | what the policies of the peer are sent |
//!
//! A policy sees plain values, returns a decision, and never touches the connection, which validates
//! every decision. Implementations other than the defaults live in `swiftwater-policies`, one file
//! per system; congestion controllers in `swiftwater-congestion`.

mod ack;
mod feedback;
mod hints;
mod loss_judge;
mod next_data;
mod path_view;
mod priority;
mod qoe_signals;
mod reinjection;
mod scheduler;

pub use ack::{AckDecision, AckPolicy, AckView, EveryOther, RequestedFrequency};
pub use feedback::{
    FeedbackPayload, FeedbackPolicy, FeedbackTooLong, NoFeedback, OutgoingFeedback,
    ReceivedFeedback,
};
pub use hints::{Hints, ResponseStart};
pub use loss_judge::{
    FixedThresholds, LossCandidate, LossJudge, LossVerdict, ReorderingThresholds, RttSample,
    SpuriousLoss,
};
pub use next_data::NextData;
pub use path_view::{PathPhase, PathPreference, PathStatus, PathView, PathViewBuilder, RateView};
pub use priority::Priority;
pub use qoe_signals::{
    ChunkExpectation, PathShare, PathShares, PlayerSignal, QoeSignal, RangeDeadline,
};
pub use reinjection::{
    ConfigureError, Copied, DataRange, NoReinjection, Occasion, OutstandingRange, PacketFate,
    PacketOutcome, PathChoice, Rank, Reinjection, Reinjector, ReinjectorReport, Rejection,
    RejectionReason, Repair, RepairCause,
};
pub use scheduler::{CopyDemand, Demand, PathDecision, Scheduler, SinglePath};
pub use swiftwater_wire::frame::FeedbackKind;

use std::fmt;

use swiftwater_units::PathId;

/// Makes the policies of a new connection.
pub trait PolicyFactory: Send + Sync + fmt::Debug {
    /// Chooses the path of each datagram.
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }

    /// Chooses what to send a second time.
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(NoReinjection)
    }

    /// Chooses when to acknowledge. `threshold` is the configured number of ack-eliciting packets,
    /// at least 1.
    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        Box::new(EveryOther {
            threshold: threshold.max(1),
        })
    }

    /// Judges losses on `path`; `configured` are the thresholds of the configuration. Made anew when
    /// the path moves to another address, as its congestion controller is.
    fn loss_judge(&self, _path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        Box::new(FixedThresholds(configured))
    }

    /// Exchanges feedback with the peer.
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(NoFeedback)
    }
}

/// The RFC's behaviour: one path, no re-injection, acknowledgement per RFC 9000, section 13.2, loss
/// detection per RFC 9002, section 6, no feedback.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultPolicies;

impl PolicyFactory for DefaultPolicies {}
