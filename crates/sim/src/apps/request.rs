//! Requests and responses: a bidirectional stream for each exchange.
//!
//! A request starts with 16 bytes in network order, the length of the response and the number of
//! its pattern; the rest of the request is the same pattern. The response is that pattern.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_quic::{ClientConfig, ConnectionHandle, Event, Priority, ReadOutcome, StreamEvent};
use swiftwater_units::{Dir, Instant, StreamId};

use super::stream::{Sink, Source};
use crate::application::{Application, HostContext};
use crate::pattern::Pattern;

/// Urgency of a response for which the client has none (RFC 9218, section 4.1).
const HTTP_URGENCY: u8 = 3;

/// Length of a request's header.
const HEAD_LEN: usize = 16;

/// One request and its response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exchange {
    /// When the request was due.
    pub due: Instant,
    /// When the first byte of the response was read.
    pub first_byte: Option<Instant>,
    /// When the end of the response was read.
    pub finish: Option<Instant>,
    /// True if the response was complete and correct.
    pub verified: bool,
    /// When the connection was lost before the end of the response.
    pub failed: Option<Instant>,
}

impl Exchange {
    /// One that is due at `due`, of which nothing has happened.
    pub(crate) fn due(due: Instant) -> Self {
        Self {
            due,
            first_byte: None,
            finish: None,
            verified: false,
            failed: None,
        }
    }

    /// Time from the request to the whole response.
    pub fn duration(&self) -> Option<Duration> {
        Some(self.finish? - self.due)
    }
}

#[derive(Debug)]
struct Pending {
    exchange: usize,
    source: Source,
    sink: Sink,
}

/// When requests are due.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// One every so often, whether those before are answered or not.
    Every(Duration),
    /// This long after the response to the one before.
    AfterResponse(Duration),
    /// When the caller says so.
    OnDemand,
}

/// Timer of the start of the connection.
const CONNECT: u64 = 0;
/// Timer of a request.
const REQUEST: u64 = 1;
/// Timer of the end.
const STOP: u64 = 2;

/// Opens a connection and sends requests over it, at fixed intervals or one after the other.
#[derive(Debug)]
pub struct Requester {
    config: ClientConfig,
    remote: SocketAddr,
    /// Bytes of a request, without its header.
    request_len: u64,
    response_len: u64,
    pace: Pace,
    count: usize,
    start: Instant,
    stop: Option<Instant>,
    handle: Option<ConnectionHandle>,
    connected: bool,
    exchanges: Vec<Exchange>,
    /// Bytes of each request, without its header, and of its response.
    lengths: Vec<(u64, u64)>,
    /// Requests that have a stream.
    begun: usize,
    /// Bytes of responses that are over.
    received: u64,
    pending: BTreeMap<StreamId, Pending>,
}

impl Requester {
    /// Sends `count` requests to `remote`, one every `interval` from the start on (all at once if
    /// that is zero). Requests that are due before the end of the handshake wait for it.
    pub fn new(
        config: ClientConfig,
        remote: SocketAddr,
        (count, interval): (usize, Duration),
        (request_len, response_len): (u64, u64),
    ) -> Self {
        Self {
            config,
            remote,
            request_len,
            response_len,
            pace: Pace::Every(interval),
            count,
            start: Instant::ZERO,
            stop: None,
            received: 0,
            handle: None,
            connected: false,
            exchanges: Vec::new(),
            lengths: Vec::new(),
            begun: 0,
            pending: BTreeMap::new(),
        }
    }

    /// Sends nothing by itself: requests are made by [`Requester::request_now`].
    pub fn on_demand(config: ClientConfig, remote: SocketAddr) -> Self {
        Self {
            pace: Pace::OnDemand,
            ..Self::new(config, remote, (0, Duration::ZERO), (0, 0))
        }
    }

    /// Makes a request of `request_len` bytes, 16 more of its header, and a response of `response_len`
    /// bytes, due now. Opens a connection if there is none. Returns its index in
    /// [`Requester::exchanges`].
    pub fn request_now(
        &mut self,
        host: &mut HostContext<'_>,
        (request_len, response_len): (u64, u64),
    ) -> usize {
        if self.handle.is_none() {
            self.connect(host);
        }
        self.add(host, (request_len, response_len));
        self.exchanges.len() - 1
    }

