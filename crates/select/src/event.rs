//! What a selector did beside deciding: for logs, tables and qlog.

use std::fmt;

use serde::Serialize;

use crate::arm::Arm;
use crate::decision::Trigger;
use crate::key::{NetworkId, OriginHash};

/// Why the selected arm changed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SwitchCause {
    /// It won an experiment.
    Experiment,
    /// The model prefers it.
    Model,
    /// The linear boundary prefers it.
    Boundary,
    /// It is believed to be quicker (`select+`).
    Belief,
    /// Requests became slower after the last switch.
    Rollback,
    /// Requests on the arm before failed in a row.
    Failures,
    /// The arm before needs QUIC, which is blocked.
    Blocked,
    /// It connected first.
    ConnectedFirst,
}

impl SwitchCause {
    /// A short constant name, for counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Experiment => "experiment",
            Self::Model => "model",
            Self::Boundary => "boundary",
            Self::Belief => "belief",
            Self::Rollback => "rollback",
            Self::Failures => "failures",
            Self::Blocked => "blocked",
            Self::ConnectedFirst => "connected_first",
        }
    }
}

impl fmt::Display for SwitchCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Experiment => "it won an experiment",
            Self::Model => "the model prefers it",
            Self::Boundary => "the boundary prefers it",
            Self::Belief => "it is believed to be quicker",
            Self::Rollback => "requests became slower after the last switch",
            Self::Failures => "requests failed in a row",
            Self::Blocked => "QUIC is blocked",
            Self::ConnectedFirst => "it connected first",
        })
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// An experiment began.
    ExperimentStarted {
        /// What started it.
        trigger: Trigger,
    },
    /// An experiment ended.
    ExperimentEnded {
        /// The arm that is used now; `None` if there were too few values.
        winner: Option<Arm>,
        /// The arms and their values, ms; `None` for failures and missing values.
        values: Vec<(Arm, Option<f64>)>,
    },
    /// Another arm is used.
    Switched {
        /// The arm before.
        from: Arm,
        /// The arm now.
        to: Arm,
        /// Why.
        cause: SwitchCause,
    },
    /// QUIC is not used for a while.
    Blocked {
        /// On the whole network, not only for the origin.
        on_network: bool,
        /// For so long, seconds.
        seconds: f64,
    },
    /// `select+` noticed that the network changed.
    ChangeDetected,
}

/// Something that happened for an origin on a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// The network.
    pub network: NetworkId,
    /// The origin.
    pub origin: OriginHash,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            EventKind::ExperimentStarted { trigger } => write!(f, "experiment: {trigger}"),
            EventKind::ExperimentEnded { winner, values } => {
                f.write_str("experiment ended:")?;
                for (arm, value) in values {
                    match value {
                        Some(value) => write!(f, " {arm} {value:.1} ms,")?,
                        None => write!(f, " {arm} no value,")?,
                    }
                }
                match winner {
                    Some(arm) => write!(f, " {arm} is used"),
                    None => f.write_str(" too few values"),
                }
            }
            EventKind::Switched { from, to, cause } => write!(f, "from {from} to {to}: {cause}"),
            EventKind::Blocked {
                on_network,
                seconds,
            } => {
                let place = if *on_network {
                    "on this network"
                } else {
                    "for this origin"
                };
                write!(f, "QUIC is not used {place} for {seconds:.0} s")
            }
            EventKind::ChangeDetected => f.write_str("the network changed"),
        }
    }
}

impl EventKind {
    /// A short constant name, for counters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ExperimentStarted { .. } => "experiment_started",
            Self::ExperimentEnded { .. } => "experiment_ended",
            Self::Switched { .. } => "switched",
            Self::Blocked { .. } => "blocked",
            Self::ChangeDetected => "change_detected",
        }
    }
}
