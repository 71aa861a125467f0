//! What the sender tells the player, the loop from server to client of the Chorus paper: share and facts of each path,
//! every 200 ms while a response is sent, so that the player can predict the throughput of the next one.
//!
//! The seam shows no end of a response. It counts as being sent while more is in flight than two datagrams: this policy's
//! own messages are less.

use std::time::Duration;

use swiftwater_quic::policy::{
    FeedbackPolicy, Hints, OutgoingFeedback, PathShare, PathShares, PathView, QoeSignal,
    ReceivedFeedback, ResponseStart,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{Bandwidth, Instant};

use super::path_rate::{PathRates, RateSource};
use super::shares::proportional;
use super::{is_shared, new_response};
use crate::feedback::FeedbackFactory;

/// Bytes in flight above which a response is being sent.
const IDLE: u64 = 2_400;
/// Largest payload of a message.
const MAX_PAYLOAD: usize = 64;

/// Parameters of [`ChorusFeedback`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChorusFeedbackConfig {
    /// Time between two messages, 10 ms to 6 s; default 200 ms. The paper finds 200 ms to 1 s best.
    pub interval: Duration,
    /// Time after the end of a response during which messages go on, 0 to 60 s; default 1 s.
    pub linger: Duration,
    /// What bandwidths are read from; default [`RateSource::Delivery`].
    pub rate: RateSource,
}

impl Default for ChorusFeedbackConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(200),
            linger: Duration::from_secs(1),
            rate: RateSource::default(),
        }
    }
}

tunable!(ChorusFeedbackConfig {
    "interval" => interval in Duration::from_millis(10)..=Duration::from_secs(6), "time between two messages";
    "linger" => linger in Duration::ZERO..=Duration::from_secs(60), "time after a response during which they go on";
    "rate" => rate, "what bandwidths are read from: delivery or window";
});

impl FeedbackFactory for ChorusFeedbackConfig {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(ChorusFeedback::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ChorusFeedback {
    config: ChorusFeedbackConfig,
    rates: PathRates,
    response: Option<ResponseStart>,
    /// The newest chunk that the player named.
    chunk: u64,
    /// No message leaves after this time; `None` before the first response.
    until: Option<Instant>,
    next_at: Instant,
}

impl ChorusFeedback {
    /// No response was announced yet.
    pub fn new(config: ChorusFeedbackConfig) -> Self {
        Self {
            config,
            rates: PathRates::new(config.rate),
            response: None,
            chunk: 0,
            until: None,
            next_at: Instant::ZERO,
        }
    }

    fn shares(&self, paths: &[PathView]) -> PathShares {
        let shared: Vec<_> = paths.iter().filter(|path| is_shared(path)).collect();
        let rates: Vec<_> = shared.iter().map(|path| self.rates.rate(path)).collect();
        let shares = proportional(&rates);
        let share = |((path, rate), share): ((&&PathView, f64), f64)| PathShare {
            path: path.id,
            share,
            rate: Bandwidth::from_bps((rate * 8.0) as u64),
            rtt: path.smoothed_rtt,
        };
        PathShares {
            chunk: self.chunk,
            paths: shared.iter().zip(rates).zip(shares).map(share).collect(),
        }
    }
}

impl FeedbackPolicy for ChorusFeedback {
    fn poll(
        &mut self,
        now: Instant,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<OutgoingFeedback>,
    ) {
        self.rates.observe(now, paths);
        let response = new_response(hints, self.response.as_ref());
        let in_flight: u64 = paths.iter().map(|path| path.bytes_in_flight.get()).sum();
        let is_sent = self.response.is_some() && in_flight > IDLE;
        if response.is_some() || is_sent {
            self.until = Some(now + self.config.linger);
        }
        self.response = response.or(self.response);
        self.until = self.until.filter(|until| *until >= now);
        if now < self.next_at || self.until.is_none() {
            return;
        }
        self.next_at = now + self.config.interval;
        let shares = self.shares(paths);
        if shares.paths.is_empty() {
            return;
        }
        let signal = QoeSignal::Shares(shares);
        if let Some(payload) = signal.encode(MAX_PAYLOAD) {
            out.push(OutgoingFeedback {
                kind: signal.kind(),
                payload,
                ack_eliciting: true,
                urgent: true,
            });
        }
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &ReceivedFeedback) {
        if let Some(QoeSignal::Expectation(expectation)) =
            QoeSignal::decode(feedback.kind, &feedback.payload)
        {
            self.chunk = expectation.chunk;
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.until
            .filter(|until| *until >= self.next_at)
            .map(|_| self.next_at)
    }
}
