//! Schemes by name, and their instances in a session.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swiftwater_quic::policy::Reinjector;
use swiftwater_units::text::parse_duration;
use thiserror::Error;

use super::hairpin::{HairpinPolicy, HairpinTable, InvalidLambda, WINDOW};
use super::tambur::{TamburParity, TamburRate};
use super::webrtc::{WebRtcFec, WebRtcVariant};

/// A scheme, as named in configurations. All of them retransmit lost packets (RTX).
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// `rtx`: retransmission only.
    Rtx,
    /// `webrtc14`, `webrtc-now`: repair packets with each frame by a rule like WebRTC's.
    WebRtc(WebRtcVariant),
    /// `hairpin:lambda=1e-4[,window=1s]`: repair packets by value iteration; λ weighs cost against
    /// misses.
    Hairpin {
        /// λ, positive.
        lambda: f64,
        /// Time over which the loss rate is measured, above 0; default 34 ms. Its authors use that for
        /// 30 Mbit/s; at low rates it contains a dozen packets, whose loss rate is mostly noise.
        window: Duration,
    },
    /// `tambur:ratio=0.25` or `tambur:one`: a streaming code across frames.
    Tambur(TamburParity),
    /// Any other name: a re-injection policy, resolved by the caller.
    Policy(String),
}

/// A scheme's text is invalid.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("scheme `{text}`: {expected}")]
pub struct ParseSchemeError {
    text: String,
    expected: &'static str,
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(text: &str) -> Result<Self, ParseSchemeError> {
        let text = text.trim();
        let fail = |expected| {
            Err(ParseSchemeError {
                text: text.to_owned(),
                expected,
            })
        };
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let number = |key: &str| {
            let value = settings.strip_prefix(key)?.trim();
            value.parse().ok().filter(|value: &f64| value.is_finite())
        };
        match name {
            "" => fail("write rtx, webrtc14, webrtc-now, hairpin:..., tambur:... or a policy"),
            "rtx" if settings.is_empty() => Ok(Self::Rtx),
            "webrtc14" if settings.is_empty() => Ok(Self::WebRtc(WebRtcVariant::Year14)),
            "webrtc-now" if settings.is_empty() => Ok(Self::WebRtc(WebRtcVariant::Now)),
            "rtx" | "webrtc14" | "webrtc-now" => fail("this scheme has no settings"),
            "hairpin" => match hairpin(settings) {
                Some(scheme) => Ok(scheme),
                None => fail(
                    "write hairpin:lambda=1e-4, with a positive lambda, and optionally ,window=1s",
                ),
            },
            "tambur" if settings == "one" => Ok(Self::Tambur(TamburParity::OnePacket)),
            "tambur" => match number("ratio=") {
                Some(ratio) if ratio > 0.0 && ratio <= 1.0 => {
                    Ok(Self::Tambur(TamburParity::Ratio(ratio)))
                }
                _ => fail("write tambur:ratio=0.25 (above 0, at most 1) or tambur:one"),
            },
            _ => Ok(Self::Policy(text.to_owned())),
        }
    }
}

/// The settings of Hairpin.
fn hairpin(settings: &str) -> Option<Scheme> {
    let (lambda, window) = match settings.split_once(',') {
        Some((lambda, window)) => (lambda, Some(window)),
        None => (settings, None),
    };
    let lambda: f64 = lambda.trim().strip_prefix("lambda=")?.trim().parse().ok()?;
    let window = match window {
        Some(window) => parse_duration(window.trim().strip_prefix("window=")?).ok()?,
        None => WINDOW,
    };
    let is_valid = lambda.is_finite() && lambda > 0.0 && !window.is_zero();
    is_valid.then_some(Scheme::Hairpin { lambda, window })
}

impl fmt::Display for Scheme {
    /// The format that `FromStr` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rtx => f.write_str("rtx"),
            Self::WebRtc(WebRtcVariant::Year14) => f.write_str("webrtc14"),
            Self::WebRtc(WebRtcVariant::Now) => f.write_str("webrtc-now"),
            Self::Hairpin { lambda, window } => {
                write!(f, "hairpin:lambda={lambda:e}")?;
                if *window == WINDOW {
                    return Ok(());
                }
                write!(f, ",window={}ns", window.as_nanos())
            }
            Self::Tambur(TamburParity::Ratio(ratio)) => write!(f, "tambur:ratio={ratio}"),
            Self::Tambur(TamburParity::OnePacket) => f.write_str("tambur:one"),
            Self::Policy(name) => f.write_str(name),
        }
    }
}

/// Tables shared by sessions: one of Hairpin for each λ. Use one value for all sessions of a
/// process, from any thread.
#[derive(Debug, Default)]
pub struct SchemeTables {
    hairpin: Mutex<Vec<Arc<HairpinTable>>>,
}

impl SchemeTables {
    /// No tables yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table for `lambda`.
    pub fn hairpin(&self, lambda: f64) -> Result<Arc<HairpinTable>, InvalidLambda> {
        // A poisoned lock protects a list that is only ever appended to.
        let mut tables = self.hairpin.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tables
            .iter()
            .find(|table| table.lambda().to_bits() == lambda.to_bits());
        if let Some(table) = known {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(HairpinTable::new(lambda)?);
        tables.push(Arc::clone(&table));
        Ok(table)
    }
}

/// Why a scheme can't be created.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum UnknownPolicy {
    /// No scheme and no re-injection policy has this name.
    #[error("no scheme or policy is called `{0}`")]
    Name(String),
    /// λ is out of range.
    #[error(transparent)]
    Lambda(#[from] InvalidLambda),
}

/// A scheme in a session.
#[derive(Debug)]
pub enum Protector {
    /// Retransmission only.
    Rtx,
    /// Repair packets with each frame, WebRTC-like.
    WebRtc(WebRtcFec),
    /// Repair packets by Hairpin's table.
    Hairpin(HairpinPolicy),
    /// A streaming code.
    Tambur(TamburRate),
    /// Copies requested by a re-injection policy.
    Reinject(Box<dyn Reinjector>),
}

impl Protector {
    /// Creates `scheme`. Names of policies are passed to `resolve`, tables come from `tables`.
    pub fn new(
        scheme: &Scheme,
        tables: &SchemeTables,
        resolve: &dyn Fn(&str) -> Option<Box<dyn Reinjector>>,
    ) -> Result<Self, UnknownPolicy> {
        Ok(match scheme {
            Scheme::Rtx => Self::Rtx,
            Scheme::WebRtc(variant) => Self::WebRtc(WebRtcFec::new(*variant)),
            Scheme::Hairpin { lambda, window } => {
                Self::Hairpin(HairpinPolicy::new(tables.hairpin(*lambda)?, *window))
            }
            Scheme::Tambur(parity) => Self::Tambur(TamburRate::new(*parity)),
            Scheme::Policy(name) => {
                let policy = resolve(name);
                Self::Reinject(policy.ok_or_else(|| UnknownPolicy::Name(name.clone()))?)
            }
        })
    }
}
