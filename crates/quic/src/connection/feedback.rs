//! Feedback between policies: the peer's messages to every policy and to the application, and when this
//! end's policy is asked for messages.

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::frame::Feedback;

use crate::error::TransportError;
use crate::feedback_exchange;
use crate::policy::{Occasion, ReceivedFeedback};

use super::Connection;
use crate::events::Event;

impl Connection {
    /// The newest feedback of the peer that was not read yet, one message of each kind at most;
    /// [`Event::FeedbackReceived`] says that there is some. Nothing arrives unless
    /// [`TransportConfig::max_feedback_size`](crate::TransportConfig::max_feedback_size) is set.
    pub fn recv_feedback(&mut self) -> Option<ReceivedFeedback> {
        self.policies.feedback.as_mut()?.read()
    }

    /// A FEEDBACK frame arrived on `path`.
    pub(super) fn on_feedback(
        &mut self,
        now: Instant,
        path: PathId,
        frame: &Feedback<'_>,
    ) -> Result<(), TransportError> {
        let rtt = self.paths.get(path).map(|path| path.recovery.rtt());
        let age = rtt.map_or_else(Default::default, |rtt| rtt.smoothed / 2);
        let Some(exchange) = self.policies.feedback.as_deref_mut() else {
            return Err(feedback_exchange::not_accepted());
        };
        let had_unread = exchange.unread() > 0;
        let Some(message) = exchange.on_frame(now, path, age, frame)? else {
            return Ok(());
        };
        if !had_unread {
            self.outbox.event(Event::FeedbackReceived);
        }
        let rng = &mut self.identity.random.generator;
        for (path, rate) in exchange.external_rates() {
            if let Some(path) = self.paths.get_mut(path) {
                path.recovery.on_external_rate(now, &rate, rng);
            }
        }
        for path in self.paths.iter_mut() {
            if let Some(judgement) = &mut path.recovery.loss_judgement {
                judgement.on_feedback(now, &message);
            }
        }
        self.policies.on_feedback(now, &message);
        self.consult_reinjector(now, Occasion::Feedback);
        Ok(())
    }

    /// When the feedback policy asks to be called; it is not before the handshake is complete.
    pub(super) fn feedback_deadline(&self) -> Option<Instant> {
        let exchange = self.policies.feedback.as_ref()?;
        exchange.deadline().filter(|_| self.handshake.is_complete())
    }

    /// Asks the policy what the peer is to be sent.
    pub(super) fn poll_feedback(&mut self, now: Instant) {
        if self.handshake.is_complete() {
            self.policies
                .poll_feedback(now, &self.paths, &mut self.monitor);
        }
    }
}
