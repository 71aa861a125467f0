//! The server's end: rate and queue of the tunnel for the congestion controller.

use swiftwater_congestion::ExternalRate;
use swiftwater_quic::policy::{
    FeedbackPolicy, Hints, OutgoingFeedback, PathView, ReceivedFeedback,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{Instant, PathId};

use super::message::TeccMessage;
use crate::feedback::FeedbackFactory;

/// Parameters of [`TeccFeedback`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TeccFeedbackConfig {
    /// The congestion controller is given the rate; default on.
    pub rate: bool,
}

impl Default for TeccFeedbackConfig {
    fn default() -> Self {
        Self { rate: true }
    }
}

tunable!(TeccFeedbackConfig {
    "rate" => rate, "give the tunnel's rate to the congestion controller";
});

impl FeedbackFactory for TeccFeedbackConfig {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(TeccFeedback::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct TeccFeedback {
    config: TeccFeedbackConfig,
    rate: Option<(PathId, ExternalRate)>,
}

impl TeccFeedback {
    /// No message came so far.
    pub fn new(config: TeccFeedbackConfig) -> Self {
        Self { config, rate: None }
    }
}

impl FeedbackPolicy for TeccFeedback {
    fn poll(
        &mut self,
        _now: Instant,
        _paths: &[PathView],
        _hints: &Hints,
        _out: &mut Vec<OutgoingFeedback>,
    ) {
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &ReceivedFeedback) {
        let Some(message) = TeccMessage::decode(feedback).filter(|_| self.config.rate) else {
            return;
        };
        let age = message.age.saturating_add(feedback.age);
        let mut rate = ExternalRate::new(message.rate, message.queue, age);
        rate.interval = message.interval();
        rate.repair_time = message.repair_time();
        rate.app_limited = message.flags.app_limited;
        rate.fell = message.flags.bandwidth_drop;
        rate.congestion = message.flags.congestion;
        self.rate = Some((feedback.path, rate));
    }

    fn poll_external_rate(&mut self) -> Option<(PathId, ExternalRate)> {
        self.rate.take()
    }
}
