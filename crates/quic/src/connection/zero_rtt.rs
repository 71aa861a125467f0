//! Early data: what a client sends before the handshake is complete (0-RTT), and what a server does
//! (0.5-RTT) (RFC 9000, sections 7.4.1 and 12.5; RFC 9001, sections 4.6, 4.9.3 and 5.6).

use swiftwater_units::Instant;

use crate::crypto::Session;
use crate::establishment::EarlyDataExchange;
use crate::observe::EarlyDataOutcome;

use super::Connection;

impl Connection {
    /// True while a client may send before the handshake is complete: it resumes a session that
    /// permits early data, and the server has not answered yet.
    ///
    /// An attacker that records such data can replay them (RFC 9001, section 9.2): send only what may
    /// happen twice.
    pub fn may_send_early_data(&self) -> bool {
        self.handshake.may_send_early_data() && self.lifecycle.is_open()
    }

    /// What became of early data; `None` if there were none, and on a client until the server has
    /// answered.
    pub fn early_data(&self) -> Option<EarlyDataOutcome> {
        self.establishment.early_data.outcome()
    }

    /// True once the peer is known to resume an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.handshake.session().is_some_and(Session::is_resumed)
    }

    /// The parts that early data concern.
    pub(super) fn early_data_exchange(&mut self, now: Instant) -> EarlyDataExchange<'_> {
        EarlyDataExchange {
            now,
            handshake: &mut self.handshake,
            early_data: &mut self.establishment.early_data,
            path: self.paths.initial_mut(),
            streams: &mut self.streams,
            control: &mut self.control,
            datagrams: &mut self.datagrams,
            policies: &mut self.policies,
            monitor: &mut self.monitor,
            outbox: &mut self.outbox,
        }
    }
}
