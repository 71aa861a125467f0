//! Streams of WebTransport sessions (draft-ietf-webtrans-http3, sections 4.2 to 4.6): which session a
//! stream belongs to, and streams that come before their session.

use std::collections::VecDeque;

use swiftwater_quic as quic;
use swiftwater_units::{Dir, Side, StreamId};

use super::Connection;
use super::incoming::refuse;
use super::requests::Request;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::event::Event;

/// Streams of sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Streams whose session has not come yet: session, stream.
    waiting: VecDeque<(StreamId, StreamId)>,
}

impl Connection {
    /// True if the peer may open streams of sessions.
    pub(super) fn offers_sessions(&self) -> bool {
        self.side.is_server() && self.config.offers_sessions()
    }

    /// A stream of session `session` came; its beginning was read.
    pub(super) fn on_session_stream(
        &mut self,
        quic: &mut quic::Connection,
        session: u64,
        id: StreamId,
    ) -> Result<(), Fault> {
        let session = StreamId::from_wire(session);
        if session.dir() != Dir::Bi || session.initiator() != Side::Client {
            let reason = "a session that is no request";
            return Err(Fault::connection(Code::ID_ERROR, reason));
        }
        match self.requests.get(session) {
            Some(request) if request.is_session => {
                self.tell(Event::SessionStream {
                    session,
                    id,
                    dir: id.dir(),
                });
            }
            Some(request) if request.told => reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE),
            None if self.shutdown.has_come(session) => {
                reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE);
            }
            _ if self.sessions.waiting.len() >= self.config.limits.max_early_session_streams => {
                reject(quic, id, Code::WEBTRANSPORT_BUFFERED_STREAM_REJECTED);
            }
            _ => self.sessions.waiting.push_back((session, id)),
        }
        Ok(())
    }

    /// The session came: so did its streams.
    pub(super) fn release_session_streams(&mut self, session: StreamId) {
        let mut released = Vec::new();
        self.sessions.waiting.retain(|&(each, id)| {
            if each == session {
                released.push(id);
            }
            each != session
        });
        for id in released {
            self.tell(Event::SessionStream {
                session,
                id,
                dir: id.dir(),
            });
        }
    }

    /// A request ended before its time: streams that wait for it have no session.
    pub(super) fn on_request_gone(
        &mut self,
        quic: &mut quic::Connection,
        session: StreamId,
        _request: &Request,
    ) {
        self.sessions.waiting.retain(|&(each, id)| {
            if each == session {
                reject(quic, id, Code::WEBTRANSPORT_SESSION_GONE);
            }
            each != session
        });
    }
}

fn reject(quic: &mut quic::Connection, id: StreamId, code: Code) {
    if id.dir() == Dir::Bi {
        refuse(quic, id, code);
    } else {
        let _ = quic.recv_stream(id).stop(code.0);
    }
}
