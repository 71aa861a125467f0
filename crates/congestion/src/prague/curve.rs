//! Additive increase of Prague: one datagram per virtual round trip, at the pace of a flow whose
//! round-trip time is the reference (draft-briscoe-iccrg-prague-congestion-control-04, "Reduced RTT
//! Dependence").

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use super::PragueConfig;
use crate::controller::Env;
use crate::loss_based::Curve;
use crate::sample::AckBatch;

/// Growth of Prague in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PragueCurve {
    loss_beta: f64,
    rtt_target: Duration,
    rtt_transition: u64,
    /// Round in which congestion avoidance began first.
    since: Option<u64>,
    /// The part of the window that is less than a byte.
    fraction: f64,
}

impl PragueCurve {
    pub(super) fn new(config: &PragueConfig) -> Self {
        Self {
            loss_beta: config.loss_beta,
            rtt_target: config.rtt_target,
            rtt_transition: u64::from(config.rtt_transition),
            since: None,
            fraction: 0.0,
        }
    }

    /// True once the flow behaves as if its round-trip time were the reference.
    pub(super) fn is_rtt_independent(&self, round: u64) -> bool {
        self.since
            .is_some_and(|since| round.saturating_sub(since) >= self.rtt_transition)
    }

    /// The round-trip time that the flow behaves as if it had, if that is longer than its own.
    pub(super) fn virtual_rtt(&self, rtt: Duration, round: u64) -> Option<Duration> {
        let applies = rtt < self.rtt_target && self.is_rtt_independent(round);
        applies.then_some(self.rtt_target)
    }
}

impl Curve for PragueCurve {
    const NAME: &'static str = "prague";

    fn beta(&self) -> f64 {
        self.loss_beta
    }

    fn grow(
        &mut self,
        cwnd: ByteCount,
        acked: ByteCount,
        scale: f64,
        ack: &AckBatch,
        env: &Env<'_>,
    ) -> ByteCount {
        let round = ack.round.count;
        self.since.get_or_insert(round);
        let distance = ack.rtt.known_smoothed().map_or(1.0, |rtt| {
            // A window of real round-trip time r stands for one of r/v of the virtual window, and
            // is passed v/r times as often.
            let ratio = self.virtual_rtt(rtt, round).map_or(1.0, |virtual_rtt| {
                rtt.as_secs_f64() / virtual_rtt.as_secs_f64()
            });
            ratio * ratio
        });
        let window = (cwnd.get() as f64 + self.fraction).max(1.0);
        let mds = env.max_datagram_size.get() as f64;
        let next = window + scale * distance * mds * acked.get() as f64 / window;
        self.fraction = next.fract();
        ByteCount::new(next as u64).max(cwnd)
    }

    fn on_reduction(&mut self, _cwnd: ByteCount) {
        self.fraction = 0.0;
    }

    fn on_slow_start_exit(&mut self, _cwnd: ByteCount) {
        self.fraction = 0.0;
    }

    fn reset(&mut self) {
        self.since = None;
        self.fraction = 0.0;
    }

    fn pause(&mut self, _now: Instant) {}

    fn on_max_datagram_size_change(&mut self, _env: &Env<'_>) {}

    fn details(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