    /// Ends the connection, if there is one; requests without a response fail. The next request that is
    /// made by [`Requester::request_now`] opens another.
    pub fn close(&mut self, host: &mut HostContext<'_>) {
        self.end(host);
        self.lose(host.now());
    }

    /// Sends one request after the other: each `pause` after the end of the response to the one before.
    #[must_use]
    pub fn one_after_another(mut self, pause: Duration) -> Self {
        self.pace = Pace::AfterResponse(pause);
        self
    }

    /// Starts the handshake at `start`, with the first request; closes the connection at `stop`, if any.
    #[must_use]
    pub fn during(mut self, start: Instant, stop: Option<Instant>) -> Self {
        (self.start, self.stop) = (start, stop);
        self
    }

    /// Bytes of responses read so far.
    pub fn bytes(&self) -> u64 {
        let pending = self.pending.values().map(|pending| pending.sink.received());
        self.received + pending.sum::<u64>()
    }

    /// The connection, once opened.
    pub fn handle(&self) -> Option<ConnectionHandle> {
        self.handle
    }

    /// Results of the requests that were due, in order.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// True once all requests were answered.
    pub fn is_done(&self) -> bool {
        let mut exchanges = self.exchanges.iter();
        self.exchanges.len() == self.count && exchanges.all(|each| each.finish.is_some())
    }

    /// Opens streams for all requests that are due, as far as the peer permits.
    fn begin(&mut self, host: &mut HostContext<'_>) {
        if !self.connected {
            return;
        }
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        while self.begun < self.exchanges.len()
            && let Some(id) = connection.open(Dir::Bi)
        {
            let pattern = Pattern::new(self.begun as u64);
            let (request_len, response_len) = self.lengths[self.begun];
            let mut pending = Pending {
                exchange: self.begun,
                source: Source::new(pattern, Some(request_len)),
                sink: Sink::new(pattern),
            };
            let mut head = [0; HEAD_LEN];
            head[..8].copy_from_slice(&response_len.to_be_bytes());
            head[8..].copy_from_slice(&(self.begun as u64).to_be_bytes());
            // The windows of a new stream have room for a header.
            let _ = connection.send_stream(id).write(&head);
            let _ = pending.source.pump(connection, id);
            // A first read registers for events.
            let _ = pending.sink.drain(connection, id);
            self.pending.insert(id, pending);
            self.begun += 1;
        }
    }

    fn read(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let now = host.now();
        let (Some(connection), Some(pending)) =
            (host.connection(handle), self.pending.get_mut(&id))
        else {
            return;
        };
        let result = pending.sink.drain(connection, id);
        let exchange = &mut self.exchanges[pending.exchange];
        let sink = &pending.sink;
        if sink.received() > 0 {
            exchange.first_byte.get_or_insert(now);
        }
        if sink.is_finished() {
            exchange.finish = Some(now);
            let (_, response_len) = self.lengths[pending.exchange];
            exchange.verified = sink.is_intact() && sink.received() == response_len;
        }
        let is_over = sink.is_finished() || result.is_err();
        if is_over {
            self.received += sink.received();
            self.pending.remove(&id);
        }
        if is_over
            && let Pace::AfterResponse(pause) = self.pace
            && self.exchanges.len() < self.count
        {
            host.set_timer(now + pause, REQUEST);
        }
    }

    fn connect(&mut self, host: &mut HostContext<'_>) {
        self.handle = host.connect_to_server(&self.config, self.remote);
    }

    fn request(&mut self, host: &mut HostContext<'_>) {
        self.add(host, (self.request_len, self.response_len));
    }

    fn add(&mut self, host: &mut HostContext<'_>, lengths: (u64, u64)) {
        self.exchanges.push(Exchange::due(host.now()));
        self.lengths.push(lengths);
        self.begin(host);
    }

    /// The connection is gone, and with it what is pending; requests made from now on open another.
    fn lose(&mut self, now: Instant) {
        if matches!(self.pace, Pace::OnDemand) {
            self.handle = None;
        }
        self.connected = false;
        self.pending.clear();
        self.begun = self.exchanges.len();
        for exchange in self
            .exchanges
            .iter_mut()
            .filter(|each| each.finish.is_none())
        {
            exchange.failed.get_or_insert(now);
        }
    }

