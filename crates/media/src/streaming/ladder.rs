//! The bitrates at which a video is available.

use std::str::FromStr;

use swiftwater_units::Bandwidth;
use swiftwater_units::text::parse_rate;

use super::error::LadderError;

/// Most renditions of a ladder: an exhaustive search over five chunks then has at most 16^5 (about a
/// million) sequences.
pub const MAX_RENDITIONS: usize = 16;

/// One encoding of a video.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rendition {
    /// Nominal bitrate, above zero.
    pub rate: Bandwidth,
    /// Height of the picture in pixels, if known.
    pub height: Option<u32>,
}

/// The renditions of a video in ascending order of bitrate. A *level* is an index into it, from 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ladder {
    renditions: Vec<Rendition>,
}

impl Ladder {
    /// A ladder of 1 to [`MAX_RENDITIONS`] renditions with strictly ascending bitrates.
    pub fn new(renditions: Vec<Rendition>) -> Result<Self, LadderError> {
        if renditions.is_empty() {
            return Err(LadderError::Empty);
        }
        if renditions.len() > MAX_RENDITIONS {
            return Err(LadderError::TooManyRenditions(renditions.len()));
        }
        if renditions[0].rate.is_zero() {
            return Err(LadderError::ZeroRate);
        }
        for (index, pair) in renditions.windows(2).enumerate() {
            if pair[1].rate <= pair[0].rate {
                return Err(LadderError::NotAscending(index + 1));
            }
        }
        Ok(Self { renditions })
    }

    /// The ladder of Chorus' evaluation (MobiCom 2024): 1, 2.5, 5, 8 and 16 Mbit/s at 360p to 1440p.
    pub fn chorus() -> Self {
        let steps = [
            (1_000, 360),
            (2_500, 480),
            (5_000, 720),
            (8_000, 1080),
            (16_000, 1440),
        ];
        let renditions = steps.map(|(kbps, height)| Rendition {
            rate: Bandwidth::from_kbps(kbps),
            height: Some(height),
        });
        Self {
            renditions: renditions.to_vec(),
        }
    }

    /// The renditions by level; at least one.
    pub fn renditions(&self) -> &[Rendition] {
        &self.renditions
    }

    /// Number of levels, at least 1.
    pub fn levels(&self) -> usize {
        self.renditions.len()
    }

    /// The highest level.
    pub fn top(&self) -> usize {
        self.renditions.len() - 1
    }

    /// Nominal bitrate of `level`; of the highest level if there is no such.
    pub fn rate(&self, level: usize) -> Bandwidth {
        self.renditions[level.min(self.top())].rate
    }

    /// The highest level whose nominal bitrate is at most `rate`; level 0 if none is.
    pub fn level_within(&self, rate: Bandwidth) -> usize {
        let fitting = self.renditions.partition_point(|r| r.rate <= rate);
        fitting.saturating_sub(1)
    }
}

impl FromStr for Ladder {
    type Err = LadderError;

    /// Reads bitrates in ascending order, separated by commas: `1mbit,2.5mbit,5mbit`.
    fn from_str(text: &str) -> Result<Self, LadderError> {
        let rendition = |rate: &str| -> Result<Rendition, LadderError> {
            Ok(Rendition {
                rate: parse_rate(rate.trim())?,
                height: None,
            })
        };
        Self::new(text.split(',').map(rendition).collect::<Result<_, _>>()?)
    }
}
