//! Application interface for sending and reading messages (RFC 9114, section 4).

use bytes::Bytes;
use http::{HeaderMap, request, response};
use swiftwater_quic as quic;
use swiftwater_units::{Dir, Instant, StreamId};

use super::Connection;
use super::requests::Request;
use crate::h3::code::Code;
use crate::h3::error::{BodyError, HeadError, RequestError, SendError};
use crate::h3::event::Event;
use crate::h3::fields::{
    ConnectProtocol, request_to_fields, response_to_fields, trailers_to_fields,
};
use crate::h3::priority::Priority;
use crate::h3::receiving::{Progress, Pulled};
use crate::h3::webtransport;

/// The next part of a message, as returned by [`Connection::read_body`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MessagePart {
    /// Content, at least one byte.
    Data(Bytes),
    /// The trailers; only the end follows.
    Trailers(HeaderMap),
    /// The message is complete. Returned once.
    End,
    /// No data at present; [`Event::Readable`] follows.
    Blocked,
}

impl Connection {
    /// Sends a request's head, and ends the request if `end`. A Host field replaces the URI's
    /// authority; connection-specific fields of HTTP/1 are left out; a Priority field also applies
    /// to the request's own content. [`ConnectProtocol`] in the extensions makes an extended CONNECT.
    pub fn send_request(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        head: &request::Parts,
        end: bool,
    ) -> Result<StreamId, RequestError> {
        self.send_request_with(now, quic, head, &mut Bytes::new(), end)
    }

    /// As [`Connection::send_request`], with content: consumes what the transport accepts, as [`Connection::write_data`] does,
    /// and ends the request if nothing remains and it is to `end` then.
    pub fn send_request_with(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        head: &request::Parts,
        content: &mut Bytes,
        end: bool,
    ) -> Result<StreamId, RequestError> {
        self.check_request(quic, head)?;
        let fields = request_to_fields(head)?;
        self.compression.check_size(&fields)?;
        let Some(id) = quic.open(Dir::Bi) else {
            self.reports.wants_requests = true;
            return Err(RequestError::Blocked);
        };
        let section = self.compression.encode(id, &fields)?;
        let mut request = Request::sent(head.method.clone());
        if is_session(head) {
            request.is_session = true;
            self.begin_session();
        }
        request.priority = Priority::from_headers(&head.headers).unwrap_or_default();
        let _ = quic
            .send_stream(id)
            .set_priority(request.priority.for_transport());
        // A stream opened just now is writable; only its connection may be closed.
        let taken = request.sending.head(quic, id, &section, content);
        self.reports.stats.content_sent += taken.unwrap_or(0) as u64;
        if end && content.is_empty() {
            let _ = request.sending.end(quic, id);
        }
        // Nothing is read before the server answers: this makes the transport report when it does.
        let _ = quic.recv_stream(id).read_chunk();
        self.requests.insert(id, request);
        self.reports.stats.requests += 1;
        self.wrap_up(now, quic);
        Ok(id)
    }

    fn check_request(
        &self,
        quic: &quic::Connection,
        head: &request::Parts,
    ) -> Result<(), RequestError> {
        if let Some(reason) = quic.close_reason() {
            return Err(reason.clone().into());
        }
        if self.side.is_server() {
            return Err(RequestError::NotClient);
        }
        if self.shutdown.refuses_requests() {
            return Err(RequestError::GoingAway);
        }
        if !self.reports.ready {
            return Err(RequestError::NotReady);
        }
        let protocol = head.extensions.get::<ConnectProtocol>();
        if protocol.is_some() && !self.server_settings().enable_connect_protocol {
            return Err(RequestError::ConnectProtocolUnsupported);
        }
        if is_session(head) {
            self.check_session()?;
        }
        Ok(())
    }

    /// Sends a response's head, and ends the response if `end`. Any number of informational ones
    /// (1xx) may go before the final one. Which responses have no content (to HEAD, 204, 304) is the
    /// caller's responsibility; a client that receives content in one treats the message as
    /// malformed.
    pub fn respond(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        head: &response::Parts,
        end: bool,
    ) -> Result<(), SendError> {
        self.respond_with(now, quic, id, head, &mut Bytes::new(), end)
    }

    /// As [`Connection::respond`], with content, of which an informational response has none: consumes what the transport
    /// accepts, as [`Connection::write_data`] does, and ends the response if nothing remains and it is to `end` then.
    pub fn respond_with(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        head: &response::Parts,
        content: &mut Bytes,
        end: bool,
    ) -> Result<(), SendError> {
        let is_final = !head.status.is_informational();
        if !is_final && end {
            return Err(HeadError::InformationalEnd.into());
        }
        if !is_final && !content.is_empty() {
            return Err(HeadError::InformationalContent.into());
        }
        let fields = response_to_fields(head)?;
        let request = self.requests.get_mut(id).ok_or(SendError::Closed)?;
        request.sending.expect_head()?;
        let section = self.compression.encode(id, &fields)?;
        if is_final {
            let taken = request.sending.head(quic, id, &section, content)?;
            self.reports.stats.responses += 1;
            self.reports.stats.content_sent += taken as u64;
        } else {
            request.sending.informational_head(quic, id, &section)?;
        }
        if end && content.is_empty() {
            request.sending.end(quic, id)?;
        }
        self.wrap_up(now, quic);
        Ok(())
    }

