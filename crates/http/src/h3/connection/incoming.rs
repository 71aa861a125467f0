//! Reception of request streams: reports heads as events and treats malformed ones (RFC 9114,
//! sections 4.1 and 4.1.2).

use bytes::Bytes;
use http::{Response, StatusCode};
use swiftwater_quic as quic;
use swiftwater_units::{Dir, Instant, StreamId};

use super::Connection;
use super::messages::is_session;
use super::requests::Request;
use crate::h3::code::Code;
use crate::h3::error::{BodyError, Fault};
use crate::h3::event::Event;
use crate::h3::fields::{
    ConnectProtocol, request_from_fields, response_from_fields, response_to_fields,
    trailers_from_fields,
};
use crate::h3::receiving::{Progress, Pulled, Receives};
use crate::qpack::{Decoded, Field};

/// Most content, bytes, that is reported with the head of its message if it arrived together with it, up to the end.
/// It takes memory outside the transport's windows: this much for each request that the limit of streams permits, less
/// than the head may take.
const SHORT_CONTENT: usize = 4096;

impl Connection {
    pub(super) fn accept_requests(&mut self, now: Instant, quic: &mut quic::Connection) {
        // A closed connection accepts no further requests: they could not be answered.
        while self.reports.fault.is_none()
            && quic.close_reason().is_none()
            && let Some(id) = quic.accept(Dir::Bi)
        {
            if self.side.is_client() && self.offers_sessions() {
                self.expect_session_stream(now, quic, id);
                continue;
            }
            if self.side.is_client() {
                // RFC 9114, section 6.1.
                let reason = "a bidirectional stream of a server";
                let fault = Fault::connection(Code::STREAM_CREATION_ERROR, reason);
                return self.fail(now, quic, fault);
            }
            if !self.shutdown.admit(id) {
                self.reports.stats.requests_rejected += 1;
                self.priorities.remove(&id);
                refuse(quic, id, Code::REQUEST_REJECTED);
                continue;
            }
            let request = Request::received(self.offers_sessions());
            self.requests.insert(id, request);
            self.read_head(now, quic, id);
            // Most heads arrive in one piece.
            if let Some(timeout) = self.config.limits.head_timeout
                && self.requests.get(id).is_some_and(Request::awaits_head)
            {
                self.requests.await_head(id, now + timeout);
            }
        }
    }

    pub(super) fn on_readable(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId) {
        let Some(request) = self.requests.get(id) else {
            // Possibly a server's stream whose type was not received yet.
            return self.read_peer_stream(now, quic, id);
        };
        match request.receiving.progress {
            Progress::Head => self.read_head(now, quic, id),
            Progress::HeadBlocked | Progress::TrailersBlocked | Progress::Over => {}
            Progress::Content | Progress::Trailers(_) | Progress::AfterTrailers => {
                self.report(Event::Readable { id });
            }
        }
    }

    /// Reads until the final head is complete or more data are needed. Each iteration consumes
    /// bytes, ends the request or returns.
    fn read_head(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId) {
        while self.reports.fault.is_none()
            && let Some(request) = self.requests.get_mut(id)
            && matches!(request.receiving.progress, Progress::Head)
        {
            if quic.is_handshaking() && quic.recv_stream(id).is_early_data() {
                request.early = true;
            }
            let pulled = request.receiving.pull(quic, id, &self.config.limits);
            match pulled {
                Ok(Pulled::Section(section)) => match self.compression.decode(id, &section) {
                    Ok(decoded) => self.on_head(now, quic, id, decoded),
                    Err(fault) => self.fail(now, quic, fault),
                },
                Ok(Pulled::SectionTooLarge) => self.on_too_large(now, quic, id),
                Ok(Pulled::SessionStream(session)) => {
                    self.requests.remove(id);
                    let result = self.on_session_stream(quic, session, id);
                    self.check(now, quic, result);
                }
                // On a closed connection the request keeps its state until the end is reported.
                Ok(Pulled::Blocked | Pulled::Content(_) | Pulled::End)
                | Err(BodyError::Closed | BodyError::ConnectionLost(_)) => return,
                Err(error) => self.on_read_error(now, quic, id, &error),
            }
        }
    }

