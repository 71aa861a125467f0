//! Congestion controllers and the samples they are fed.
//!
//! The transport owns everything that is *measurement*: bytes in flight, round-trip times,
//! delivery-rate samples, rounds, loss episodes, application-limited marks, ECN validation, the
//! pacer. A [`Controller`] owns only *policy*: it turns those samples into a window and, if it
//! has one, a pacing rate. It never sees a frame, a stream, a packet or another path, reads no clock,
//! and draws randomness only from the generator in [`Env`].
//!
//! Inside one ACK the transport calls, in this order and at most once each (`on_spurious` once per
//! refuted episode): `on_loss`, `on_ce`, `on_spurious`, `on_ack`; the pacer then re-reads
//! [`Controller::pacing`].
//!
//! Choose an algorithm with [`by_name`], or make a factory with parameters of your own, such as
//! [`CubicConfig`]. A [`ControllerCatalogue`] takes algorithms of yours in addition; [`tunable!`]
//! makes their parameters settable by name. Rules that hold for every algorithm (when a window may grow at all,
//! how far it may run ahead of its use) are in one place, see [`AckBatch::may_grow`].

#![forbid(unsafe_code)]

mod bbr;
mod catalogue;
mod clamp;
mod classic_hystart;
mod controller;
mod copa;
mod coupling;
mod cubic;
mod cubic_plus;
mod fixed;
mod follow_external;
mod growth;
mod hystart;
mod loss_based;
mod loss_based_config;
mod newreno;
mod pacing_gains;
mod prague;
mod prr;
mod sample;
mod slow_start;
mod windowed;

pub use bbr::{Bbr1, Bbr1Config, Bbr3, Bbr3Config, Bbr3Version, EcnConfig};
pub use catalogue::{ControllerCatalogue, ControllerEntry, by_name, names};
pub use classic_hystart::ClassicHyStartConfig;
pub use controller::{
    Controller, ControllerFactory, EctCodepoint, Env, ExternalRate, Pacing, Snapshot,
};
pub use copa::{Copa, CopaConfig};
pub use coupling::{CoupledAck, Coupling, CouplingRule};
pub use cubic::{Cubic, CubicConfig};
pub use cubic_plus::{CubicPlus, CubicPlusConfig, DrainRule, LossFilter, RttMode};
pub use fixed::FixedWindow;
pub use follow_external::{FollowExternal, FollowExternalConfig, RateLaw, RateLawConfig};
pub use growth::MAX_WINDOW;
pub use hystart::HyStartConfig;
pub use loss_based_config::LossBasedConfig;
pub use newreno::{NewReno, NewRenoConfig};
pub use pacing_gains::PacingGains;
pub use prague::{Prague, PragueConfig};
pub use sample::{
    AckBatch, EcnBatch, EcnCounts, EpisodeId, LossBatch, LossCause, LostPacket, RateSample, Round,
    RttView, SentInfo,
};
pub use slow_start::SlowStartExit;
pub use swiftwater_tunable::{
    Parameter, ParameterError, ParameterValue, Tunable, UnknownEntry, tunable,
};

/// Parts that controllers are composed of, for algorithms of your own.
pub mod blocks {
    pub use crate::bbr::{
        AckAggregation, FullPipe, Gain, MaxBandwidth, MinRtt, PacingRate, ProbeRtt, ProbeRttStep,
        Refresh, Rounds,
    };
    pub use crate::classic_hystart::ClassicHyStart;
    pub use crate::cubic::{CubicCurve, CubicFunction, RenoEstimate};
    pub use crate::growth::{ActiveClock, FlightPeak, SlowStartStep};
    pub use crate::hystart::HyStart;
    pub use crate::loss_based::{Checkpoint, Curve, LossBased};
    pub use crate::newreno::RenoCurve;
    pub use crate::prague::PragueCurve;
    pub use crate::prr::Prr;
    pub use crate::slow_start::SlowStart;
    pub use crate::windowed::Windowed;
}
