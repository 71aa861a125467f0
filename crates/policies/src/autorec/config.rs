//! Parameters of AutoRec, and the profiles that set them.

use std::time::Duration;

use swiftwater_tunable::parameters::OrNone;
use swiftwater_tunable::{ParameterValue, tunable};

use super::model::Tolerances;
use crate::congestion_guard::CongestionGuardConfig;

/// Least time between two copies of a data range that leave because there is nothing else to send.
///
/// Written `auto`, or as a duration; `0ms` is [`MinGap::Off`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MinGap {
    /// None: all replicas may leave back to back, and share the fate of one burst of loss.
    Off,
    /// A quarter of `T_thres`, at least 1 ms.
    Auto,
    /// This long.
    Fixed(Duration),
}

impl MinGap {
    /// The gap at a silence threshold.
    pub fn at(self, threshold: Duration) -> Duration {
        match self {
            Self::Off => Duration::ZERO,
            Self::Auto => (threshold / 4).max(Duration::from_millis(1)),
            Self::Fixed(gap) => gap,
        }
    }
}

impl ParameterValue for MinGap {
    fn read(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(Self::Auto);
        }
        let gap = Duration::read(text)?;
        Some(if gap.is_zero() {
            Self::Off
        } else {
            Self::Fixed(gap)
        })
    }

    fn write(&self) -> String {
        match self {
            Self::Off => Duration::ZERO.write(),
            Self::Auto => "auto".to_owned(),
            Self::Fixed(gap) => gap.write(),
        }
    }

    fn accepts() -> String {
        format!("auto, or {}", Duration::accepts())
    }
}

/// Which copies of a data range bring a retransmission when they are lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watch {
    /// The newest one: the loss of an older copy brings no retransmission (AutoRec, section VIII-C).
    Newest,
    /// Each one: every lost copy is retransmitted on its own.
    Each,
}

impl ParameterValue for Watch {
    fn read(text: &str) -> Option<Self> {
        match text {
            "newest" => Some(Self::Newest),
            "each" => Some(Self::Each),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Newest => "newest",
            Self::Each => "each",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "newest or each".to_owned()
    }
}

/// Parameters of [`AutoRec`](super::AutoRec). [`AutoRecConfig::paper`] is the mechanism of the paper;
/// [`AutoRecConfig::default`] has in addition `min_gap`, `subtract_spurious`, `loss_memory` and `guard`,
/// whose reasons stand at each.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoRecConfig {
    /// Tolerances; default 30 ms, 0.3, 0.2 (the paper's testbed, section VII).
    pub tolerances: Tolerances,
    /// Highest redundancy level, 0 to 20; default 10 (section VII).
    pub max_level: u32,
    /// Redundancy level to hold whatever is measured, 0 to 20, as the paper does to check its
    /// formulas; default none.
    pub fixed_level: Option<u32>,
    /// Length of a decision interval in smoothed round-trip times, 1 to 100; default 5 (section
    /// V-A).
    pub interval_rtts: u32,
    /// Its least length; default 50 ms. The paper has no bound; on short paths it keeps the number of
    /// packets from which R is taken sensible.
    pub min_interval: Duration,
    /// An interval goes on until so many packets were acknowledged or lost; default 20. The paper
    /// has no bound; a rate out of three packets is no rate.
    pub carry_below: u64,
    /// Replicas when there is nothing else to send (off-mode); default on.
    pub off_mode: bool,
    /// Replicas beside new data, after `T_thres` of silence (opportunistic reinjection); default on.
    pub opportunistic: bool,
    /// Least time between copies in off-mode; default auto, in the paper none. Copies sent back to
    /// back are lost together in a burst of loss, and are not needed when the next one would have
    /// been in time.
    pub min_gap: MinGap,
    /// Time over which R is averaged for intervals without loss, zero is off; default 10 s. The
    /// paper sets the level to 0 after such an interval, so that a rare loss never gets a replica.
    pub loss_memory: Duration,
    /// R without packets that repeat data; default off. The paper doesn't say.
    pub exclude_replicas: bool,
    /// Packets that arrive after they were declared lost don't count in R; default on, in the paper
    /// off. Reordering is no loss: replicas can't help against it.
    pub subtract_spurious: bool,
    /// Data that a probe timeout repeats count as lost: they give a sample of `T_unit` and get
    /// replicas; default on. The paper measures all retransmissions.
    pub probes: bool,
    /// Which copies bring a retransmission when they are lost; default the newest (section VIII-C).
    pub watch: Watch,
    /// When copies are held back because the path is congested; default on, in the paper off.
    pub guard: CongestionGuardConfig,
}