    /// Consumes content from the front of `data` and returns how many bytes. A smaller number than
    /// the length means that the transport's buffer is full, and [`Event::Writable`] follows. At most
    /// 1 KiB beyond the transport's buffer is kept here.
    pub fn write_data(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, SendError> {
        let request = self.requests.get_mut(id).ok_or(SendError::Closed)?;
        let taken = request.sending.content(quic, id, data)?;
        self.reports.stats.content_sent += taken as u64;
        Ok(taken)
    }

    /// True if [`Connection::write_data`] would accept content now; otherwise [`Event::Writable`] follows.
    /// For senders that produce content only when it can be sent.
    pub fn has_room(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
    ) -> Result<bool, SendError> {
        let request = self.requests.get_mut(id).ok_or(SendError::Closed)?;
        request.sending.has_room(quic, id)
    }

    /// Sends trailers; only [`Connection::finish`] may follow.
    pub fn write_trailers(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        trailers: &HeaderMap,
    ) -> Result<(), SendError> {
        let request = self.requests.get_mut(id).ok_or(SendError::Closed)?;
        request.sending.expect_content()?;
        let section = self.compression.encode(id, &trailers_to_fields(trailers))?;
        request.sending.trailers(quic, id, &section)?;
        self.wrap_up(now, quic);
        Ok(())
    }

    /// Ends our message. A server that does not need the rest of the request may follow with
    /// [`Connection::stop`] and H3_NO_ERROR (RFC 9114, section 4.1).
    pub fn finish(&mut self, quic: &mut quic::Connection, id: StreamId) -> Result<(), SendError> {
        let request = self.requests.get_mut(id).ok_or(SendError::Closed)?;
        request.sending.end(quic, id)
    }

    /// Resets this end's message with `code`; the peer's can still be read.
    pub fn reset(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId, code: Code) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if !request.sending.is_over() {
            request.sending.give_up();
            let _ = quic.send_stream(id).reset(code.0);
        }
        self.forget_if_over(quic, id);
        self.wrap_up(now, quic);
    }

    /// Stops reading the peer's message (STOP_SENDING with `code`).
    pub fn stop(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId, code: Code) {
        self.stop_reading(quic, id, code);
        self.forget_if_over(quic, id);
        self.wrap_up(now, quic);
    }

    /// Cancels a request in both directions: [`Code::REQUEST_CANCELLED`] by a client that no longer
    /// needs the response or a server that has begun to process the request,
    /// [`Code::REQUEST_REJECTED`] by a server that has not (RFC 9114, section 4.1.1).
    pub fn cancel(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId, code: Code) {
        self.abandon(quic, id, code);
        self.wrap_up(now, quic);
    }

    /// The next part of the peer's message. Content that is not reported with the head is read from the
    /// transport only here, so flow control limits a peer whose message is not read. For the same reason a reset is reported only
    /// once the data before it were read; a peer that cancels the whole request also stops this end's
    /// message, which is reported at once.
    pub fn read_body(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
    ) -> Result<MessagePart, BodyError> {
        let body = self.read_part(quic, id);
        if let Err(error) = &body {
            self.on_read_error(now, quic, id, error);
        }
        self.forget_if_over(quic, id);
        self.wrap_up(now, quic);
        body
    }

    fn read_part(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
    ) -> Result<MessagePart, BodyError> {
        if let Some(fault) = self.reports.fault {
            return Err(fault.into());
        }
        loop {
            let request = self.requests.get_mut(id).ok_or(BodyError::Closed)?;
            match &mut request.receiving.progress {
                Progress::Over => return Err(BodyError::Closed),
                // After the end no data follow, so no event is needed.
                Progress::Head | Progress::HeadBlocked | Progress::TrailersBlocked
                    if self.reports.closed =>
                {
                    return Err(BodyError::Closed);
                }
                Progress::Head | Progress::HeadBlocked | Progress::TrailersBlocked => {
                    return Ok(MessagePart::Blocked);
                }
                Progress::Trailers(trailers) => {
                    let trailers = std::mem::take(trailers);
                    request.receiving.progress = Progress::AfterTrailers;
                    return Ok(MessagePart::Trailers(trailers));
                }
                Progress::Content | Progress::AfterTrailers => {}
            }
            match request.receiving.pull(quic, id, &self.config.limits)? {
                Pulled::Blocked => return Ok(MessagePart::Blocked),
                Pulled::End => return Ok(MessagePart::End),
                Pulled::Content(data) => {
                    self.reports.stats.content_received += data.len() as u64;
                    return Ok(MessagePart::Data(data));
                }
                Pulled::Section(section) => {
                    let decoded = self.compression.decode(id, &section)?;
                    self.on_trailers(id, decoded)?;
                }
                Pulled::SectionTooLarge | Pulled::SessionStream(_) => {
                    self.reports.stats.sections_too_large += 1;
                    let reason = "trailers are too large";
                    return Err(crate::h3::Fault::stream(Code::EXCESSIVE_LOAD, reason).into());
                }
            }
        }
    }

    pub(super) fn on_writable(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId) {
        if self.is_critical(id) {
            return self.flush_own_streams(now, quic);
        }
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        // A failure is reported by other events.
        let _ = request.sending.flush(quic, id);
        if request.sending.take_write_unblocked() && request.reported {
            self.report(Event::Writable { id });
        }
    }

    /// The peer acknowledged all of this end's message.
    pub(super) fn on_finished(&mut self, now: Instant, quic: &mut quic::Connection, id: StreamId) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.sending.give_up();
        if request.reported {
            self.report(Event::Finished { id });
        }
        self.forget_if_over(quic, id);
        self.finish_shutdown(now, quic);
    }
}

/// True if a request asks for a WebTransport session.
pub(super) fn is_session(head: &request::Parts) -> bool {
    let protocol = head.extensions.get::<ConnectProtocol>();
    protocol.is_some_and(|protocol| webtransport::is_protocol(protocol.as_str()))
}
