//! Priorities of requests (RFC 9218): those that a client signals and those that a server applies.

use swiftwater_quic as quic;
use swiftwater_units::{Dir, Instant, Side, StreamId};

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::{Fault, SendError};
use crate::h3::event::Event;
use crate::h3::priority::{self, Priority};

impl Connection {
    /// Sets a request's priority. A client sends PRIORITY_UPDATE and applies the priority to the
    /// request's content; a server applies it to the response, and from then on ignores the client's
    /// signals for this request.
    pub fn set_priority(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        priority: Priority,
    ) -> Result<(), SendError> {
        let request = self.requests.get_mut(id).ok_or(SendError::Closed)?;
        request.priority = priority;
        // Fails only where nothing is left to send.
        let _ = quic.send_stream(id).set_priority(priority.for_transport());
        if self.side.is_client() {
            priority::put_update(self.own.control.out(), id.get(), priority);
            self.flush_own_streams(now, quic);
        } else {
            request.own_priority = true;
        }
        Ok(())
    }

    /// The priority that applies to a request; `None` if there is no such request.
    pub fn priority(&self, id: StreamId) -> Option<Priority> {
        self.requests.get(id).map(|request| request.priority)
    }

    pub(super) fn on_priority_update(
        &mut self,
        quic: &mut quic::Connection,
        id: u64,
        priority: Priority,
    ) -> Result<(), Fault> {
        self.reports.stats.priority_updates += 1;
        let id = StreamId::from_wire(id);
        if id.dir() != Dir::Bi || id.initiator() != Side::Client {
            let reason = "PRIORITY_UPDATE for a stream that is not a request";
            return Err(Fault::connection(Code::ID_ERROR, reason));
        }
        if id.index() >= quic.permitted_streams(Dir::Bi) {
            let reason = "PRIORITY_UPDATE for a stream beyond the limit";
            return Err(Fault::connection(Code::ID_ERROR, reason));
        }
        let request = self.requests.get(id);
        let reported = request.map(|request| request.reported);
        if reported == Some(true) {
            self.apply_priority(quic, id, priority);
            self.report(Event::Priority { id, priority });
            return Ok(());
        }
        let room = self.priorities.len() < self.config.limits.max_early_priorities;
        // A request that is already complete needs no priority.
        let awaited = reported.is_some() || !self.shutdown.has_come(id);
        if awaited && (room || self.priorities.contains_key(&id)) {
            self.priorities.insert(id, priority);
        }
        Ok(())
    }

    /// A client's signal, in the request's head or in a PRIORITY_UPDATE.
    fn apply_priority(&mut self, quic: &mut quic::Connection, id: StreamId, priority: Priority) {
        if let Some(request) = self.requests.get_mut(id)
            && !request.own_priority
        {
            request.priority = priority;
            let _ = quic.send_stream(id).set_priority(priority.for_transport());
        }
    }

    /// The head of a request was received: an earlier PRIORITY_UPDATE takes precedence over its
    /// Priority field (RFC 9218, section 7).
    pub(super) fn begin_priority(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        head: &http::HeaderMap,
    ) {
        let update = self.priorities.remove(&id);
        let wish = update.or_else(|| Priority::from_headers(head));
        self.apply_priority(quic, id, wish.unwrap_or_default());
    }
}