tunable!(AutoRecConfig {
    "alpha" => tolerances.alpha in Duration::ZERO..=Duration::from_secs(60),
        "recovery latency to aim for";
    "beta" => tolerances.beta in 0.0..=10.0, "most replicas per packet sent for the first time";
    "gamma" => tolerances.gamma in 0.0..=1.0, "largest tolerated reduction of goodput";
    "max-level" => max_level in 0..=20, "most replicas per lost data range";
    "level" => fixed_level in OrNone(0..=20), "replicas per lost data range, whatever is measured";
    "interval-rtts" => interval_rtts in 1..=100, "length of a decision interval in round-trip times";
    "min-interval" => min_interval in Duration::ZERO..=Duration::from_secs(10),
        "least length of a decision interval";
    "carry-below" => carry_below, "settled packets that a decision needs";
    "off-mode" => off_mode, "replicas when there is nothing else to send";
    "opportunistic" => opportunistic, "replicas beside new data after a silence";
    "min-gap" => min_gap, "least time between replicas of a data range in off-mode";
    "loss-memory" => loss_memory in Duration::ZERO..=Duration::from_secs(600),
        "time over which loss is averaged for intervals without any, 0ms is off";
    "exclude-replicas" => exclude_replicas, "loss rate without packets that repeat data";
    "subtract-spurious" => subtract_spurious, "loss rate without packets that arrived after all";
    "probes" => probes, "data repeated by a probe timeout count as lost";
    "watch" => watch, "copies whose loss brings a retransmission";
    ..guard;
});

impl Default for AutoRecConfig {
    fn default() -> Self {
        Self {
            min_gap: MinGap::Auto,
            loss_memory: Duration::from_secs(10),
            subtract_spurious: true,
            guard: CongestionGuardConfig::default(),
            ..Self::paper()
        }
    }
}

impl AutoRecConfig {
    /// The paper's mechanism with the tolerances of its testbed. What the paper leaves open is as in the
    /// default, `min_interval` and `carry_below` too, which it doesn't have.
    pub fn paper() -> Self {
        Self {
            tolerances: tolerances(30, 0.3, 0.2),
            max_level: 10,
            fixed_level: None,
            interval_rtts: 5,
            min_interval: Duration::from_millis(50),
            carry_below: 20,
            off_mode: true,
            opportunistic: true,
            min_gap: MinGap::Off,
            loss_memory: Duration::ZERO,
            exclude_replicas: false,
            subtract_spurious: false,
            probes: true,
            watch: Watch::Newest,
            guard: CongestionGuardConfig::off(),
        }
    }

    /// For live streams: 200 ms, 0.5, 0.5, as deployed by the paper's authors; while a queue stands in the sender all
    /// lost data may have a copy ([`CongestionGuardConfig::backlog_copies`] 1), as these tolerances ask for few.
    pub fn live() -> Self {
        Self {
            guard: CongestionGuardConfig {
                backlog_copies: 1,
                ..CongestionGuardConfig::default()
            },
            ..Self::with(tolerances(200, 0.5, 0.5))
        }
    }

    /// For real-time communication: as quick as 20 % redundancy permits (section VII).
    pub fn rtc() -> Self {
        Self::with(tolerances(0, 0.2, 0.2))
    }

    /// For real-time communication at low cost: 5 % (section VII).
    pub fn rtc_lc() -> Self {
        Self::with(tolerances(0, 0.05, 0.05))
    }

    /// For real-time communication at high cost: 50 % (section VII).
    pub fn rtc_hc() -> Self {
        Self::with(tolerances(0, 0.5, 0.5))
    }

    fn with(tolerances: Tolerances) -> Self {
        Self {
            tolerances,
            ..Self::default()
        }
    }
}

fn tolerances(alpha_ms: u64, beta: f64, gamma: f64) -> Tolerances {
    Tolerances {
        alpha: Duration::from_millis(alpha_ms),
        beta,
        gamma,
    }
}
