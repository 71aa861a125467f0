//! Requests that end early by RESET_STREAM, STOP_SENDING, a malformed message or refusal (RFC 9114,
//! section 4.1.1).

use swiftwater_quic as quic;
use swiftwater_units::{Instant, StreamId};

use super::Connection;
use super::incoming::refuse;
use crate::h3::code::Code;
use crate::h3::error::{BodyError, Fault};
use crate::h3::event::Event;
use crate::h3::receiving::Progress;

impl Connection {
    /// Reading a request stream failed: the stream or the connection is closed.
    pub(super) fn on_read_error(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        error: &BodyError,
    ) {
        match error {
            BodyError::Fault(fault) if fault.ends_connection => {
                self.fail(now, quic, *fault);
                if self.reports.closed {
                    self.requests.remove(id);
                }
            }
            BodyError::Fault(fault) => {
                if fault.code == Code::MESSAGE_ERROR {
                    self.reports.stats.malformed += 1;
                }
                self.end_with(quic, id, fault.code, fault.code);
            }
            BodyError::Reset(code) => {
                self.count_cancelled(now, quic, id);
                if self.is_answered(id) {
                    self.end_reading(quic, id, *code);
                } else {
                    self.end_with(quic, id, *code, Code::REQUEST_CANCELLED);
                }
            }
            BodyError::Closed | BodyError::ConnectionLost(_) if self.reports.closed => {
                self.requests.remove(id);
            }
            BodyError::Closed | BodyError::ConnectionLost(_) => {}
        }
    }

    /// The peer sent STOP_SENDING for this end's message.
    pub(super) fn on_stopped(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        code: Code,
    ) {
        if self.is_critical(id) {
            let reason = "a control or QPACK stream was stopped";
            let fault = Fault::connection(Code::CLOSED_CRITICAL_STREAM, reason);
            return self.fail(now, quic, fault);
        }
        self.count_cancelled(now, quic, id);
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.sending.give_up();
        if !request.reported {
            return self.end_with(quic, id, code, Code::REQUEST_CANCELLED);
        }
        self.report(Event::Stopped { id, code });
        self.forget_if_over(quic, id);
    }

    /// A client cancelled a request that was not answered yet: cheap for the client, so its rate is
    /// limited.
    fn count_cancelled(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        if self.side.is_client() || request.sending.is_complete() {
            return;
        }
        if !self.budgets.cancelled.spend(now) {
            let reason = "too many requests were cancelled";
            self.fail(now, quic, Fault::connection(Code::EXCESSIVE_LOAD, reason));
        }
    }

    /// True if a server's response is complete and being sent.
    fn is_answered(&self, id: StreamId) -> bool {
        let request = self.requests.get(id);
        self.side.is_server()
            && request
                .is_some_and(|request| request.sending.is_complete() && !request.sending.is_over())
    }

    /// The client cancelled the rest of a request that was already answered: the response may still
    /// be needed.
    fn end_reading(&mut self, quic: &mut quic::Connection, id: StreamId, code: Code) {
        self.stop_reading(quic, id, code);
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut request.reported) {
            self.report(Event::Reset {
                id,
                code,
                unprocessed: false,
            });
        }
    }

    /// Cancels a request with code `ours`, and reports `code` to the application if the request was
    /// reported before.
    pub(super) fn end_with(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        code: Code,
        ours: Code,
    ) {
        let reported = self
            .requests
            .get(id)
            .is_some_and(|request| request.reported);
        self.abandon(quic, id, ours);
        if reported {
            let unprocessed = self.side.is_client() && code == Code::REQUEST_REJECTED;
            self.report(Event::Reset {
                id,
                code,
                unprocessed,
            });
        }
    }

    /// Cancels both directions of a request with `code` and removes it.
    pub(super) fn abandon(&mut self, quic: &mut quic::Connection, id: StreamId, code: Code) {
        self.stop_reading(quic, id, code);
        let Some(mut request) = self.requests.remove(id) else {
            return;
        };
        if !request.sending.is_over() {
            request.sending.give_up();
            refuse(quic, id, code);
        }
        self.reports.stats.requests_reset += 1;
        self.priorities.remove(&id);
        self.on_request_gone(quic, id, &request);
    }

    /// Sends STOP_SENDING for the peer's message.
    pub(super) fn stop_reading(&mut self, quic: &mut quic::Connection, id: StreamId, code: Code) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if request.receiving.may_hold_section() {
            self.compression.abandon_reading(id);
        }
        if !request.receiving.is_over() {
            request.receiving.progress = Progress::Over;
            let _ = quic.recv_stream(id).stop(code.0);
        }
        self.requests.head_came(id);
    }

    /// Removes a request that is complete in both directions.
    pub(super) fn forget_if_over(&mut self, quic: &mut quic::Connection, id: StreamId) {
        if let Some(request) = self.requests.remove_if_over(id) {
            self.on_request_gone(quic, id, &request);
        }
    }
}
