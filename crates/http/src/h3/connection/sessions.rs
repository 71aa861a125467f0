//! Streams of WebTransport sessions (draft-ietf-webtrans-http3, sections 4.2 to 4.6): the association
//! of streams with sessions, and streams that arrive before their session. A session is a CONNECT
//! request of the client; either end may open its streams.
//!
//! The content of the streams, and resetting those of a session that ended, are the application's
//! responsibility.

use std::collections::VecDeque;

use bytes::Bytes;
use swiftwater_quic as quic;
use swiftwater_units::{Dir, Side, StreamId};

use super::Connection;
use super::requests::Request;
use crate::h3::code::Code;
use crate::h3::error::{Fault, RequestError, SessionError};
use crate::h3::event::Event;
use crate::h3::frame::FrameType;
use crate::h3::stream_type::{StreamType, put_int};

/// Streams of sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Streams that wait for their session: session, stream.
    waiting: VecDeque<(StreamId, StreamId)>,
    open: u64,
}

impl Connection {
    /// True if the peer may open streams of sessions.
    pub(super) fn offers_sessions(&self) -> bool {
        self.config.offers_sessions()
    }

    /// A stream of session `session` was opened; its header was read.
    pub(super) fn on_session_stream(
        &mut self,
        quic: &mut quic::Connection,
        session: u64,
        id: StreamId,
    ) -> Result<(), Fault> {
        let session = StreamId::from_wire(session);
        if session.dir() != Dir::Bi || session.initiator() != Side::Client {
            let reason = "a session identifier that is not a request stream";
            return Err(Fault::connection(Code::ID_ERROR, reason));
        }
        match self.requests.get(session) {
            Some(request) if request.is_session => {
                self.report(Event::SessionStream {
                    session,
                    id,
                    dir: id.dir(),
                });
            }
            Some(request) if request.reported => reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE),
            // A client creates its sessions, so an unknown session has ended.
            None if self.side.is_client() || self.shutdown.has_come(session) => {
                reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE);
            }
            _ if self.sessions.waiting.len() >= self.config.limits.max_early_session_streams => {
                reject(quic, id, Code::WEBTRANSPORT_BUFFERED_STREAM_REJECTED);
            }
            _ => self.sessions.waiting.push_back((session, id)),
        }
        Ok(())
    }

    /// A request for a session was received; false if the limit of sessions is reached.
    pub(super) fn admit_session(&mut self) -> bool {
        let room = self.sessions.open < self.config.webtransport_sessions;
        self.sessions.open += u64::from(room);
        room
    }

    /// A request for a session is about to be sent: fails if the server's limit is reached.
    pub(super) fn check_session(&self) -> Result<(), RequestError> {
        let permitted = self.server_settings().webtransport_sessions;
        if permitted == 0 || !self.config.offers_sessions() {
            return Err(RequestError::WebTransportUnsupported);
        }
        if self.sessions.open >= permitted {
            return Err(RequestError::TooManySessions);
        }
        Ok(())
    }

    /// A request for a session was sent.
    pub(super) fn begin_session(&mut self) {
        self.sessions.open += 1;
    }

    /// True if the request of stream `id` requests, or is, a WebTransport session.
    pub fn is_session(&self, id: StreamId) -> bool {
        let request = self.requests.get(id);
        request.is_some_and(|request| request.is_session)
    }

    /// Opens a stream of session `session`, a CONNECT request that was accepted. The bytes returned
    /// are the header of the stream and must be written first; the stream then belongs to the
    /// application.
    pub fn begin_session_stream(
        &mut self,
        quic: &mut quic::Connection,
        session: StreamId,
        dir: Dir,
    ) -> Result<(StreamId, Bytes), SessionError> {
        if let Some(reason) = quic.close_reason() {
            return Err(reason.clone().into());
        }
        let request = self.requests.get(session);
        if !request.is_some_and(|request| request.is_session && !request.sending.is_complete()) {
            return Err(SessionError::NoSession);
        }
        let id = quic.open(dir).ok_or(SessionError::Blocked)?;
        let mut signal = Vec::with_capacity(16);
        match dir {
            Dir::Bi => put_int(&mut signal, FrameType::WebTransportStream.to_wire()),
            Dir::Uni => put_int(&mut signal, StreamType::WebTransport.to_wire()),
        }
        put_int(&mut signal, session.get());
        Ok((id, signal.into()))
    }

    /// As [`Connection::begin_session_stream`], and writes the first bytes.
    pub fn open_session_stream(
        &mut self,
        quic: &mut quic::Connection,
        session: StreamId,
        dir: Dir,
    ) -> Result<StreamId, SessionError> {
        let (id, signal) = self.begin_session_stream(quic, session, dir)?;
        if quic.send_stream(id).write(&signal) == Ok(signal.len()) {
            return Ok(id);
        }
        // Without flow control credit for this header the stream can't be identified.
        reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE);
        Err(SessionError::Blocked)
    }

    /// The session's request was received: its waiting streams are reported.
    pub(super) fn release_session_streams(&mut self, session: StreamId) {
        let mut released = Vec::new();
        self.sessions.waiting.retain(|&(each, id)| {
            if each == session {
                released.push(id);
            }
            each != session
        });
        for id in released {
            self.report(Event::SessionStream {
                session,
                id,
                dir: id.dir(),
            });
        }
    }

    /// A request is complete: streams that wait for it have no session.
    pub(super) fn on_request_gone(
        &mut self,
        quic: &mut quic::Connection,
        session: StreamId,
        request: &Request,
    ) {
        self.keep_alive(quic);
        self.sessions.open -= u64::from(request.is_session);
        self.sessions.waiting.retain(|&(each, id)| {
            if each == session {
                reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE);
            }
            each != session
        });
    }
}

/// Stops and resets a stream in the directions that it has.
fn reject(quic: &mut quic::Connection, id: StreamId, code: Code) {
    let _ = quic.recv_stream(id).stop(code.0);
    let _ = quic.send_stream(id).reset(code.0);
}
