//! An HTTP/3 engine on both sides of a simulated pair, and simple applications on top.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

pub mod peer;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, request, response};
use swiftwater_http::h3::{BodyError, Code, Config, Connection, Event, MessagePart, SendError};
use swiftwater_link::LinkConfig;
use swiftwater_quic::Event as QuicEvent;
use swiftwater_sim::{Pair, PairBuilder};
use swiftwater_units::{Bandwidth, Side, StreamId};

pub const SIDES: [Side; 2] = [Side::Client, Side::Server];

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A link of this rate and one-way delay.
pub fn link(mbps: u64, delay_ms: u64) -> LinkConfig {
    LinkConfig::default()
        .rate(Bandwidth::from_mbps(mbps))
        .delay(millis(delay_ms))
}

/// A received message.
#[derive(Debug, Default)]
pub struct Message {
    pub request: Option<request::Parts>,
    pub response: Option<response::Parts>,
    pub informational: Vec<StatusCode>,
    pub early: bool,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
    pub complete: bool,
    pub error: Option<BodyError>,
    pub reset: Option<(Code, bool)>,
    pub stopped: Option<Code>,
    pub finished: bool,
}

impl Message {
    pub fn status(&self) -> Option<u16> {
        Some(self.response.as_ref()?.status.as_u16())
    }

    pub fn is_over(&self) -> bool {
        self.complete || self.reset.is_some()
    }
}

/// What is still to be sent on a stream.
#[derive(Debug, Default)]
struct Outgoing {
    body: Bytes,
    trailers: Option<HeaderMap>,
    error: Option<SendError>,
}

/// The server's answer to a complete or incomplete request.
pub type Answer = Box<dyn FnMut(&mut Side3, &mut Pair, StreamId)>;

/// One side: its engine, and what its application has seen.
#[derive(Debug)]
pub struct Side3 {
    pub side: Side,
    pub engine: Connection,
    pub messages: BTreeMap<StreamId, Message>,
    outgoing: BTreeMap<StreamId, Outgoing>,
    /// All events, in order.
    pub events: Vec<Event>,
    /// Requests in the order of their heads.
    pub heads: Vec<StreamId>,
    /// Streams in the order in which their messages were complete.
    pub completed: Vec<StreamId>,
    /// Reads nothing of messages' content.
    pub lazy: bool,
}

impl Side3 {
    fn new(side: Side, config: Config) -> Self {
        let engine = if side.is_client() {
            Connection::client(config)
        } else {
            Connection::server(config)
        };
        Self {
            side,
            engine,
            messages: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            events: Vec::new(),
            heads: Vec::new(),
            completed: Vec::new(),
            lazy: false,
        }
    }

    /// Sends content, trailers if there are any, and the end, as there is room.
    pub fn send(
        &mut self,
        pair: &mut Pair,
        id: StreamId,
        body: impl Into<Bytes>,
        trailers: Option<HeaderMap>,
    ) {
        let outgoing = Outgoing {
            body: body.into(),
            trailers,
            error: None,
        };
        self.outgoing.insert(id, outgoing);
        self.pump(pair, id);
    }

    pub fn send_error(&self, id: StreamId) -> Option<&SendError> {
        self.outgoing.get(&id)?.error.as_ref()
    }

    fn pump(&mut self, pair: &mut Pair, id: StreamId) {
        let now = pair.now();
        let (Some(outgoing), Some(quic)) = (self.outgoing.get_mut(&id), pair.connection(self.side))
        else {
            return;
        };
        if outgoing.error.is_some() {
            return;
        }
        let engine = &mut self.engine;
        let result = engine
            .write_data(quic, id, &mut outgoing.body)
            .and_then(|_| {
                if !outgoing.body.is_empty() {
                    return Ok(false);
                }
                if let Some(trailers) = outgoing.trailers.take() {
                    engine.write_trailers(now, quic, id, &trailers)?;
                }
                engine.finish(quic, id).map(|()| true)
            });
        match result {
            Ok(true) => drop(self.outgoing.remove(&id)),
            Ok(false) => {}
            Err(error) => outgoing.error = Some(error),
        }
    }

    /// Reads what there is of a message.
    pub fn pull(&mut self, pair: &mut Pair, id: StreamId) {
        let now = pair.now();
        let Some(quic) = pair.connection(self.side) else {
            return;
        };
        let message = self.messages.entry(id).or_default();
        while !message.complete && message.error.is_none() {
            match self.engine.read_body(now, quic, id) {
                Ok(MessagePart::Data(data)) => {
                    assert!(!data.is_empty());
                    message.body.extend_from_slice(&data);
                }
                Ok(MessagePart::Trailers(trailers)) => message.trailers = Some(trailers),
                Ok(MessagePart::Blocked) => return,
                Ok(MessagePart::End) => {
                    message.complete = true;
                    self.completed.push(id);
                }
                Err(error) => message.error = Some(error),
            }
        }
    }