    fn end(&self, host: &mut HostContext<'_>) {
        let now = host.now();
        if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
            connection.close(now, 0, b"stop");
        }
    }
}

impl Application for Requester {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        let start = host.now().max(self.start);
        if !matches!(self.pace, Pace::OnDemand) {
            host.set_timer(start, CONNECT);
        }
        match self.pace {
            Pace::Every(interval) => {
                for nth in 0..self.count as u32 {
                    host.set_timer(start + interval * nth, REQUEST);
                }
            }
            Pace::AfterResponse(_) => host.set_timer(start, REQUEST),
            Pace::OnDemand => {}
        }
        if let Some(stop) = self.stop {
            host.set_timer(stop, STOP);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.begin(host);
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => self.begin(host),
            Event::Stream(StreamEvent::Writable { id }) => {
                if let Some(pending) = self.pending.get_mut(&id)
                    && let Some(connection) = host.connection(handle)
                {
                    let _ = pending.source.pump(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(host, handle, id),
            Event::Closed { .. } if self.handle == Some(handle) => self.lose(host.now()),
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        match token {
            CONNECT => self.connect(host),
            REQUEST => self.request(host),
            _ => self.end(host),
        }
    }
}

#[derive(Debug, Default)]
struct Request {
    head: Vec<u8>,
    body: Option<Sink>,
    response: Option<Source>,
}

/// Answers requests once they are complete.
#[derive(Debug, Default)]
pub struct Responder {
    requests: BTreeMap<(ConnectionHandle, StreamId), Request>,
    answered: u64,
    damaged: u64,
    /// Of responses.
    priority: Priority,
}

impl Responder {
    /// A responder whose responses take turns, a packet each.
    pub fn new() -> Self {
        Self::default()
    }

    /// A responder that sends responses one after the other, in the order of their requests, as HTTP/3 does unless
    /// the client asks for something else (RFC 9218, section 4: urgency 3, not incremental).
    pub fn in_order() -> Self {
        Self {
            priority: Priority::new(HTTP_URGENCY, false),
            ..Self::default()
        }
    }

    /// Requests answered so far; responses may be in flight.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Requests with incorrect content; they are answered nevertheless.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn serve(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let request = self.requests.entry((handle, id)).or_default();
        while request.body.is_none() {
            let mut rest = [0; HEAD_LEN];
            let missing = HEAD_LEN - request.head.len();
            match connection.recv_stream(id).read(&mut rest[..missing]) {
                Ok(ReadOutcome::Data(len)) => request.head.extend_from_slice(&rest[..len]),
                Ok(ReadOutcome::Blocked) => return,
                Ok(ReadOutcome::Finished) | Err(_) => {
                    self.requests.remove(&(handle, id));
                    return;
                }
            }
            if let Some((len, pattern)) = parse_head(&request.head) {
                request.body = Some(Sink::new(pattern));
                request.response = Some(Source::new(pattern, Some(len)));
            }
        }
        let (Some(body), Some(response)) = (&mut request.body, &mut request.response) else {
            return;
        };
        if !body.is_finished() {
            // Only of a stream that is gone is it an error.
            let _ = connection.send_stream(id).set_priority(self.priority);
            if body.drain(connection, id).is_err() {
                self.requests.remove(&(handle, id));
                return;
            }
            if !body.is_finished() {
                return;
            }
            self.answered += 1;
            self.damaged += u64::from(!body.is_intact());
        }
        if response.pump(connection, id).is_err() || response.is_finished() {
            self.requests.remove(&(handle, id));
        }
    }
}

/// Length and pattern of the response, once the header is complete.
fn parse_head(head: &[u8]) -> Option<(u64, Pattern)> {
    let (len, rest) = head.split_first_chunk()?;
    let id = rest.first_chunk()?;
    Some((
        u64::from_be_bytes(*len),
        Pattern::new(u64::from_be_bytes(*id)),
    ))
}

impl Application for Responder {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = host.accept(handle, Dir::Bi) {
                    self.serve(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id })
                if id.dir() == Dir::Bi =>
            {
                self.serve(host, handle, id);
            }
            _ => {}
        }
    }
}
