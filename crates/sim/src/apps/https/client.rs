//! A client: opens a connection when the first request comes, sends all requests over it, and opens a
//! new one after a failure.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use swiftwater_units::Instant;

use super::frame::{self, DATA, END_STREAM, Frame, HEADERS, PREFACE, SETTINGS, SETTINGS_LEN};
use super::multiplexer::Multiplexer;
use super::session::{TlsSession, TlsSizes};
use crate::application::HostContext;
use crate::apps::request::Exchange;
use crate::pattern::Pattern;
use crate::tcp;
use crate::tcp_table::TcpHandle;

/// Parameters of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpsConfig {
    /// TCP.
    pub tcp: tcp::Config,
    /// Flights of TLS.
    pub tls: TlsSizes,
    /// The first connection resumes a session of an earlier one. Default false; later ones do.
    pub resumes: bool,
    /// Bytes of a request's field section. Default 200.
    pub request_head: usize,
    /// Bytes of a response's field section. Default 150.
    pub response_head: usize,
    /// The server sends responses one after the other, in the order of their requests, as RFC 9218, section 10, has it for
    /// responses that are not incremental, the default of HTTP/3 and HTTP/2 alike. Default false: they take turns, over TCP a
    /// frame each, over QUIC a packet each. Mean completion times depend on it more than on the transport.
    pub in_order: bool,
}

impl Default for HttpsConfig {
    fn default() -> Self {
        Self {
            tcp: tcp::Config::default(),
            tls: TlsSizes::default(),
            resumes: false,
            request_head: 200,
            response_head: 150,
            in_order: false,
        }
    }
}

#[derive(Debug)]
struct Pending {
    exchange: usize,
    pattern: Pattern,
    expected: u64,
    received: u64,
    intact: bool,
}

#[derive(Debug)]
struct Link {
    handle: TcpHandle,
    tls: TlsSession,
    multiplexer: Multiplexer,
    next_stream: u32,
    pending: BTreeMap<u32, Pending>,
    connected: bool,
}

/// Makes requests of one server. Not an application by itself: a part of
/// [`WebClient`](super::super::WebClient), or of an application of yours that passes on its calls.
#[derive(Debug)]
pub struct HttpsClient {
    config: HttpsConfig,
    remote: SocketAddr,
    link: Option<Link>,
    has_ticket: bool,
    exchanges: Vec<Exchange>,
    connections: u64,
    error: Option<tcp::ConnectionError>,
    ready: Option<Instant>,
}

impl HttpsClient {
    /// A client of `remote` without a connection.
    pub fn new(config: HttpsConfig, remote: SocketAddr) -> Self {
        Self {
            has_ticket: config.resumes,
            config,
            remote,
            link: None,
            exchanges: Vec::new(),
            connections: 0,
            error: None,
            ready: None,
        }
    }

    /// Results of all requests, in order.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Connections opened so far.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// The present connection.
    pub fn handle(&self) -> Option<TcpHandle> {
        self.link.as_ref().map(|link| link.handle)
    }

    /// When the handshakes of TCP and TLS of the latest connection were complete.
    pub fn ready(&self) -> Option<Instant> {
        self.ready
    }

    /// Why the last failed connection failed.
    pub fn error(&self) -> Option<tcp::ConnectionError> {
        self.error
    }

    /// Makes a request of `request_len` bytes and a response of `response_len` bytes, bodies without
    /// field sections, due now; opens a connection if there is none. Returns its index in
    /// [`HttpsClient::exchanges`].
    pub fn request(
        &mut self,
        host: &mut HostContext<'_>,
        (request_len, response_len): (u64, u64),
    ) -> usize {
        let index = self.exchanges.len();
        self.exchanges.push(Exchange::due(host.now()));
        let link = match self.link.take() {
            Some(link) => link,
            None => self.open(host),
        };
        let link = self.link.insert(link);
        let stream = link.next_stream;
        link.next_stream += 2;
        let pattern = index as u64;
        let head = frame::request(self.config.request_head, response_len, pattern);
        link.multiplexer.push(stream, head, (pattern, request_len));
        link.pending.insert(
            stream,
            Pending {
                exchange: index,
                pattern: Pattern::new(pattern),
                expected: response_len,
                received: 0,
                intact: true,
            },
        );
        self.pump(host);
        index
    }

