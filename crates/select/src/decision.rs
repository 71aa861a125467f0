//! Decisions, and the reasons for them.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::arm::{Arm, Transport};
use crate::request::RequestId;

/// What started an experiment.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// A new connection, or a network or origin not seen before.
    NewConnection,
    /// The host is on another network.
    NetworkChange,
    /// The network score moved.
    ScoreMoved,
    /// QUIC may be used again after it was blocked.
    BlockExpired,
    /// Another arm was quicker with a request, although the selected one's connection is alive.
    Overtaken,
    /// The last comparison is long ago.
    Recheck,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NewConnection => "a new connection",
            Self::NetworkChange => "another network",
            Self::ScoreMoved => "the network score moved",
            Self::BlockExpired => "QUIC may be tried again",
            Self::Overtaken => "another arm was quicker with a request",
            Self::Recheck => "the last comparison is long ago",
        })
    }
}

/// Why a request goes over its arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The strategy names the arm.
    Fixed,
    /// No other arm can be used for the origin.
    OnlyArm,
    /// The arm whose connection was established first.
    ConnectedFirst,
    /// Which arm connects first is not known yet: the caller lets them race.
    Race,
    /// The other arms need a transport that is blocked.
    Blocked {
        /// The transport.
        transport: Transport,
    },
    /// The arm that was selected last is kept.
    Kept,
    /// One of the requests of an experiment.
    Experiment {
        /// What started it.
        trigger: Trigger,
        /// Its position in the experiment, from 0.
        position: u32,
    },
    /// An experiment waits for responses: the arm that was selected last.
    ExperimentWaits,
    /// An experiment waits for responses: another arm than the one selected last, so that all carry as many requests
    /// while they are compared.
    Balanced,
    /// An experiment is due or waits, but the request must not be sent twice.
    NotReplaySafe,
    /// The last request on the selected arm failed, and this one must not be sent twice.
    Suspect,
    /// The last experiment was won by this arm.
    WonExperiment,
    /// The model prefers this arm's transport.
    Model {
        /// Probability that QUIC is quicker.
        score: f32,
    },
    /// A linear boundary over round-trip time, bandwidth and loss.
    Boundary {
        /// Value of the linear function; QUIC if it is positive.
        value: f32,
    },
    /// The last switch was undone.
    RolledBack,
    /// Requests on the arm before failed in a row.
    FailedOver,
    /// `select+`: the arm that is believed to be the quickest.
    Belief {
        /// Probability that it is quicker than the next best.
        probability: f32,
    },
    /// `select+`: fewer requests wait on this arm than on the one believed to be the quickest.
    LessLoaded {
        /// Probability that it is quicker than that one with as many.
        probability: f32,
    },
    /// `select+`: a request used to learn about an arm.
    Probe {
        /// Probability that it is quicker than the arm believed to be the best.
        probability: f32,
    },
}

impl Reason {
    /// A short constant name, for counters and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::OnlyArm => "only_arm",
            Self::ConnectedFirst => "connected_first",
            Self::Race => "race",
            Self::Blocked { .. } => "blocked",
            Self::Kept => "kept",
            Self::Experiment { .. } => "experiment",
            Self::ExperimentWaits => "experiment_waits",
            Self::Balanced => "balanced",
            Self::NotReplaySafe => "not_replay_safe",
            Self::Suspect => "suspect",
            Self::WonExperiment => "won_experiment",
            Self::Model { .. } => "model",
            Self::Boundary { .. } => "boundary",
            Self::RolledBack => "rolled_back",
            Self::FailedOver => "failed_over",
            Self::Belief { .. } => "belief",
            Self::LessLoaded { .. } => "less_loaded",
            Self::Probe { .. } => "probe",
        }
    }

    /// Names of all reasons, in the order of [`crate::Stats::reasons`].
    pub const NAMES: [&'static str; 19] = [
        "fixed",
        "only_arm",
        "connected_first",
        "race",
        "blocked",
        "kept",
        "experiment",
        "experiment_waits",
        "balanced",
        "not_replay_safe",
        "suspect",
        "won_experiment",
        "model",
        "boundary",
        "rolled_back",
        "failed_over",
        "belief",
        "less_loaded",
        "probe",
    ];

    /// True if the request is sent in order to learn.
    pub fn is_probe(&self) -> bool {
        matches!(
            self,
            Self::Experiment { .. } | Self::Balanced | Self::Probe { .. }
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => f.write_str("the strategy names it"),
            Self::OnlyArm => f.write_str("nothing else can be used"),
            Self::ConnectedFirst => f.write_str("it connected first"),
            Self::Race => f.write_str("the first to connect is used"),
            Self::Blocked { transport } => write!(f, "{transport} is blocked"),
            Self::Kept => f.write_str("it was selected last"),
            Self::Experiment { trigger, position } => {
                write!(f, "request {} of an experiment: {trigger}", position + 1)
            }
            Self::ExperimentWaits => f.write_str("selected last; an experiment waits"),
            Self::Balanced => {
                f.write_str("as many requests as over the selected one, while an experiment waits")
            }
            Self::NotReplaySafe => f.write_str("selected last; no experiment without replay"),
            Self::Suspect => f.write_str("the last request on the selected arm failed"),
            Self::WonExperiment => f.write_str("it won the last experiment"),
            Self::Model { score } => write!(f, "the model gives QUIC {score:.2}"),
            Self::Boundary { value } => write!(f, "the boundary gives {value:.2}"),
            Self::RolledBack => f.write_str("the last switch was undone"),
            Self::FailedOver => f.write_str("requests on the arm before failed in a row"),
            Self::Belief { probability } => write!(f, "quickest with probability {probability:.2}"),
            Self::LessLoaded { probability } => {
                write!(
                    f,
                    "fewer requests wait on it; quicker with as many with probability {probability:.2}"
                )
            }
            Self::Probe { probability } => {
                write!(f, "a probe: quicker with probability {probability:.2}")
            }
        }
    }
}

/// When the request is also sent over a second arm. The first response is used, the other request is
/// cancelled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hedge {
    /// The second arm.
    pub arm: Arm,
    /// Time since the start without any byte from the server while no connection is established.
    pub without_handshake: Duration,
    /// Time since the sending without any packet on the connection: nothing arrives from the server any more. It is
    /// judged once, at the end of that time, since a server that has acknowledged the request may think.
    pub without_packet: Duration,
    /// Time since the sending without any byte of the response.
    pub without_response: Duration,
}

/// How a request is to be sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Names the request in [`crate::Selector::on_outcome`].
    #[serde(skip)]
    pub id: RequestId,
    /// The arm. With [`Reason::Race`] the caller may use any available arm that connects first.
    pub arm: Arm,
    /// The reason.
    #[serde(flatten)]
    pub reason: Reason,
    /// When to send it over another arm, too; only for requests that may be replayed.
    pub hedge: Option<Hedge>,
    /// After so long without a complete response the request counts as failed for the selection. The
    /// caller need not end it.
    pub limit: Option<Duration>,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.arm, self.reason)
    }
}
