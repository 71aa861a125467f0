//! What became of a user's requests.

use std::time::Duration;

use swiftwater_select::{EventKind, Features, Stats, SwitchCause, Transport};
use swiftwater_units::Instant;

/// A request that is complete or has failed.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Visited {
    /// When it was made.
    pub(in crate::world) at: Instant,
    /// Time until its response was complete, or until it was given up.
    pub(in crate::world) duration: Duration,
    pub(in crate::world) failed: bool,
    /// What answered it.
    pub(in crate::world) transport: Transport,
    /// It served to compare protocols.
    pub(in crate::world) is_probe: bool,
    /// It was also sent over TCP.
    pub(in crate::world) hedged: bool,
}

/// The features of the protocol in use after a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureRow {
    /// The request's completion, since the start of the run.
    pub at: Duration,
    /// The features.
    pub features: Features,
    /// Greatest rate at which a response of the window came, Mbit/s; NaN if unknown.
    pub bandwidth_mbps: f32,
}

/// A user's requests of a run, and what the selector did.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct Visit {
    /// In order of their end.
    pub(in crate::world) requests: Vec<Visited>,
    pub(in crate::world) events: Vec<(Instant, EventKind)>,
    /// The selector's counters at the end.
    pub(in crate::world) stats: Stats,
    /// Only of fixed protocols.
    pub(in crate::world) rows: Vec<FeatureRow>,
}

/// Time before and after a switch that are compared.
const AROUND: Duration = Duration::from_secs(10);

impl Visit {
    /// Completion times, ms; those of requests that failed included.
    pub(in crate::world) fn times(&self) -> Vec<f64> {
        self.requests.iter().map(Visited::millis).collect()
    }

    /// Switches that an experiment, a model or a belief made, each with the change of the mean completion time
    /// from 10 s before to 10 s after it, if there were requests in both.
    pub(in crate::world) fn switches(&self) -> Vec<Option<f64>> {
        let chosen = |kind: &EventKind| {
            matches!(
                kind,
                EventKind::Switched {
                    cause: SwitchCause::Belief
                        | SwitchCause::Boundary
                        | SwitchCause::Experiment
                        | SwitchCause::Model,
                    ..
                }
            )
        };
        let switches = self.events.iter().filter(|(_, kind)| chosen(kind));
        switches.map(|(at, _)| self.change_at(*at)).collect()
    }

    fn change_at(&self, at: Instant) -> Option<f64> {
        let begin = Instant::ZERO + (at - Instant::ZERO).saturating_sub(AROUND);
        let before = self.mean_ms(|request| request.at >= begin && request.at < at)?;
        let after = self.mean_ms(|request| request.at >= at && request.at < at + AROUND)?;
        Some(after / before - 1.0)
    }

    fn mean_ms(&self, which: impl Fn(&Visited) -> bool) -> Option<f64> {
        let all = self.requests.iter().filter(|request| which(request));
        let times: Vec<f64> = all.map(Visited::millis).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }

    /// Of each condition the protocol with the lesser mean; conditions change every `step`. TCP where nothing is known.
    pub(in crate::world) fn quicker(tcp: &Self, quic: &Self, step: Duration) -> Vec<Transport> {
        let place = |request: &Visited| {
            let at = request.at - Instant::ZERO;
            at.as_nanos() / step.as_nanos().max(1)
        };
        let last = tcp.requests.iter().chain(&quic.requests).map(place).max();
        let quicker = |condition| {
            let means = [tcp, quic].map(|visit| visit.mean_ms(|it| place(it) == condition));
            match means {
                [Some(tcp), Some(quic)] if quic < tcp => Transport::Quic,
                [None, Some(_)] => Transport::Quic,
                _ => Transport::Tcp,
            }
        };
        (0..=last.unwrap_or_default()).map(quicker).collect()
    }
}

impl Visited {
    fn millis(&self) -> f64 {
        self.duration.as_secs_f64() * 1e3
    }
}
