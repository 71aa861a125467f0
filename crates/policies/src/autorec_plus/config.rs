//! Parameters of autorec+.

use std::time::Duration;

use swiftwater_quic::policy::Reinjector;
use swiftwater_tunable::parameters::OrNone;
use swiftwater_tunable::{ParameterValue, tunable};

use super::AutoRecPlus;
use crate::congestion_guard::CongestionGuardConfig;
use crate::reinjector_factory::ReinjectorFactory;

/// Which AutoRec bounds the cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ceiling {
    /// The published mechanism ([`AutoRecConfig::paper`](crate::AutoRecConfig::paper)): no replicas after an interval without loss.
    Paper,
    /// The shipped one (the default of [`AutoRecConfig`](crate::AutoRecConfig)).
    Shipped,
    /// None: the cost tolerance alone.
    Off,
}

impl ParameterValue for Ceiling {
    fn read(text: &str) -> Option<Self> {
        match text {
            "paper" => Some(Self::Paper),
            "shipped" => Some(Self::Shipped),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Paper => "paper",
            Self::Shipped => "shipped",
            Self::Off => "off",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "paper, shipped or off".to_owned()
    }
}

/// Parameters of autorec+; the first three mean what they mean to AutoRec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoRecPlusConfig {
    /// α: mean recovery latency that is good enough. Default 30 ms, as in AutoRec's evaluation.
    pub alpha: Duration,
    /// β: replica bytes per byte sent for the first time, in any ten seconds. Default 0.3.
    pub beta: f64,
    /// γ: share of goodput that copies may take from new data. Default 0.2.
    pub gamma: f64,
    /// Most copies per round of repair, 0 to 10. Default 10.
    pub max_level: u32,
    /// No copies beyond those that leave this probability that a lost data range needs a second detection.
    /// Default 1e-5.
    pub residual: f64,
    /// No copies beyond those whose successor would save less than this share of the detection time.
    /// Default 0.01.
    pub least_gain: f64,
    /// What a second detection costs beyond its share of the mean latency, in detection times: it is what
    /// a viewer notices. 0 to 1000, default 4.
    pub tail_weight: f64,
    /// Unused budget of the ceiling, in packets of 1200 bytes, for which the limit rises by a copy per
    /// data range, 1 to 1000. Default none: the limit is the mean level of the AutoRec that is the ceiling. The
    /// smaller, the lower the latency and the higher the cost.
    pub surplus_step: Option<u32>,
    /// Shortest time between copies of a data range. Default 1 ms.
    pub min_gap: Duration,
    /// Grant copies again to a data range that was lost with all its copies. Default on.
    pub renew: bool,
    /// Measure how bursty losses are and space copies by it; else losses count as independent.
    /// Default on.
    pub burst_aware: bool,
    /// Heed the deadlines of streams: no copies that come too late, few while there is time for
    /// another retransmission, as many as it takes for the last one. Default on.
    pub deadline_aware: bool,
    /// The AutoRec whose cost under the same tolerances is the bound. Default the shipped one.
    pub ceiling: Ceiling,
    /// When copies are held back because the path is congested; default on. A shipped ceiling is held back
    /// alike, a published one is not.
    pub guard: CongestionGuardConfig,
}

impl Default for AutoRecPlusConfig {
    fn default() -> Self {
        Self {
            alpha: Duration::from_millis(30),
            beta: 0.3,
            gamma: 0.2,
            max_level: 10,
            residual: 1e-5,
            least_gain: 0.01,
            tail_weight: 4.0,
            surplus_step: None,
            min_gap: Duration::from_millis(1),
            renew: true,
            burst_aware: true,
            deadline_aware: true,
            ceiling: Ceiling::Shipped,
            guard: CongestionGuardConfig::default(),
        }
    }
}

/// Longest time that a parameter may be.
const LONGEST: Duration = Duration::from_secs(60);

impl ReinjectorFactory for AutoRecPlusConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(AutoRecPlus::new(*self))
    }
}

tunable!(AutoRecPlusConfig {
    "alpha" => alpha in Duration::ZERO..=LONGEST, "mean recovery latency that is good enough";
    "beta" => beta in 0.0..=10.0, "replica bytes per new byte in any ten seconds";
    "gamma" => gamma in 0.0..=1.0, "share of goodput that copies may take";
    "max-level" => max_level in 0_u32..=10, "most copies per round of repair";
    "residual" => residual in 0.0..=1.0, "probability of a second detection that is good enough";
    "least-gain" => least_gain in 0.0..=1.0, "share of the detection time that one more copy must save";
    "tail-weight" => tail_weight in 0.0..=1000.0,
        "cost of a second detection beyond its share of the mean latency, in detection times";
    "surplus-step" => surplus_step in OrNone(1..=1000),
        "unused budget, in packets, for which the limit rises by a copy";
    "min-gap" => min_gap in Duration::ZERO..=LONGEST, "shortest time between copies of a data range";
    "renew" => renew, "grant copies again after a second loss";
    "burst-aware" => burst_aware, "space copies by how bursty losses are";
    "deadline-aware" => deadline_aware, "heed the deadlines of streams";
    "ceiling" => ceiling, "the AutoRec whose cost under the same tolerances is the bound";
    ..guard;
});
