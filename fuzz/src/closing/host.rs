//! The engine under test with the connection's events, and an application on top.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::HeaderMap;
use swiftwater_http::h3::{Code, Config, ConnectProtocol, Connection, Event, MessagePart};
use swiftwater_quic::Event as QuicEvent;
use swiftwater_quic::ReadOutcome;
use swiftwater_units::{Dir, Instant, Side, StreamId};

use super::program::Call;
use crate::attack::Attack;
use crate::http3::support::{get, response};
use crate::watchdog;

/// Reads, writes and events that a byte of the program may cause. A whole request of a few bytes causes some
/// ten; a program of n bytes is far from this, and one that goes round in circles is not.
const POLLS_PER_BYTE: usize = 64;
/// What every case may cost: the handshake, the engine's own streams, the end.
const POLLS_AT_LEAST: usize = 2000;

/// The engine and its application.
pub(super) struct Host {
    engine: Connection,
    side: Side,
    /// Events of the connection that the engine has seen.
    shown: usize,
    /// The engine sees nothing for now.
    pub(super) withholds: bool,
    lazy: bool,
    requests: Vec<StreamId>,
    session_streams: Vec<StreamId>,
    closed: bool,
    polls: usize,
    allowed: usize,
}

impl Host {
    pub(super) fn new(side: Side, config: Config, program: usize) -> Self {
        let engine = match side {
            Side::Client => Connection::client(config),
            Side::Server => Connection::server(config),
        };
        Self {
            engine,
            side,
            shown: 0,
            withholds: false,
            lazy: false,
            requests: Vec::new(),
            session_streams: Vec::new(),
            closed: false,
            polls: 0,
            allowed: POLLS_AT_LEAST + POLLS_PER_BYTE * program,
        }
    }

    fn count(&mut self) {
        self.polls += 1;
        assert!(
            self.polls <= self.allowed,
            "too many turns for so short a program: {}",
            self.polls
        );
    }

