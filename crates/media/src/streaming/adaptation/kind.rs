//! Adaptation algorithms by name.

use std::fmt;
use std::str::FromStr;

use swiftwater_units::text::ParseError;

use super::{Adaptation, Bola, Mpc, RateRule};

/// An algorithm by name, with its default parameters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AdaptationKind {
    /// `mpc`: [`Mpc`].
    #[default]
    Mpc,
    /// `rate`: [`RateRule`].
    Rate,
    /// `bola`: [`Bola`].
    Bola,
}

impl AdaptationKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mpc, Self::Rate, Self::Bola];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpc => "mpc",
            Self::Rate => "rate",
            Self::Bola => "bola",
        }
    }

    /// The algorithm.
    pub fn build(self) -> Box<dyn Adaptation> {
        match self {
            Self::Mpc => Box::new(Mpc::default()),
            Self::Rate => Box::new(RateRule::default()),
            Self::Bola => Box::new(Bola::default()),
        }
    }
}

impl fmt::Display for AdaptationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AdaptationKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let expected = "use mpc, rate or bola";
        let found = Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text.trim());
        found.ok_or_else(|| ParseError::new("bitrate adaptation", text, expected))
    }
}
