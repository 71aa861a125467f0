//! How a connection ends: by an error, by the application, by the peer, or by silence (RFC 9000, section 10).

use std::time::Duration;

use swiftwater_units::{Instant, PathId};

use crate::error::{ConnectionError, TransportError};
use crate::observe::Observation;

use crate::events::{EndpointEvent, Event};
use crate::lifecycle::{CloseFrame, State};

use super::Connection;

impl Connection {
    /// Three probe timeouts: how long closing and draining last (RFC 9000, section 10.2).
    fn closing_period(&self) -> Duration {
        self.longest_pto() * 3
    }

    /// The probe timeout of a path without back-off (RFC 9002, section 6.2.1); the longest of all while the
    /// path is not open.
    pub(super) fn pto(&self, path: PathId) -> Duration {
        let path = self.paths.get(path);
        path.map_or_else(
            || self.longest_pto(),
            |path| path.pto(self.peer_max_ack_delay()),
        )
    }

    /// The longest probe timeout of all paths, for what concerns the connection as a whole.
    pub(super) fn longest_pto(&self) -> Duration {
        self.paths.longest_pto(self.peer_max_ack_delay())
    }

    /// The delay that the peer may add to acknowledgements of 1-RTT packets.
    pub(super) fn peer_max_ack_delay(&self) -> Duration {
        self.policies.peer_max_ack_delay(&self.handshake)
    }

    /// Closes because of `error`, with a CONNECTION_CLOSE.
    pub(super) fn fail(&mut self, now: Instant, error: TransportError) {
        let reason = ConnectionError::Transport(error.clone());
        self.start_closing(now, CloseFrame::Transport(error), reason);
    }

    /// Closes without a fault of the peer's.
    pub(super) fn close_with(
        &mut self,
        now: Instant,
        error: TransportError,
        reason: ConnectionError,
    ) {
        self.start_closing(now, CloseFrame::Transport(error), reason);
    }

    /// Closes for the application, with a CONNECTION_CLOSE.
    pub(super) fn close_for_application(&mut self, now: Instant, code: u64, reason: &[u8]) {
        let frame = CloseFrame::Application {
            code,
            reason: reason.to_vec(),
        };
        self.start_closing(now, frame, ConnectionError::LocallyClosed { code });
    }

    fn start_closing(&mut self, now: Instant, frame: CloseFrame, reason: ConnectionError) {
        if !self.lifecycle.is_open() {
            return;
        }
        let until = now + self.closing_period();
        self.set_closed(now, reason);
        self.lifecycle.start_closing(frame, until);
    }

    /// The peer closed or reset: sends nothing any more.
    pub(super) fn start_draining(&mut self, now: Instant, reason: ConnectionError) {
        match &self.lifecycle.state {
            State::Open => {
                let until = now + self.closing_period();
                self.set_closed(now, reason);
                self.lifecycle.state = State::Draining { until };
            }
            State::Closing(closing) => {
                let until = closing.until;
                self.lifecycle.state = State::Draining { until };
            }
            State::Draining { .. } | State::Drained => {}
        }
    }

    /// Ends at once and silently, as on an idle timeout.
    pub(super) fn close_silently(&mut self, now: Instant, reason: ConnectionError) {
        self.set_closed(now, reason);
        self.drain();
    }

    fn set_closed(&mut self, now: Instant, reason: ConnectionError) {
        if self.lifecycle.reason.is_some() {
            return;
        }
        self.abandon_repairs(now);
        self.monitor
            .observe(now, &Observation::Closed { reason: &reason });
        let closed = reason.clone();
        self.outbox.event(Event::Closed { reason: closed });
        self.lifecycle.reason = Some(Box::new(reason));
    }

    /// Closing or draining is over.
    pub(super) fn drain(&mut self) {
        if !self.lifecycle.is_drained() {
            self.lifecycle.state = State::Drained;
            self.outbox.event(Event::Drained);
            self.outbox.endpoint_event(EndpointEvent::Drained);
        }
    }

    /// The connection closes: data are sent and repaired no more.
    fn abandon_repairs(&mut self, now: Instant) {
        self.policies.reinjections.clear();
        self.streams.abandon_repairs();
        let (mut fates, _) = self.fates(now);
        fates.report_repairs();
    }
}
