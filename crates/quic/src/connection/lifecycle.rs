//! How a connection ends: by an error, by the application, by the peer, or by the idle timeout (RFC 9000, section 10).

use std::time::Duration;

use swiftwater_units::Instant;

use crate::error::TransportError;
use crate::observe::Observation;

use crate::events::{EndpointEvent, Event};
use crate::lifecycle::Termination;

use super::Connection;

/// Probe timeouts for which closing and draining last (RFC 9000, section 10.2).
const CLOSING_PTOS: u32 = 3;

impl Connection {
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
        self.terminate(now, Termination::error(error));
    }

    /// Terminates the connection, as far as it has not ended before: data are sent and repaired no more.
    pub(super) fn terminate(&mut self, now: Instant, termination: Termination) {
        let until = now + self.longest_pto() * CLOSING_PTOS;
        if self.lifecycle.is_open() {
            self.policies.copies.clear();
            self.streams.abandon_repairs();
            let (mut fates, _) = self.fates(now);
            fates.report_repairs();
            let reason = termination.reason();
            self.monitor.observe(now, &Observation::Closed { reason });
            self.outbox.event(Event::Closed {
                reason: reason.clone(),
            });
        }
        if self.lifecycle.terminate(termination, until) {
            self.drain();
        }
    }

    /// Closing or draining is over.
    pub(super) fn drain(&mut self) {
        if self.lifecycle.drain() {
            self.outbox.event(Event::Drained);
            self.outbox.endpoint_event(EndpointEvent::Drained);
        }
    }
}
