//! Where the logic of BBRv2 and BBRv3 differs, not only their constants.

use std::time::Duration;

use crate::bbr::min_rtt::Refresh;

/// Which machine a [`Bbr3Config`](super::Bbr3Config) describes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bbr3Version {
    /// BBRv3 as in draft-ietf-ccwg-bbr-06.
    Draft,
    /// BBRv2 as in the `v2alpha` branch of Google's Linux.
    V2Alpha,
}

/// What counts as one of the losses that end Startup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StartupLossUnit {
    /// A run of lost packets.
    Range,
    /// A detection of losses, however many packets.
    Detection,
}

/// What the long-term bound is when losses end Startup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StartupBound {
    /// The estimated bandwidth-delay product, or what was delivered in a round if that is more.
    ModelOrDelivered,
    /// Target of the model for bytes in flight.
    Model,
}

/// What ends a probe for bandwidth that meets no losses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProbeUpExit {
    /// The delivery rate no longer grows.
    Plateau,
    /// A round-trip time has passed and a queue has built up.
    Queue,
}

/// What end systems hold of the data in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum QuantumBudget {
    /// At least one burst is in flight.
    AtLeastOne,
    /// So many bursts are in flight besides the path's own data.
    Besides(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Policy {
    pub(super) startup_loss_unit: StartupLossUnit,
    pub(super) startup_bound: StartupBound,
    /// Rounds after which Drain ends even if the queue remains.
    pub(super) drain_rounds: Option<u64>,
    pub(super) probe_up_exit: ProbeUpExit,
    pub(super) quantum_budget: QuantumBudget,
    /// Rounds for which an excess of acknowledged data counts: in Startup and later.
    pub(super) extra_acked_rounds: (u64, u64),
    /// Time that bounds the excess, at the estimated bandwidth.
    pub(super) extra_acked_time: Option<Duration>,
    pub(super) min_rtt_refresh: Refresh,
    /// A state that was left because of losses is entered again when they turn out to be spurious.
    pub(super) undo_returns: bool,
}

impl Bbr3Version {
    pub(super) fn policy(self) -> Policy {
        match self {
            Self::Draft => Policy {
                startup_loss_unit: StartupLossUnit::Range,
                startup_bound: StartupBound::ModelOrDelivered,
                drain_rounds: Some(3),
                probe_up_exit: ProbeUpExit::Plateau,
                quantum_budget: QuantumBudget::AtLeastOne,
                extra_acked_rounds: (1, 10),
                extra_acked_time: None,
                min_rtt_refresh: Refresh::Lower,
                undo_returns: true,
            },
            Self::V2Alpha => Policy {
                startup_loss_unit: StartupLossUnit::Detection,
                startup_bound: StartupBound::Model,
                drain_rounds: None,
                probe_up_exit: ProbeUpExit::Queue,
                quantum_budget: QuantumBudget::Besides(3),
                extra_acked_rounds: (10, 10),
                extra_acked_time: Some(Duration::from_millis(100)),
                min_rtt_refresh: Refresh::EqualOrLower,
                undo_returns: false,
            },
        }
    }
}
