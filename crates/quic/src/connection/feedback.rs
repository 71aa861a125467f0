//! Feedback between policies: the peer's messages to every policy and to the application.

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

    /// Gives the feedback policy what an element on the path says about it, such as a tunnel that carries the
    /// packets of this connection
    /// ([`FeedbackPolicy::on_path_report`](crate::policy::FeedbackPolicy::on_path_report)). Nothing happens without
    /// feedback.
    pub fn on_path_report(&mut self, now: Instant, report: &[u8]) {
        if let Some(exchange) = self.policies.feedback.as_deref_mut() {
            exchange.on_path_report(now, report);
        }
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
                // What waits for a judgement is judged again at once.
                if judgement.judges_packets() {
                    let again = |at: Instant| at.min(now);
                    path.space.loss_time = path.space.loss_time.map(again);
                }
            }
        }
        self.policies.on_feedback(now, &message);
        self.consult_reinjector(now, Occasion::Feedback);
        Ok(())
    }
}