    fn note_head(&mut self, pair: &mut Pair, id: StreamId, end: bool) {
        self.heads.push(id);
        if end {
            self.messages.entry(id).or_default().complete = true;
            self.completed.push(id);
        } else if !self.lazy {
            self.pull(pair, id);
        }
    }

    fn act(&mut self, pair: &mut Pair, event: Event) {
        match event {
            Event::Request {
                id,
                head,
                early,
                content,
                end,
            } => {
                let message = self.messages.entry(id).or_default();
                message.request = Some(*head);
                message.early = early;
                message.body.extend_from_slice(&content);
                self.note_head(pair, id, end);
            }
            Event::Response {
                id,
                head,
                content,
                end,
            } => {
                let message = self.messages.entry(id).or_default();
                message.response = Some(*head);
                message.body.extend_from_slice(&content);
                self.note_head(pair, id, end);
            }
            Event::Informational { id, head } => {
                let message = self.messages.entry(id).or_default();
                message.informational.push(head.status);
            }
            Event::Readable { id } if !self.lazy => self.pull(pair, id),
            Event::Writable { id } => self.pump(pair, id),
            Event::Finished { id } => self.messages.entry(id).or_default().finished = true,
            Event::Stopped { id, code } => {
                self.messages.entry(id).or_default().stopped = Some(code);
            }
            Event::Reset {
                id,
                code,
                unprocessed,
            } => {
                let message = self.messages.entry(id).or_default();
                message.reset = Some((code, unprocessed));
            }
            _ => {}
        }
    }
}

/// Both sides' engines on a pair.
pub struct World {
    pub pair: Pair,
    pub client: Side3,
    pub server: Side3,
    answer: Option<Answer>,
    answered: usize,
    /// A side without an engine: its events are left alone.
    pub raw: Option<Side>,
}

impl World {
    pub fn new(builder: PairBuilder) -> Self {
        Self::with(builder, Config::default(), Config::default())
    }

    /// Begins a connection without running.
    pub fn with(builder: PairBuilder, client: Config, server: Config) -> Self {
        let mut pair = builder.build().expect("a valid pair");
        pair.start().expect("a connection");
        // Polls the connection's pending events.
        pair.advance(Duration::ZERO);
        Self {
            pair,
            client: Side3::new(Side::Client, client),
            server: Side3::new(Side::Server, server),
            answer: None,
            answered: 0,
            raw: None,
        }
    }

    /// The server answers each request when its head was received.
    pub fn answer(&mut self, answer: impl FnMut(&mut Side3, &mut Pair, StreamId) + 'static) {
        self.answer = Some(Box::new(answer));
    }

    /// The server answers each request with 200 and `body` of its path.
    pub fn serve(&mut self, body: impl Fn(&str) -> Vec<u8> + 'static) {
        self.answer(move |server, pair, id| {
            let head = server.messages[&id].request.clone().expect("a request");
            let head = head.uri.path().to_owned();
            server.respond(pair, id, &response(200), body(&head));
        });
    }

    pub fn side(&mut self, side: Side) -> &mut Side3 {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Hands all events on, on both sides.
    pub fn turn(&mut self) {
        for side in SIDES {
            if self.raw == Some(side) {
                continue;
            }
            loop {
                let events = self.pair.take_events(side);
                let now = self.pair.now();
                let host = match side {
                    Side::Client => &mut self.client,
                    Side::Server => &mut self.server,
                };
                if let Some(quic) = self.pair.connection(side) {
                    for event in &events {
                        host.engine.on_event(now, quic, event);
                    }
                    if host.engine.timeout().is_some_and(|at| at <= now) {
                        host.engine.on_timeout(now, quic);
                    }
                }
                let mut quiet = events.is_empty();
                while let Some(event) = host.engine.poll_event() {
                    quiet = false;
                    host.events.push(event.clone());
                    host.act(&mut self.pair, event);
                }
                if quiet {
                    break;
                }
                self.answer_new();
            }
        }
    }

    fn answer_new(&mut self) {
        let Some(mut answer) = self.answer.take() else {
            return;
        };
        while let Some(&id) = self.server.heads.get(self.answered) {
            self.answered += 1;
            answer(&mut self.server, &mut self.pair, id);
        }
        self.answer = Some(answer);
    }

    /// Runs until `done`; false if that never happens.
    pub fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let limit = self.pair.now() + Duration::from_secs(300);
        loop {
            self.turn();
            if done(self) {
                return true;
            }
            if self.pair.now() > limit {
                return false;
            }
            let next = [&self.client, &self.server]
                .into_iter()
                .filter_map(|host| host.engine.timeout())
                .min();
            match next {
                // Engine timers are short of a step of the network only when nothing else happens.
                Some(at) => {
                    let now = self.pair.now();
                    let left = at.checked_since(now).unwrap_or_default();
                    let step = left.min(millis(1)).max(Duration::from_nanos(1));
                    self.pair.advance(step);
                }
                None => {
                    if !self.pair.step() {
                        self.turn();
                        return done(self);
                    }
                }
            }
        }
    }

