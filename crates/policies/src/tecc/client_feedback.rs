//! The client's end: what the tunnel reports, and what became of missing packets, to the server.
//!
//! A message leaves with the next acknowledgement; at once if packets are known to be lost, if the tunnel gave some up
//! or if its rate fell.

use std::time::Duration;

use swiftwater_quic::policy::{
    FeedbackPolicy, Hints, OutgoingFeedback, PathView, ReceivedFeedback,
};
use swiftwater_tecc::{Classifier, LostPackets, TunnelReport};
use swiftwater_tunable::tunable;
use swiftwater_units::{Instant, PacketNumber, PathId};

use super::message::TeccMessage;
use crate::feedback::FeedbackFactory;

/// Round trips for which a loss is repeated: a message may be lost itself.
const MEMORY_RTTS: u32 = 2;

/// Parameters of [`TeccClientFeedback`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TeccClientFeedbackConfig {
    /// Least time between two messages, 1 ms to 1 s; default 5 ms.
    pub min_interval: Duration,
    /// Missing packets are classified; default on. Without, the server learns rate and queue only.
    pub classify: bool,
}

impl Default for TeccClientFeedbackConfig {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_millis(5),
            classify: true,
        }
    }
}

tunable!(TeccClientFeedbackConfig {
    "min-interval" => min_interval in Duration::from_millis(1)..=Duration::from_secs(1), "least time between two messages";
    "classify" => classify, "tell where missing packets were lost";
});

impl FeedbackFactory for TeccClientFeedbackConfig {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(TeccClientFeedback::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct TeccClientFeedback {
    config: TeccClientFeedbackConfig,
    peer_limit: usize,
    classifier: Classifier,
    /// The newest report, and when it came.
    report: Option<(TunnelReport, Instant)>,
    /// It was not passed on yet.
    is_new: bool,
    is_urgent: bool,
    sent_at: Option<Instant>,
    due: Option<Instant>,
}

impl TeccClientFeedback {
    /// No report came so far.
    pub fn new(config: TeccClientFeedbackConfig) -> Self {
        Self {
            config,
            peer_limit: 0,
            classifier: Classifier::new(),
            report: None,
            is_new: false,
            is_urgent: false,
            sent_at: None,
            due: None,
        }
    }

    fn message(&self, now: Instant, report: &TunnelReport, came: Instant) -> TeccMessage {
        let mut lost: Vec<LostPackets> = if self.config.classify {
            // More don't fit; the newest have not been told before.
            self.classifier.lost().take(16).copied().collect()
        } else {
            Vec::new()
        };
        lost.sort_unstable_by_key(|lost| std::cmp::Reverse(lost.last));
        TeccMessage {
            flags: report.flags,
            age: now.saturating_since(came),
            rate: report.rate,
            queue: report.queue,
            smoothed_rtt: report.smoothed_rtt,
            rtt_var: report.rtt_var,
            min_rtt: report.min_rtt,
            settled: self.classifier.settled(),
            lost,
        }
    }
}

impl FeedbackPolicy for TeccClientFeedback {
    fn on_peer_limit(&mut self, size: usize) {
        self.peer_limit = size;
    }

    fn poll(
        &mut self,
        now: Instant,
        paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<OutgoingFeedback>,
    ) {
        let Some((report, came)) = self.report else {
            return;
        };
        let rtt = paths
            .first()
            .map_or(Duration::ZERO, |path| path.smoothed_rtt);
        let found = self.classifier.classify(now, MEMORY_RTTS * rtt);
        self.is_urgent |= found && self.config.classify;
        let is_wanted = self.is_new || self.is_urgent;
        let allowed_at = self.sent_at.map_or(now, |at| at + self.config.min_interval);
        if !is_wanted || allowed_at > now {
            self.due = is_wanted.then_some(allowed_at);
            return;
        }
        self.due = None;
        if let Some(payload) = self.message(now, &report, came).encode(self.peer_limit) {
            out.push(OutgoingFeedback {
                kind: TeccMessage::KIND,
                payload,
                ack_eliciting: false,
                urgent: self.is_urgent,
            });
        }
        (self.is_new, self.is_urgent) = (false, false);
        self.sent_at = Some(now);
    }

    fn on_feedback(&mut self, _now: Instant, _feedback: &ReceivedFeedback) {}

    fn on_packet_received(
        &mut self,
        _now: Instant,
        path: PathId,
        number: PacketNumber,
        tag: Option<u64>,
    ) {
        if path == PathId::ZERO {
            self.classifier.on_packet(number.get(), tag);
        }
    }

    fn on_path_report(&mut self, now: Instant, report: &[u8]) {
        let Ok(report) = TunnelReport::decode(report) else {
            return;
        };
        let newest = self.report.as_ref().map(|(newest, _)| newest);
        if newest.is_some_and(|newest| newest.sequence >= report.sequence) {
            return;
        }
        let before = newest.map_or(0, |newest| newest.abandoned);
        self.is_urgent |= report.flags.bandwidth_drop || report.abandoned > before;
        self.is_new = true;
        self.classifier.on_settled(report.settled);
        self.report = Some((report, now));
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.due
    }
}
