//! Slow start: how fast the window grows below the slow-start threshold, and what ends the first one of
//! a path.
//!
//! Holds only how fast to grow and when to stop; the window itself belongs to the controller, and
//! rounds and round-trip times are measured by the transport.

use swiftwater_tunable::parameters::ParameterValue;
use swiftwater_units::ByteCount;

use crate::classic_hystart::{ClassicHyStart, ClassicHyStartConfig};
use crate::controller::Env;
use crate::growth::SlowStartStep;
use crate::hystart::{HyStart, HyStartConfig};
use crate::sample::AckBatch;

/// What ends the first slow start of a path, other than a congestion event. For parameters by name:
/// `on` (HyStart++ as by default), `rfc9406` (as in the RFC), `step-back` (the RFC's, and
/// [`HyStartConfig::step_back`]), `classic` and `ns3` (the older HyStart with the thresholds of
/// [`ClassicHyStartConfig::linux`] or [`ClassicHyStartConfig::ns3`]), or `off`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowStartExit {
    /// Nothing else: standard slow start (RFC 9002, section 7.3.1).
    Loss,
    /// HyStart++.
    HyStartPlusPlus(HyStartConfig),
    /// HyStart as first published, which leaves slow start at once.
    HyStart(ClassicHyStartConfig),
}

/// HyStart++ as by default.
impl Default for SlowStartExit {
    fn default() -> Self {
        Self::HyStartPlusPlus(HyStartConfig::default())
    }
}

impl ParameterValue for SlowStartExit {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "off" => Self::Loss,
            "on" => Self::default(),
            "rfc9406" => Self::HyStartPlusPlus(HyStartConfig::rfc9406()),
            "step-back" => Self::HyStartPlusPlus(HyStartConfig {
                step_back: true,
                ..HyStartConfig::rfc9406()
            }),
            "classic" => Self::HyStart(ClassicHyStartConfig::linux()),
            "ns3" => Self::HyStart(ClassicHyStartConfig::ns3()),
            _ => return None,
        })
    }

    fn write(&self) -> String {
        match self {
            Self::Loss => "off",
            Self::HyStartPlusPlus(config) if config.step_back => "step-back",
            Self::HyStartPlusPlus(config) if !config.within_round => "rfc9406",
            Self::HyStartPlusPlus(_) => "on",
            Self::HyStart(config) if *config == ClassicHyStartConfig::ns3() => "ns3",
            Self::HyStart(_) => "classic",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "on, rfc9406, step-back, classic, ns3 or off".to_owned()
    }
}

/// How a controller grows its window below the slow-start threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SlowStart {
    /// One byte for each byte acknowledged (RFC 9002, section 7.3.1).
    #[default]
    Standard,
    /// HyStart++; only for the first slow start of a path (RFC 9406, section 4.3).
    HyStartPlusPlus(HyStart),
    /// The older HyStart; likewise only for the first.
    HyStart(ClassicHyStart),
}

impl SlowStart {
    /// The first slow start of a path, which ends as `exit` specifies.
    pub fn first(exit: SlowStartExit) -> Self {
        match exit {
            SlowStartExit::Loss => Self::Standard,
            SlowStartExit::HyStartPlusPlus(config) => Self::HyStartPlusPlus(HyStart::new(config)),
            SlowStartExit::HyStart(config) => Self::HyStart(ClassicHyStart::new(config)),
        }
    }

    /// Takes in an ACK of a flow that uses its window `cwnd`.
    pub fn on_ack(&mut self, cwnd: ByteCount, ack: &AckBatch, env: &Env<'_>) -> SlowStartStep {
        match self {
            Self::Standard => SlowStartStep::Grow(ack.acked_bytes),
            Self::HyStartPlusPlus(hystart) => hystart.on_ack(cwnd, ack, env),
            Self::HyStart(hystart) => hystart.on_ack(cwnd, ack, env),
        }
    }

    /// Name of the phase, for logs.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::HyStartPlusPlus(hystart) if hystart.is_conservative() => {
                "conservative_slow_start"
            }
            _ => "slow_start",
        }
    }
}