    /// Runs for a while.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.pair.now() + time;
        while self.pair.now() < end {
            self.turn();
            self.pair.advance(millis(1));
        }
        self.turn();
    }

    /// Runs until the client can send requests.
    pub fn connect(&mut self) {
        assert!(
            self.run(|world| {
                let ready = |host: &Side3| host.engine.peer_settings().is_some();
                ready(&world.client) && ready(&world.server)
            }),
            "no connection"
        );
    }

    /// Sends a request without content.
    pub fn get(&mut self, path: &str) -> StreamId {
        self.request(&get(path), None)
    }

    /// Sends a request.
    pub fn request(&mut self, head: &request::Parts, body: Option<Vec<u8>>) -> StreamId {
        let now = self.pair.now();
        let quic = self.pair.client();
        let id = self
            .client
            .engine
            .send_request(now, quic, head, body.is_none())
            .expect("the request is accepted");
        if let Some(body) = body {
            self.client.send(&mut self.pair, id, body, None);
        }
        id
    }

    /// Sends a request whose content is given with the head.
    pub fn request_with(&mut self, head: &request::Parts, body: Vec<u8>) -> StreamId {
        let now = self.pair.now();
        let quic = self.pair.client();
        let mut body = Bytes::from(body);
        let engine = &mut self.client.engine;
        let id = engine
            .send_request_with(now, quic, head, &mut body, true)
            .expect("the request is accepted");
        self.client.send_rest(&mut self.pair, id, body);
        id
    }

    /// Runs until all of the client's messages `ids` are over.
    pub fn settle(&mut self, ids: &[StreamId]) -> bool {
        self.run(|world| {
            ids.iter().all(|id| {
                let message = world.client.messages.get(id);
                message.is_some_and(Message::is_over)
            })
        })
    }

    /// Runs until a side has seen the connection's end; the peer's fault that it found, if any.
    pub fn run_to_close(&mut self, side: Side) -> Option<Code> {
        assert!(
            self.run(|world| {
                let events = &world.side(side).events;
                events
                    .iter()
                    .any(|event| matches!(event, Event::Closed { .. }))
            }),
            "{side:?} never closed"
        );
        self.side(side).engine.fault().map(|fault| fault.code)
    }
}

impl Side3 {
    /// Sends a response with content.
    pub fn respond(
        &mut self,
        pair: &mut Pair,
        id: StreamId,
        head: &response::Parts,
        body: impl Into<Bytes>,
    ) {
        self.head(pair, id, head);
        self.send(pair, id, body, None);
    }

    /// Sends a response whose content is given with the head.
    pub fn respond_with(
        &mut self,
        pair: &mut Pair,
        id: StreamId,
        head: &response::Parts,
        body: impl Into<Bytes>,
    ) {
        let now = pair.now();
        let quic = pair.connection(self.side).expect("a connection");
        let mut body = body.into();
        self.engine
            .respond_with(now, quic, id, head, &mut body, true)
            .expect("the response is accepted");
        self.send_rest(pair, id, body);
    }

    /// Sends what the transport did not accept with the head.
    fn send_rest(&mut self, pair: &mut Pair, id: StreamId, body: Bytes) {
        if !body.is_empty() {
            self.send(pair, id, body, None);
        }
    }

    /// Sends a response's head.
    pub fn head(&mut self, pair: &mut Pair, id: StreamId, head: &response::Parts) {
        let now = pair.now();
        let quic = pair.connection(self.side).expect("a connection");
        self.engine
            .respond(now, quic, id, head, false)
            .expect("the response is accepted");
    }
}

pub fn get(path: &str) -> request::Parts {
    head("GET", path, &[])
}

pub fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> request::Parts {
    let mut builder = Request::builder()
        .method(method)
        .uri(format!("https://example.org{path}"));
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).expect("a valid request").into_parts().0
}

pub fn response(status: u16) -> response::Parts {
    let builder = Response::builder().status(status);
    builder.body(()).expect("a valid response").into_parts().0
}

/// Content of `len` bytes that encodes its position.
pub fn content(nth: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ nth.wrapping_mul(131)) as u8)
        .collect()
}

/// What happened on the transport, for failures.
pub fn closes(events: &[QuicEvent]) -> Vec<&QuicEvent> {
    events
        .iter()
        .filter(|event| matches!(event, QuicEvent::Closed { .. }))
        .collect()
}