    /// A section that was blocked on the QPACK table is decoded.
    pub(super) fn on_unblocked(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        decoded: Decoded,
    ) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        match request.receiving.progress {
            Progress::HeadBlocked => {
                request.receiving.progress = Progress::Head;
                self.on_head(now, quic, id, decoded);
                self.read_head(now, quic, id);
            }
            Progress::TrailersBlocked => match self.on_trailers(id, decoded) {
                Ok(()) => self.report(Event::Readable { id }),
                Err(error) => self.on_read_error(now, quic, id, &error),
            },
            _ => {}
        }
    }

    /// A head was decoded, or is blocked.
    fn on_head(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        decoded: Decoded,
    ) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        self.reports.stats.sections_received += 1;
        let fields = match decoded {
            Decoded::Fields(fields) => fields,
            Decoded::Blocked => {
                self.reports.stats.sections_blocked += 1;
                request.receiving.progress = Progress::HeadBlocked;
                return;
            }
            Decoded::TooLarge(_) => return self.on_too_large(now, quic, id),
        };
        let result = match &request.receiving.receives {
            Receives::Request => self.on_request(quic, id, fields),
            Receives::Response(_) => self.on_response(quic, id, fields),
        };
        if let Err(error) = result {
            self.on_read_error(now, quic, id, &error);
        }
        self.forget_if_over(quic, id);
    }

    fn on_request(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        fields: Vec<Field>,
    ) -> Result<(), BodyError> {
        let (head, declared) = request_from_fields(fields)?;
        let Some(request) = self.requests.get_mut(id) else {
            return Ok(());
        };
        request.is_connect = head.method == http::Method::CONNECT;
        let protocol = head.extensions.get::<ConnectProtocol>();
        if protocol.is_some() && !self.config.enable_connect_protocol {
            return Err(Fault::malformed(":protocol without negotiated extended CONNECT").into());
        }
        let is_session = self.config.offers_sessions() && is_session(&head);
        request.receiving.is_tunnel = request.is_connect;
        let declared = declared.filter(|_| !request.is_connect);
        request.receiving.begin_content(declared);
        self.requests.head_came(id);
        let content = self.read_short(quic, id)?;
        if is_session && !self.admit_session() {
            self.reports.stats.requests_rejected += 1;
            let reason = "too many sessions";
            return Err(Fault::stream(Code::REQUEST_REJECTED, reason).into());
        }
        let Some(request) = self.requests.get_mut(id) else {
            return Ok(());
        };
        request.reported = true;
        request.is_session = is_session;
        let early = request.early;
        self.reports.stats.requests += 1;
        self.begin_priority(quic, id, &head.headers);
        self.report(Event::Request {
            id,
            head: Box::new(head),
            early,
            end: content.is_some(),
            content: content.unwrap_or_default(),
        });
        for payload in self.early_datagrams.take(id) {
            self.report(Event::Datagram { id, payload });
        }
        if is_session {
            self.release_session_streams(id);
        }
        Ok(())
    }

    fn on_response(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        fields: Vec<Field>,
    ) -> Result<(), BodyError> {
        let Some(request) = self.requests.get_mut(id) else {
            return Ok(());
        };
        let Receives::Response(method) = &request.receiving.receives else {
            return Ok(());
        };
        let (head, declared) = response_from_fields(fields, method)?;
        let head = Box::new(head);
        if head.status.is_informational() {
            self.report(Event::Informational { id, head });
            return Ok(());
        }
        request.receiving.is_tunnel = request.is_connect && head.status.is_success();
        request.receiving.begin_content(declared);
        let content = self.read_short(quic, id)?;
        self.reports.stats.responses += 1;
        self.report(Event::Response {
            id,
            head,
            end: content.is_some(),
            content: content.unwrap_or_default(),
        });
        Ok(())
    }

    /// The content of a message whose head was just read, if the message is complete and short.
    fn read_short(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
    ) -> Result<Option<Bytes>, BodyError> {
        let Some(request) = self.requests.get_mut(id) else {
            return Ok(None);
        };
        // What a CONNECT carries is not content.
        let limit = if request.is_connect { 0 } else { SHORT_CONTENT };
        let content = request.receiving.read_short(quic, id, limit)?;
        let length = content.as_ref().map_or(0, Bytes::len);
        self.reports.stats.content_received += length as u64;
        Ok(content)
    }

    /// Trailers were decoded, or are blocked.
    pub(super) fn on_trailers(&mut self, id: StreamId, decoded: Decoded) -> Result<(), BodyError> {
        let request = self.requests.get_mut(id).ok_or(BodyError::Closed)?;
        self.reports.stats.sections_received += 1;
        request.receiving.progress = match decoded {
            Decoded::Fields(fields) => Progress::Trailers(trailers_from_fields(fields)?),
            Decoded::Blocked => {
                self.reports.stats.sections_blocked += 1;
                Progress::TrailersBlocked
            }
            Decoded::TooLarge(_) => {
                self.reports.stats.sections_too_large += 1;
                let reason = "trailers are too large";
                return Err(Fault::stream(Code::EXCESSIVE_LOAD, reason).into());
            }
        };
        Ok(())
    }

    /// A head exceeds the limits. A server answers 431; a client cancels the request (RFC 9114,
    /// section 4.2.2).
    fn on_too_large(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId) {
        self.reports.stats.sections_too_large += 1;
        if self.side.is_client() {
            let fault = Fault::stream(Code::EXCESSIVE_LOAD, "the response's head is too large");
            return self.on_read_error(now, quic, id, &BodyError::Fault(fault));
        }
        self.requests.head_came(id);
        self.stop_reading(quic, id, Code::NO_ERROR);
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        // A peer that does not accept even this response gets none.
        let sent = response_to_fields(&head)
            .and_then(|fields| self.compression.encode(id, &fields))
            .is_ok_and(|section| {
                let sending = &mut request.sending;
                let result = sending.head(quic, id, &section, &mut Bytes::new());
                result.and_then(|_| sending.end(quic, id)).is_ok()
            });
        if !sent {
            self.abandon(quic, id, Code::EXCESSIVE_LOAD);
        }
    }

    /// Rejects requests whose heads take too long: they were not processed.
    pub(super) fn refuse_slow_heads(&mut self, now: Instant, quic: &mut quic::Connection) {
        while let Some(id) = self.requests.pop_late(now) {
            self.reports.stats.requests_rejected += 1;
            self.abandon(quic, id, Code::REQUEST_REJECTED);
        }
    }
}

/// Stops and resets a stream that belongs to no request.
pub(super) fn refuse(quic: &mut quic::Connection, id: StreamId, code: Code) {
    let _ = quic.recv_stream(id).stop(code.0);
    let _ = quic.send_stream(id).reset(code.0);
}
