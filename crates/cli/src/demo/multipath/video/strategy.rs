//! How the viewers of the video story use their networks: by name, the policies of both ends and the player's rules.

use serde::Serialize;
use swiftwater_media::streaming::predictor::PredictorKind;

/// A strategy of the video story.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoStrategy {
    /// Wi-Fi only.
    SinglePath,
    /// Both networks, that of the least round-trip time first.
    MinRtt,
    /// XLINK (SIGCOMM 2021) as published.
    Xlink,
    /// Chorus (MobiCom 2024).
    Chorus,
    /// The project's variant of it.
    #[serde(rename = "chorus+")]
    ChorusPlus,
}

/// The policies of a strategy with two paths, by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Multipath {
    /// The scheduler of both ends.
    pub scheduler: &'static str,
    /// The recovery policy of both ends.
    pub recovery: &'static str,
    /// The feedback policy of the server; none: it only accepts what the player reports.
    pub feedback: Option<&'static str>,
}

impl VideoStrategy {
    /// All, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::SinglePath,
        Self::MinRtt,
        Self::Xlink,
        Self::Chorus,
        Self::ChorusPlus,
    ];

    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SinglePath => "single path",
            Self::MinRtt => "min-rtt",
            Self::Xlink => "XLINK",
            Self::Chorus => "Chorus",
            Self::ChorusPlus => "chorus+",
        }
    }

    /// The policies with two paths; `None` with one.
    pub const fn multipath(self) -> Option<Multipath> {
        let (scheduler, recovery, feedback) = match self {
            Self::SinglePath => return None,
            Self::MinRtt => ("min-rtt", "failover", None),
            Self::Xlink => ("min-rtt", "xlink-paper", None),
            Self::Chorus => ("chorus", "chorus", Some("chorus")),
            Self::ChorusPlus => ("chorus+", "chorus+", Some("chorus")),
        };
        Some(Multipath {
            scheduler,
            recovery,
            feedback,
        })
    }

    /// How the player predicts throughput.
    pub const fn predictor(self) -> PredictorKind {
        match self {
            Self::SinglePath | Self::MinRtt | Self::Xlink => PredictorKind::RobustHarmonicMean,
            Self::Chorus => PredictorKind::ReceiveRate,
            Self::ChorusPlus => PredictorKind::RobustReceiveRate,
        }
    }
}