    /// Ends the connection, if there is one; requests without a response fail. The next request opens
    /// another, which resumes the session.
    pub fn close(&mut self, host: &mut HostContext<'_>) {
        self.lose(host);
    }

    fn open(&mut self, host: &mut HostContext<'_>) -> Link {
        self.connections += 1;
        Link {
            handle: host.connect_tcp(&self.config.tcp, self.remote),
            tls: TlsSession::client(self.config.tls, self.has_ticket),
            multiplexer: Multiplexer::default(),
            next_stream: 1,
            pending: BTreeMap::new(),
            connected: false,
        }
    }

    fn pump(&mut self, host: &mut HostContext<'_>) {
        if let Some(link) = &mut self.link
            && link.connected
            && let Some(connection) = host.tcp(link.handle)
        {
            link.multiplexer.pump(&mut link.tls, connection);
        }
    }

    /// An event of a TCP connection; those of others are ignored.
    pub fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        if self.handle() != Some(handle) {
            return;
        }
        match event {
            tcp::Event::Connected => {
                if let Some(link) = &mut self.link {
                    link.connected = true;
                }
                self.pump(host);
            }
            tcp::Event::Readable => self.read(host),
            tcp::Event::Writable => self.pump(host),
            tcp::Event::PeerFinished => {
                self.read(host);
                self.lose(host);
            }
            tcp::Event::Failed(error) => {
                self.error = Some(error);
                self.lose(host);
            }
            tcp::Event::Closed => {}
        }
    }

    /// The connection is gone, and with it what is pending.
    fn lose(&mut self, host: &mut HostContext<'_>) {
        if let Some(link) = self.link.take() {
            for pending in link.pending.values() {
                self.exchanges[pending.exchange].failed = Some(host.now());
            }
            if let Some(connection) = host.tcp(link.handle) {
                if link.pending.is_empty() {
                    connection.finish();
                } else {
                    connection.abort();
                }
            }
        }
    }

    fn read(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let Some(link) = &mut self.link else {
            return;
        };
        let Some(connection) = host.tcp(link.handle) else {
            return;
        };
        let mut bytes = Vec::new();
        connection.read(now, usize::MAX, &mut bytes);
        let was_ready = link.tls.is_ready();
        link.tls.on_bytes(&bytes);
        if link.tls.is_ready() && !was_ready {
            self.ready = Some(now);
            link.tls.write(&preface());
        }
        self.has_ticket |= link.tls.has_ticket();
        let mut plaintext = std::mem::take(link.tls.plaintext());
        let mut used = 0;
        while let Some((frame, len)) = frame::first(&plaintext[used..]) {
            used += len;
            if let Some(pending) = link.pending.get_mut(&frame.stream) {
                let exchange = &mut self.exchanges[pending.exchange];
                if pending.on_frame(now, &frame, exchange) {
                    link.pending.remove(&frame.stream);
                }
            }
        }
        plaintext.drain(..used);
        *link.tls.plaintext() = plaintext;
        self.pump(host);
    }
}

impl Pending {
    /// True if the response is over.
    fn on_frame(&mut self, now: Instant, frame: &Frame<'_>, exchange: &mut Exchange) -> bool {
        if frame.kind == HEADERS {
            exchange.first_byte.get_or_insert(now);
        } else if frame.kind == DATA {
            self.intact &= self.pattern.matches(self.received, frame.payload);
            self.received += frame.payload.len() as u64;
        }
        let is_over = frame.flags & END_STREAM != 0;
        if is_over {
            exchange.finish = Some(now);
            exchange.verified = self.intact && self.received == self.expected;
        }
        is_over
    }
}

/// What a client sends before its first request.
fn preface() -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    let settings = Frame {
        kind: SETTINGS,
        flags: 0,
        stream: 0,
        payload: &[0; SETTINGS_LEN],
    };
    settings.write(&mut out);
    out
}
