//! The engine of one connection inside its worker, and the tasks that wait for it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use http::{request, response};
use rustc_hash::FxHashMap;
use swiftwater_net::Application;
use swiftwater_net::quic;
use swiftwater_units::{Instant, StreamId};

use super::connect::DatagramFlows;
use super::webtransport::{SessionLimits, Table};
use crate::h3::{self, Code, ConnectProtocol, Event, Fault};

/// A received request.
pub(super) struct Incoming {
    pub(super) id: StreamId,
    pub(super) head: Box<request::Parts>,
    pub(super) early: bool,
    /// The content that came with the head.
    pub(super) content: Bytes,
    /// It has no other content.
    pub(super) end: bool,
    /// It requests a WebTransport session.
    pub(super) is_session: bool,
}

/// A response whose head was received.
pub(super) struct Answer {
    pub(super) head: Box<response::Parts>,
    /// The content that came with the head.
    pub(super) content: Bytes,
    /// It has no other content.
    pub(super) end: bool,
}

/// How a request ended early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    pub(super) code: Code,
    pub(super) unprocessed: bool,
}

/// A request held by tasks: their wakers and its results.
#[derive(Default)]
pub(super) struct Held {
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Waits for the head of the response, or for the early end.
    pub(super) watcher: Option<Waker>,
    pub(super) answer: Option<Answer>,
    pub(super) broken: Option<Broken>,
    pub(super) stopped: Option<Code>,
}

impl Held {
    fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.reader.take());
        wakers.extend(self.writer.take());
        wakers.extend(self.watcher.take());
    }
}

/// State protected by the lock.
pub(super) struct State {
    pub(super) engine: h3::Connection,
    pub(super) held: FxHashMap<StreamId, Held>,
    /// Requests not yet accepted; as many as the transport permits streams.
    pub(super) incoming: VecDeque<Incoming>,
    pub(super) acceptor: Option<Waker>,
    /// Tasks that wait to send a request.
    pub(super) openers: Vec<Waker>,
    pub(super) ended: Option<End>,
    /// The peer accepts no more requests.
    pub(super) going_away: bool,
    /// The application has taken the peer's settings.
    pub(super) settings_taken: bool,
    /// WebTransport sessions.
    pub(super) sessions: Table,
    /// HTTP datagrams of other requests.
    pub(super) flows: DatagramFlows,
}

/// Why no more events will follow on the connection.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) reason: quic::ConnectionError,
    /// The peer's protocol violation, if that was the cause.
    pub(super) fault: Option<Fault>,
}

impl State {
    /// Dispatches the engine's events.
    pub(super) fn take_events(&mut self, quic: &mut quic::Connection, wakers: &mut Vec<Waker>) {
        while let Some(event) = self.engine.poll_event() {
            self.take_event(quic, event, wakers);
        }
    }

    /// The connection has ended: wakes all tasks.
    fn on_closed(&mut self, reason: quic::ConnectionError, wakers: &mut Vec<Waker>) {
        self.sessions.on_closed(&reason, wakers);
        self.flows.on_closed(wakers);
        let fault = self.engine.fault();
        self.ended = Some(End { reason, fault });
        self.incoming.clear();
        wakers.extend(self.acceptor.take());
        wakers.append(&mut self.openers);
        for held in self.held.values_mut() {
            held.wake_all(wakers);
        }
    }

    /// A datagram of a request, an event of its datagrams, or a stream of a session.
    fn take_datagram_event(
        &mut self,
        quic: &mut quic::Connection,
        event: Event,
        wakers: &mut Vec<Waker>,
    ) {
        match event {
            Event::Datagram { id, payload } if self.engine.is_session(id) => {
                self.sessions.on_datagram(id, payload, wakers);
            }
            Event::Datagram { id, payload } => self.flows.on_datagram(id, payload, wakers),
            Event::DatagramsUnblocked => {
                self.sessions.on_datagrams_unblocked(wakers);
                self.flows.on_datagrams_unblocked(wakers);
            }
            Event::DatagramFate { id, key, fate } => {
                self.sessions.on_datagram_fate(id, key, fate, wakers);
                self.flows.on_datagram_fate(id, key, fate, wakers);
            }
            Event::SessionStream { session, id, .. } => {
                self.sessions.on_session_stream(quic, session, id, wakers);
            }
            _ => {}
        }
    }

    fn take_event(&mut self, quic: &mut quic::Connection, event: Event, wakers: &mut Vec<Waker>) {
        match event {
            Event::Ready | Event::RequestsAvailable | Event::Settings(_) => {
                wakers.append(&mut self.openers);
            }
            Event::Request {
                id,
                head,
                early,
                content,
                end,
            } => {
                self.held.insert(id, Held::default());
                let is_session = self.engine.is_session(id);
                if is_session {
                    self.sessions.begin(id);
                } else if head.extensions.get::<ConnectProtocol>().is_some() {
                    self.flows.begin(id);
                }
                self.incoming.push_back(Incoming {
                    id,
                    head,
                    early,
                    content,
                    end,
                    is_session,
                });
                wakers.extend(self.acceptor.take());
            }
            Event::Response {
                id,
                head,
                content,
                end,
            } => self.with_held(id, |held| {
                held.answer = Some(Answer { head, content, end });
                wakers.extend(held.watcher.take());
            }),
            Event::Readable { id } => {
                self.with_held(id, |held| wakers.extend(held.reader.take()));
            }
            Event::Writable { id } => {
                self.with_held(id, |held| wakers.extend(held.writer.take()));
            }
            Event::Stopped { id, code } => self.with_held(id, |held| {
                held.stopped = Some(code);
                wakers.extend(held.writer.take());
                wakers.extend(held.watcher.take());
            }),
            Event::Reset {
                id,
                code,
                unprocessed,
            } => {
                self.flows.on_reset(id, wakers);
                self.with_held(id, |held| {
                    held.broken = Some(Broken { code, unprocessed });
                    held.wake_all(wakers);
                });
            }
            Event::GoAway { .. } => {
                self.going_away = true;
                wakers.append(&mut self.openers);
                self.sessions.drain(false, wakers);
            }
            Event::Closed { reason } => self.on_closed(reason, wakers),
            event => self.take_datagram_event(quic, event, wakers),
        }
    }

    /// Events of requests without a holder are ignored.
    fn with_held(&mut self, id: StreamId, act: impl FnOnce(&mut Held)) {
        if let Some(held) = self.held.get_mut(&id) {
            act(held);
        }
    }
}

/// Called by the worker.
pub(super) struct Hosted {
    state: Mutex<State>,
}

impl Hosted {
    pub(super) fn new(engine: h3::Connection, limits: SessionLimits) -> Self {
        Self {
            state: Mutex::new(State {
                engine,
                held: FxHashMap::default(),
                incoming: VecDeque::new(),
                acceptor: None,
                openers: Vec::new(),
                ended: None,
                going_away: false,
                settings_taken: false,
                sessions: Table::new(limits),
                flows: DatagramFlows::default(),
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Application for Hosted {
    fn on_event(
        &self,
        now: Instant,
        connection: &mut quic::Connection,
        event: &quic::Event,
        wakers: &mut Vec<Waker>,
    ) {
        let mut state = self.lock();
        state.engine.on_event(now, connection, event);
        state.take_events(connection, wakers);
        if let quic::Event::Stream(event) = event {
            state.sessions.on_stream_event(*event, wakers);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.lock().engine.timeout()
    }

    fn on_timeout(&self, now: Instant, connection: &mut quic::Connection, wakers: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.engine.on_timeout(now, connection);
        state.take_events(connection, wakers);
    }
}
