//! One request and one response on a TCP connection of their own, without TLS and HTTP: what the
//! kernel's TCP is compared with.
//!
//! A request starts with 16 bytes in network order, its own length without them and that of the
//! response. Contents are [`Pattern`]s.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_quic::{ConnectionHandle, Event};
use swiftwater_units::Instant;

use super::request::Exchange;
use crate::application::{Application, HostContext};
use crate::pattern::Pattern;
use crate::tcp;
use crate::tcp_table::TcpHandle;

/// Length of a request's header.
const HEAD_LEN: usize = 16;
/// Most bytes that are written at once.
const CHUNK: u64 = 16 * 1024;

/// Writes a pattern as there is room.
#[derive(Debug)]
struct Output {
    pattern: Pattern,
    offset: u64,
    len: u64,
}

impl Output {
    fn new(id: u64, len: u64) -> Self {
        Self {
            pattern: Pattern::new(id),
            offset: 0,
            len,
        }
    }

    /// Writes what fits.
    fn pump(&mut self, connection: &mut tcp::Connection) {
        while self.offset < self.len {
            let most = connection.writable().min(self.len - self.offset).min(CHUNK);
            if most == 0 {
                connection.want_room();
                return;
            }
            let chunk = self.pattern.chunk(self.offset, most);
            connection.write(&chunk);
            self.offset += chunk.len() as u64;
        }
    }
}

/// Opens a connection at a given time, sends a request and reads the response.
#[derive(Debug)]
pub struct TcpExchange {
    config: tcp::Config,
    remote: SocketAddr,
    start: Instant,
    response_len: u64,
    output: Output,
    received: u64,
    intact: bool,
    handle: Option<TcpHandle>,
    connected: Option<Instant>,
    exchange: Exchange,
    error: Option<tcp::ConnectionError>,
    keeps_open: bool,
}

impl TcpExchange {
    /// Sends a request of `request_len` bytes (16 more of its header) to `remote` at `start`, and gets
    /// `response_len` bytes.
    pub fn new(
        config: tcp::Config,
        remote: SocketAddr,
        start: Instant,
        (request_len, response_len): (u64, u64),
    ) -> Self {
        Self {
            config,
            remote,
            start,
            response_len,
            output: Output::new(0, request_len),
            received: 0,
            intact: true,
            handle: None,
            connected: None,
            exchange: Exchange::due(start),
            error: None,
            keeps_open: false,
        }
    }

    /// The same, but the connection stays open after the response.
    #[must_use]
    pub fn keep_open(mut self) -> Self {
        self.keeps_open = true;
        self
    }

    /// The connection, once opened.
    pub fn handle(&self) -> Option<TcpHandle> {
        self.handle
    }

    /// Time of the handshake, once it is complete.
    pub fn handshake(&self) -> Option<Duration> {
        self.connected.map(|at| at.saturating_since(self.start))
    }

    /// The result so far; it is due from the beginning of the handshake on.
    pub fn exchange(&self) -> Exchange {
        self.exchange
    }

    /// Why the connection failed, if it did.
    pub fn error(&self) -> Option<tcp::ConnectionError> {
        self.error
    }

    /// Bytes of the response so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn read(&mut self, host: &mut HostContext<'_>, handle: TcpHandle) {
        let now = host.now();
        let Some(connection) = host.tcp(handle) else {
            return;
        };
        let mut bytes = Vec::new();
        connection.read(now, usize::MAX, &mut bytes);
        if bytes.is_empty() {
            return;
        }
        self.exchange.first_byte.get_or_insert(now);
        self.intact &= Pattern::new(1).matches(self.received, &bytes);
        self.received += bytes.len() as u64;
        if self.received >= self.response_len {
            self.exchange.finish.get_or_insert(now);
            self.exchange.verified = self.intact && self.received == self.response_len;
            if !self.keeps_open {
                connection.finish();
            }
        }
    }
}

impl Application for TcpExchange {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(self.start, 0);
    }

    fn on_event(&mut self, _: &mut HostContext<'_>, _: ConnectionHandle, _: Event) {}

    fn on_timer(&mut self, host: &mut HostContext<'_>, _: u64) {
        self.handle = Some(host.connect_tcp(&self.config, self.remote));
    }

    fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        match event {
            tcp::Event::Connected => {
                self.connected = Some(host.now());
                let mut head = [0; HEAD_LEN];
                head[..8].copy_from_slice(&self.output.len.to_be_bytes());
                head[8..].copy_from_slice(&self.response_len.to_be_bytes());
                if let Some(connection) = host.tcp(handle) {
                    connection.write(&head);
                    self.output.pump(connection);
                }
            }
            tcp::Event::Writable => {
                if let Some(connection) = host.tcp(handle) {
                    self.output.pump(connection);
                }
            }
            tcp::Event::Readable | tcp::Event::PeerFinished => self.read(host, handle),
            tcp::Event::Failed(error) => {
                self.error = Some(error);
                if self.exchange.finish.is_none() {
                    self.exchange.failed = Some(host.now());
                }
            }
            tcp::Event::Closed => {}
        }
    }
}

#[derive(Debug, Default)]
struct Request {
    head: Vec<u8>,
    received: u64,
    response: Option<Output>,
}

/// Answers each connection's request once it is complete.
#[derive(Debug, Default)]
pub struct TcpExchangeServer {
    requests: BTreeMap<TcpHandle, Request>,
    damaged: u64,
}

impl TcpExchangeServer {
    /// A server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests with incorrect content; they are answered nevertheless.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn serve(&mut self, host: &mut HostContext<'_>, handle: TcpHandle) {
        let now = host.now();
        let Some(connection) = host.tcp(handle) else {
            return;
        };
        let request = self.requests.entry(handle).or_default();
        let mut bytes = Vec::new();
        connection.read(now, usize::MAX, &mut bytes);
        let missing = (HEAD_LEN - request.head.len()).min(bytes.len());
        let (head, body) = bytes.split_at(missing);
        request.head.extend_from_slice(head);
        let matches = Pattern::new(0).matches(request.received, body);
        self.damaged += u64::from(!matches);
        request.received += body.len() as u64;
        let Some((request_len, response_len)) = lengths(&request.head) else {
            return;
        };
        if request.received >= request_len {
            let response = request
                .response
                .get_or_insert_with(|| Output::new(1, response_len));
            response.pump(connection);
        }
    }
}

/// Lengths of request and response, once the header is complete.
fn lengths(head: &[u8]) -> Option<(u64, u64)> {
    let (request, rest) = head.split_first_chunk()?;
    let response = rest.first_chunk()?;
    Some((u64::from_be_bytes(*request), u64::from_be_bytes(*response)))
}

impl Application for TcpExchangeServer {
    fn on_event(&mut self, _: &mut HostContext<'_>, _: ConnectionHandle, _: Event) {}

    fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        match event {
            tcp::Event::Readable | tcp::Event::Writable => self.serve(host, handle),
            tcp::Event::PeerFinished => {
                if let Some(connection) = host.tcp(handle) {
                    connection.finish();
                }
            }
            tcp::Event::Closed | tcp::Event::Failed(_) => {
                self.requests.remove(&handle);
            }
            tcp::Event::Connected => {}
        }
    }
}