    /// The engine's timeout, unless events are withheld.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.engine.timeout().filter(|_| !self.withholds)
    }

    /// Passes events to the engine, lets the application act on its events, and the connection send.
    pub(super) fn turn(&mut self, attack: &mut Attack) {
        while !self.withholds {
            let new = attack.victim.events[self.shown..].to_vec();
            self.shown += new.len();
            let now = attack.now;
            for event in &new {
                self.count();
                let quic = attack.victim.connection();
                watchdog::call("on_event", || self.engine.on_event(now, quic, event));
                self.on_session_event(event);
            }
            let due = self.engine.timeout().is_some_and(|at| at <= now);
            if due {
                self.count();
                let quic = attack.victim.connection();
                watchdog::call("on_timeout", || self.engine.on_timeout(now, quic));
            }
            let acted = self.drain(attack);
            attack.collect();
            if new.is_empty() && !acted && !due {
                return;
            }
        }
    }

    fn on_session_event(&mut self, event: &QuicEvent) {
        if matches!(event, QuicEvent::Closed { .. }) {
            self.session_streams.clear();
        }
    }

    /// True if there were events.
    fn drain(&mut self, attack: &mut Attack) -> bool {
        let mut any = false;
        while let Some(event) = self.engine.poll_event() {
            self.count();
            any = true;
            assert!(!self.closed, "an event after the last: {event:?}");
            match event {
                Event::Request { id, .. } | Event::Response { id, .. } => {
                    if !self.requests.contains(&id) {
                        self.requests.push(id);
                    }
                    self.read_unless_lazy(attack, id);
                }
                Event::Readable { id } => self.read_unless_lazy(attack, id),
                Event::SessionStream { id, .. } => self.session_streams.push(id),
                Event::Closed { .. } => self.closed = true,
                _ => {}
            }
        }
        any
    }

    fn read_unless_lazy(&mut self, attack: &mut Attack, id: StreamId) {
        if !self.lazy {
            self.read(attack, id);
        }
    }

    /// Reads the available part of a message; true if more may follow.
    fn read(&mut self, attack: &mut Attack, id: StreamId) -> bool {
        loop {
            self.count();
            let now = attack.now;
            let quic = attack.victim.connection();
            let read = watchdog::call("read_body", || self.engine.read_body(now, quic, id));
            match read {
                Ok(MessagePart::Data(data)) => assert!(!data.is_empty()),
                Ok(MessagePart::Trailers(_)) => {}
                Ok(MessagePart::Blocked) => return true,
                Ok(MessagePart::End) | Err(_) => return false,
            }
        }
    }

    /// Performs application calls; their results are ignored.
    pub(super) fn call(&mut self, attack: &mut Attack, call: Call) {
        self.count();
        let now = attack.now;
        let chosen =
            |from: &[StreamId], nth: u8| from.get(usize::from(nth) % from.len().max(1)).copied();
        let request = |nth| chosen(&self.requests, nth);
        let engine = &mut self.engine;
        let quic = attack.victim.connection();
        match call {
            Call::Request { session, end } => {
                let mut head = get("/session");
                if session {
                    head.method = http::Method::CONNECT;
                    head.extensions
                        .insert(ConnectProtocol::new("webtransport").expect("a token"));
                }
                let sent = watchdog::call("send_request", || {
                    engine.send_request(now, quic, &head, end)
                });
                self.requests.extend(sent.ok());
            }
            Call::Read { nth } => {
                if let Some(id) = request(nth) {
                    self.read(attack, id);
                }
            }
            Call::Lazy(lazy) => self.lazy = lazy,
            Call::Shutdown => watchdog::call("shutdown", || engine.shutdown(now, quic)),
            Call::Close => watchdog::call("close", || engine.close(now, quic, Code::NO_ERROR, "")),
            Call::OpenSessionStream { nth, uni } => {
                let dir = if uni { Dir::Uni } else { Dir::Bi };
                let opened =
                    request(nth).and_then(|id| engine.open_session_stream(quic, id, dir).ok());
                self.session_streams.extend(opened);
            }
            Call::SessionStream { nth, act } => {
                if let Some(id) = chosen(&self.session_streams, nth) {
                    self.act_on_session_stream(attack, id, act);
                }
            }
            Call::Respond { nth, .. }
            | Call::Write { nth, .. }
            | Call::Trailers { nth }
            | Call::Finish { nth }
            | Call::Reset { nth }
            | Call::Stop { nth }
            | Call::Cancel { nth }
            | Call::Datagram { nth, .. } => {
                if let Some(id) = request(nth) {
                    watchdog::call("an application's call", || {
                        on_request(engine, now, quic, id, call)
                    });
                }
            }
        }
    }

    fn act_on_session_stream(&mut self, attack: &mut Attack, id: StreamId, act: u8) {
        let quic = attack.victim.connection();
        match act % 5 {
            0 => {
                let mut buf = [0; 512];
                let mut turns = 0;
                while let Ok(ReadOutcome::Data(n)) = quic.recv_stream(id).read(&mut buf) {
                    assert!(n > 0);
                    turns += 1;
                }
                self.polls += turns;
            }
            1 => drop(quic.send_stream(id).write(&[act; 200])),
            2 => drop(quic.send_stream(id).finish()),
            3 => drop(quic.send_stream(id).reset(act.into())),
            _ => drop(quic.recv_stream(id).stop(act.into())),
        }
    }

    /// The end was reported once; nothing is left to wait for.
    pub(super) fn assert_over(&mut self, attack: &mut Attack) {
        assert!(self.closed, "the end of the connection was never told");
        assert_eq!(self.engine.timeout(), None, "a timer after the end");
        self.requests.sort_unstable();
        let requests: BTreeSet<StreamId> = self.requests.drain(..).collect();
        for id in requests {
            assert!(!self.read(attack, id), "a read of {id:?} waits forever");
        }
        assert_eq!(self.engine.open_requests(), 0, "{:?}", self.side);
    }
}

fn on_request(
    engine: &mut Connection,
    now: Instant,
    quic: &mut swiftwater_quic::Connection,
    id: StreamId,
    call: Call,
) {
    match call {
        Call::Respond { kind, .. } => {
            let status = [200, 200, 103, 404][usize::from(kind % 4)];
            drop(engine.respond(now, quic, id, &response(status), kind % 4 == 3));
        }
        Call::Write { len, .. } => {
            let mut data = Bytes::from(vec![7; len.into()]);
            drop(engine.write_data(quic, id, &mut data));
        }
        Call::Trailers { .. } => drop(engine.write_trailers(now, quic, id, &HeaderMap::new())),
        Call::Finish { .. } => drop(engine.finish(quic, id)),
        Call::Reset { .. } => engine.reset(now, quic, id, Code::INTERNAL_ERROR),
        Call::Stop { .. } => engine.stop(now, quic, id, Code::NO_ERROR),
        Call::Cancel { .. } => engine.cancel(now, quic, id, Code::REQUEST_CANCELLED),
        Call::Datagram { len, .. } => drop(engine.send_datagram(quic, id, &vec![7; len.into()])),
        _ => {}
    }
}
