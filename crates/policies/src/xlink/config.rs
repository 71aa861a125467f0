//! Parameters of XLINK.

use std::time::Duration;

use swiftwater_quic::policy::Reinjector;
use swiftwater_tunable::parameters::OrNone;
use swiftwater_tunable::{ParameterValue, tunable};

use super::Xlink;
use crate::reinjector_factory::ReinjectorFactory;

/// Place of copies among other data; XLINK has three levels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    /// After everything that waits, as MPTCP has it.
    Plain,
    /// By the priority of their streams: before new data of less urgent ones.
    Stream,
    /// As `Stream`, and the first video frame before everything.
    Frame,
}

impl ParameterValue for Level {
    fn read(text: &str) -> Option<Self> {
        match text {
            "plain" => Some(Self::Plain),
            "stream" => Some(Self::Stream),
            "frame" => Some(Self::Frame),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Plain => "plain",
            Self::Stream => "stream",
            Self::Frame => "frame",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "plain, stream or frame".to_owned()
    }
}

/// Parameters of [`Xlink`]. The thresholds are those of Chorus' evaluation of XLINK (`MobiCom` 2024, section
/// 5.1), which also names the percentiles that XLINK's authors recommend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XlinkConfig {
    /// Copy by what the player reports; default on. Off: always, as in Chorus' baseline MinRTT+RI.
    pub control: bool,
    /// Buffered play time below which data are copied, 0 to 60 s; default 200 ms.
    pub th1: Duration,
    /// Buffered play time above which none are, 0 to 60 s; default 3.7 s. Between both they are if the play
    /// time is less than the longest time that data in flight may take yet.
    pub th2: Duration,
    /// Take both thresholds from the distribution of the reported play times once it has 1000 samples;
    /// default on.
    pub tune: bool,
    /// Share of the reports whose play time exceeds `th1` when it is tuned, 0 to 1; default 0.95.
    pub th1_share: f64,
    /// Share of the reports whose play time exceeds `th2` when it is tuned, 0 to 1; default 0.8.
    pub th2_share: f64,
    /// The time that data in flight may take yet is `smoothed_rtt` and this many times `rttvar` of their path, 0
    /// to 8; default 1.
    pub variance: f64,
    /// Longest time between two reports of a player, 1 ms to 60 s; default 500 ms. After three of them without
    /// a report data are copied.
    pub report_interval: Duration,
    /// Copy from the start until a report says that playback runs; default on.
    pub start: bool,
    /// Place of copies among other data; default `frame`.
    pub level: Level,
    /// How much sooner than its original a copy must be expected to arrive, 0 to 10 s; default 20 ms. None: no such
    /// rule, as in the paper.
    pub gain: Option<Duration>,
    /// Of data of one priority, copy first what is expected to arrive last; default on. Off: what left first.
    pub latest_first: bool,
    /// Copies as a share of the bytes sent for the first time, within any ten seconds that end with a copy, 0
    /// to 1; default 0.05. None: no limit, whatever `urgent_budget` says.
    pub budget: Option<f64>,
    /// The same for copies that are urgent, together with the others, 0 to 1; default 0.15: play time below `th1`, a
    /// stall, the first frame, the start, and ten seconds of a player's silence. Less than `budget`
    /// counts as that.
    pub urgent_budget: f64,
}

impl Default for XlinkConfig {
    fn default() -> Self {
        Self {
            control: true,
            th1: Duration::from_millis(200),
            th2: Duration::from_millis(3_700),
            tune: true,
            th1_share: 0.95,
            th2_share: 0.8,
            variance: 1.0,
            report_interval: Duration::from_millis(500),
            start: true,
            level: Level::Frame,
            gain: Some(Duration::from_millis(20)),
            latest_first: true,
            budget: Some(0.05),
            urgent_budget: 0.15,
        }
    }
}

impl XlinkConfig {
    /// As the paper has it: the player alone limits what copies cost, whether they arrive sooner isn't estimated, and
    /// what left first is copied first.
    pub fn paper() -> Self {
        Self {
            gain: None,
            latest_first: false,
            budget: None,
            ..Self::default()
        }
    }
}

const LONGEST: Duration = Duration::from_secs(60);

tunable!(XlinkConfig {
    "control" => control, "copy by what the player reports";
    "th1" => th1 in Duration::ZERO..=LONGEST, "play time below which data are copied";
    "th2" => th2 in Duration::ZERO..=LONGEST, "play time above which none are";
    "tune" => tune, "take the thresholds from the distribution of play times";
    "th1-share" => th1_share in 0.0..=1.0, "share of play times above a tuned th1";
    "th2-share" => th2_share in 0.0..=1.0, "share of play times above a tuned th2";
    "variance" => variance in 0.0..=8.0, "times rttvar in the longest delivery time";
    "report-interval" => report_interval in Duration::from_millis(1)..=LONGEST, "longest time between reports of a player";
    "start" => start, "copy until playback runs";
    "level" => level, "place of copies among other data";
    "gain" => gain in OrNone(Duration::ZERO..=Duration::from_secs(10)), "how much sooner a copy must arrive";
    "latest-first" => latest_first, "copy first what arrives last";
    "budget" => budget in OrNone(0.0..=1.0), "copies as a share of the bytes sent for the first time";
    "urgent-budget" => urgent_budget in 0.0..=1.0, "the same for urgent copies";
});

impl ReinjectorFactory for XlinkConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Xlink::new(*self))
    }
}
