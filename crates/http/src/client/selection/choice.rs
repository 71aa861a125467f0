//! What was chosen for a request and why, for the application.

use serde::Serialize;
use swiftwater_select::{Arm, Reason, Stats};

/// The arm of a request and the reason for it, in the extensions of its response if the client has a
/// [`Select`](super::Select).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ArmChoice {
    /// The arm that answered.
    pub arm: Arm,
    /// The arm that was decided on. Another one than `arm` if TCP answered instead of QUIC.
    pub decided: Arm,
    /// Why it was decided on. For an origin without connections, the arm that won the race:
    /// [`Reason::ConnectedFirst`].
    #[serde(flatten)]
    pub reason: Reason,
    /// The request was sent over two arms, and the first response was used.
    pub hedged: bool,
}

/// In the extensions of a request: the request may be sent twice although its method is neither GET nor HEAD.
/// Such requests take part in experiments and are hedged, if they have no content.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReplaySafe;

/// The state of a client's selection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SelectionSnapshot {
    /// Name of the strategy.
    pub strategy: String,
    /// The arms in their order.
    pub arms: Vec<Arm>,
    /// Counters since the client was built.
    pub stats: Stats,
    /// Requests sent over a second arm too, because QUIC did not answer in time.
    pub hedged: u64,
    /// Why the state file could not be used when the client was built; `None` if it could, or is new.
    pub state_problem: Option<String>,
    /// Networks that are remembered.
    pub networks: usize,
    /// Origins that are remembered, over all networks.
    pub origins: usize,
}
