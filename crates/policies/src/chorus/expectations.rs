//! When the player expects responses.

use std::time::Duration;

use swiftwater_quic::policy::{QoeSignal, ReceivedFeedback};

/// Expected time of the response that is being sent, and of the next one, from the request to the last byte.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expectations {
    current: Option<Duration>,
    next: Option<Duration>,
}

impl Expectations {
    /// A message of the player. If a response `has_begun` that has no expected time, it is about that one, else about the
    /// next.
    pub(super) fn on_feedback(&mut self, feedback: &ReceivedFeedback, has_begun: bool) {
        let signal = QoeSignal::decode(feedback.kind, &feedback.payload);
        if let Some(QoeSignal::Expectation(expectation)) = signal {
            let of = if has_begun && self.current.is_none() {
                &mut self.current
            } else {
                &mut self.next
            };
            *of = Some(expectation.expected_time);
        }
    }

    /// The next response begins.
    pub(super) fn start(&mut self) {
        self.current = self.next.take();
    }

    /// Expected time of the response that is being sent; `None` if none is known.
    pub(super) fn current(&self) -> Option<Duration> {
        self.current
    }
}
