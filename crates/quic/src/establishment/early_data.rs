//! Early data of a connection: what a client's 0-RTT packets rely on, and what became of them (RFC 9000,
//! sections 7.4.1 and 12.5; RFC 9001, section 4.6).

use swiftwater_units::Instant;
use swiftwater_wire::{Frame, TransportParameters, frame};

use crate::monitor::Monitor;
use crate::observe::EarlyDataOutcome;
use crate::observe::Observation;

/// Early data of a connection.
#[derive(Debug, Default)]
pub(crate) struct EarlyData {
    /// What a client keeps to until the server has answered.
    pub(crate) offered: Option<Box<Offer>>,
    outcome: Option<EarlyDataOutcome>,
}

/// What a client's early data rely on.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The server's parameters of the resumed session.
    pub(crate) parameters: TransportParameters,
    /// The application protocol that they are written for.
    pub(crate) alpn: Option<Vec<u8>>,
    /// The server doesn't support the version that they were sent with.
    pub(crate) withdrawn: bool,
}

impl EarlyData {
    /// What became of them; `None` while that is not known.
    pub(crate) fn outcome(&self) -> Option<EarlyDataOutcome> {
        self.outcome
    }

    /// The server has accepted or rejected them.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        outcome: EarlyDataOutcome,
        monitor: &mut Monitor,
    ) {
        self.outcome = Some(outcome);
        monitor.observe(now, &Observation::EarlyData { outcome });
    }

    /// A server that doesn't accept early data received a packet of them.
    pub(crate) fn on_packet_refused(&mut self, now: Instant, monitor: &mut Monitor) {
        if self.outcome.is_none() {
            self.settle(now, EarlyDataOutcome::Rejected, monitor);
        }
    }
}

/// The frames that packets of early data may carry (RFC 9000, sections 12.4 and 12.5).
pub(crate) fn is_allowed(frame: &Frame<'_>) -> bool {
    !matches!(
        frame,
        Frame::Ack(_)
            | Frame::Crypto(_)
            | Frame::NewToken { .. }
            | Frame::PathResponse { .. }
            | Frame::RetireConnectionId { .. }
            | Frame::HandshakeDone
            | Frame::Feedback(_)
            | Frame::NewConnectionId(frame::NewConnectionId { path: Some(_), .. })
            | Frame::PathAbandon { .. }
            | Frame::PathStatus { .. }
            | Frame::MaxPathId { .. }
            | Frame::PathsBlocked { .. }
            | Frame::PathCidsBlocked { .. }
    )
}
