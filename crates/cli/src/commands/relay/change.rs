//! `--change`: faults that begin and end while a relay runs.

use std::str::FromStr;
use std::time::Duration;

use swiftwater::link::{LinkCondition, parse_duration, parse_probability};
use thiserror::Error;

/// A `--change`: what happens to a leg, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeArg {
    /// The name of the leg; none: to all.
    pub leg: Option<String>,
    /// What happens.
    pub fault: RelayFault,
    /// As it was written, without the leg and the time.
    pub text: String,
    /// Since the first datagram of a client.
    pub at: Duration,
}

/// What happens to the links of a leg. It lasts until [`RelayFault::Restore`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RelayFault {
    /// Nothing passes in either direction.
    Cut,
    /// Nothing passes from clients to the server.
    CutUp,
    /// Nothing passes from the server to clients.
    CutDown,
    /// This share of packets is lost in both directions, in addition to the loss of the link.
    Loss(f64),
    /// The propagation delay of both directions is this many times as long, 1 to 1000.
    Delay(f64),
    /// Everything is as at first.
    Restore,
}

/// A `--change` that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "'{0}' is no change: write [LEG,]WHAT@TIME, such as wifi,cut@5s; WHAT is cut, cut-up, cut-down, loss:SHARE, \
     delay:FACTOR (1 to 1000) or restore"
)]
pub struct ChangeArgError(String);

impl FromStr for ChangeArg {
    type Err = ChangeArgError;

    fn from_str(text: &str) -> Result<Self, ChangeArgError> {
        let fail = || ChangeArgError(text.chars().take(60).collect());
        let (what, at) = text.rsplit_once('@').ok_or_else(fail)?;
        let (leg, what) = match what.rsplit_once(',') {
            Some((leg, what)) => (Some(leg.trim().to_owned()), what.trim()),
            None => (None, what.trim()),
        };
        Ok(Self {
            leg,
            fault: what.parse().map_err(|_| fail())?,
            text: what.to_owned(),
            at: parse_duration(at).map_err(|_| fail())?,
        })
    }
}

impl FromStr for RelayFault {
    type Err = ChangeArgError;

    fn from_str(text: &str) -> Result<Self, ChangeArgError> {
        let fail = || ChangeArgError(text.chars().take(60).collect());
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        Ok(match (name, value.is_empty()) {
            ("cut", true) => Self::Cut,
            ("cut-up", true) => Self::CutUp,
            ("cut-down", true) => Self::CutDown,
            ("restore", true) => Self::Restore,
            ("loss", false) => Self::Loss(parse_probability(value).map_err(|_| fail())?),
            ("delay", false) => {
                let factor = value.parse().ok();
                let factor = factor.filter(|factor| (1.0..=1000.0).contains(factor));
                Self::Delay(factor.ok_or_else(fail)?)
            }
            _ => return Err(fail()),
        })
    }
}

/// What is wrong with the two links of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LegCondition {
    /// From clients to the server.
    pub up: LinkCondition,
    /// From the server to clients.
    pub down: LinkCondition,
}

impl LegCondition {
    /// The condition after `fault`.
    #[must_use]
    pub fn after(mut self, fault: RelayFault) -> Self {
        match fault {
            RelayFault::Cut => (self.up.cut, self.down.cut) = (true, true),
            RelayFault::CutUp => self.up.cut = true,
            RelayFault::CutDown => self.down.cut = true,
            RelayFault::Loss(share) => (self.up.loss, self.down.loss) = (share, share),
            RelayFault::Delay(factor) => {
                (self.up.delay_factor, self.down.delay_factor) = (factor, factor);
            }
            RelayFault::Restore => self = Self::default(),
        }
        self
    }
}
