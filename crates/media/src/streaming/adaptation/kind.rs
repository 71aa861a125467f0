//! Adaptation algorithms by name.

use std::fmt;
use std::str::FromStr;

use swiftwater_units::text::ParseError;

use super::{Adaptation, Bola, GuardedMpc, Mpc, RateRule};

/// An algorithm by name, with its default parameters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AdaptationKind {
    /// `mpc`: [`Mpc`].
    #[default]
    Mpc,
    /// `guarded-mpc`: [`GuardedMpc`].
    GuardedMpc,
    /// `rate`: [`RateRule`].
    Rate,
    /// `bola`: [`Bola`].
    Bola,
}

impl AdaptationKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mpc, Self::GuardedMpc, Self::Rate, Self::Bola];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpc => "mpc",
            Self::GuardedMpc => "guarded-mpc",
            Self::Rate => "rate",
            Self::Bola => "bola",
        }
    }

    /// The algorithm.
    pub fn build(self) -> Box<dyn Adaptation> {
        match self {
            Self::Mpc => Box::new(Mpc::default()),
            Self::GuardedMpc => Box::new(GuardedMpc::default()),
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
        let expected = "use mpc, guarded-mpc, rate or bola";
        let found = Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text.trim());
        found.ok_or_else(|| ParseError::new("bitrate adaptation", text, expected))
    }
}
