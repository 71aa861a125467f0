//! Coupling of the congestion controllers of a connection's paths.
//!
//! Paths that share a bottleneck take one share of it for each path if every one of them grows as a
//! flow of its own. A coupling scales the growth of each path's window in congestion avoidance by
//! what happens on all of them; slow start and reductions stay those of the path alone (RFC 6356,
//! section 3).
//!
//! A [`Coupling`] belongs to a connection and holds no controller. For each ACK it yields a scale
//! that the transport hands to the controller of that path
//! ([`Controller::set_growth_scale`](crate::Controller::set_growth_scale)) before it reports the ACK
//! there. A scale of 1 is the growth of a single path. What a controller makes of another scale `g`
//! keeps the proportion of windows that the rules are derived from, where the window of a loss-based
//! flow is in proportion to the square root of `g`:
//!
//! - Reno, Prague: the increase per ACK times `g`;
//! - CUBIC and Cubic+: the constant `C` times `g^2`, and the Reno-friendly increase times `g`, since a
//!   CUBIC window is in proportion to the fourth root of `C` (RFC 9438, section 5.1);
//! - BBR, Copa, fixed windows: nothing. They don't grow by ACKs, so that they stay uncoupled
//!   ([`Controller::can_be_coupled`](crate::Controller::can_be_coupled)).

mod lia;
mod olia;

use std::time::Duration;

use swiftwater_units::text::ParseError;
use swiftwater_units::{ByteCount, Instant, PathId};

/// A path on which nothing was acknowledged for this long, and for [`QUIET_RTTS`] of its round-trip
/// times, is left out: its window is not in use.
const QUIET: Duration = Duration::from_secs(1);
const QUIET_RTTS: u32 = 4;

/// How the windows of a connection's paths depend on each other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CouplingRule {
    /// Not at all: each path grows as a flow of its own.
    #[default]
    Uncoupled,
    /// The Linked Increases Algorithm (RFC 6356): all paths together take as much as one flow on the
    /// best of them.
    Lia,
    /// The Opportunistic Linked Increases Algorithm (draft-khalili-mptcp-congestion-control-05): as
    /// LIA, with less on congested paths.
    Olia,
}

impl CouplingRule {
    /// The rules, by name.
    pub const NAMES: [&'static str; 3] = ["uncoupled", "lia", "olia"];

    /// The rule of that name, in whichever case.
    pub fn by_name(name: &str) -> Result<Self, ParseError> {
        match name.trim().to_ascii_lowercase().as_str() {
            "uncoupled" => Ok(Self::Uncoupled),
            "lia" => Ok(Self::Lia),
            "olia" => Ok(Self::Olia),
            _ => Err(ParseError::new("coupling", name, "uncoupled, lia or olia")),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncoupled => "uncoupled",
            Self::Lia => "lia",
            Self::Olia => "olia",
        }
    }
}

/// What a coupling reads of an ACK.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CoupledAck {
    /// The path whose packets are acknowledged.
    pub path: PathId,
    /// When the ACK arrived.
    pub now: Instant,
    /// Bytes newly acknowledged.
    pub acked: ByteCount,
    /// Congestion window of the path before this ACK.
    pub window: ByteCount,
    /// `smoothed_rtt` of the path, this ACK included.
    pub smoothed_rtt: Duration,
}

/// A path as the rules see it.
#[derive(Clone, Copy, Debug)]
struct CoupledPath {
    id: PathId,
    /// Congestion window, bytes.
    window: f64,
    /// `smoothed_rtt`, seconds.
    rtt: f64,
    acked_at: Instant,
    /// Bytes acknowledged since the last congestion event.
    since_event: ByteCount,
    /// Bytes acknowledged between the last two congestion events.
    between_events: ByteCount,
}

impl CoupledPath {
    fn is_in_use(&self, now: Instant) -> bool {
        let rtts = Duration::try_from_secs_f64(self.rtt * f64::from(QUIET_RTTS));
        let limit = QUIET.max(rtts.unwrap_or(Duration::MAX));
        now.saturating_since(self.acked_at) <= limit
    }
}

/// The coupling of one connection.
#[derive(Clone, Debug, Default)]
pub struct Coupling {
    rule: CouplingRule,
    /// Paths with acknowledged data, in the order of their identifiers; none without coupling.
    paths: Vec<CoupledPath>,
}

impl Coupling {
    /// A coupling of no paths yet.
    pub fn new(rule: CouplingRule) -> Self {
        Self {
            rule,
            paths: Vec::new(),
        }
    }

    /// Its rule.
    pub fn rule(&self) -> CouplingRule {
        self.rule
    }

    /// Data were acknowledged on a path: returns what the growth of that path's window is to be
    /// multiplied by, for this ACK, in -1 to 2. Negative values, which only OLIA yields, shrink the
    /// window.
    pub fn on_ack(&mut self, ack: &CoupledAck) -> f64 {
        if self.rule == CouplingRule::Uncoupled {
            return 1.0;
        }
        let at = self.note(ack);
        let id = self.paths[at].id;
        let used = || self.paths.iter().filter(|path| path.is_in_use(ack.now));
        let Some(of) = used().find(|path| path.id == id) else {
            return 1.0;
        };
        match self.rule {
            CouplingRule::Uncoupled => 1.0,
            CouplingRule::Lia => lia::scale(of, used),
            CouplingRule::Olia => olia::scale(of, used),
        }
    }

    /// A congestion event began on `path`: its window is reduced.
    pub fn on_congestion_event(&mut self, path: PathId) {
        if let Some(path) = self.paths.iter_mut().find(|known| known.id == path) {
            path.between_events = std::mem::take(&mut path.since_event);
        }
    }

    /// `path` is no longer used, or moved to another address so that its controller starts afresh.
    pub fn on_path_closed(&mut self, path: PathId) {
        self.paths.retain(|known| known.id != path);
    }

    /// Takes down what an ACK says of its path; returns the path's place.
    fn note(&mut self, ack: &CoupledAck) -> usize {
        let place = self.paths.binary_search_by_key(&ack.path, |path| path.id);
        let at = place.unwrap_or_else(|at| {
            let new = CoupledPath {
                id: ack.path,
                window: 1.0,
                rtt: 1.0,
                acked_at: ack.now,
                since_event: ByteCount::ZERO,
                between_events: ByteCount::ZERO,
            };
            self.paths.insert(at, new);
            at
        });
        let path = &mut self.paths[at];
        path.window = ack.window.get().max(1) as f64;
        path.rtt = ack.smoothed_rtt.as_secs_f64().max(1e-6);
        path.acked_at = ack.now;
        path.since_event += ack.acked;
        at
    }
}
