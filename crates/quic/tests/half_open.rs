//! A hundred thousand first packets from clients that do not exist: what they cost the server, and
//! that it serves all other clients meanwhile (RFC 9000, sections 8.1 and 21.3).
//!
//! Memory is the heap of endpoint and connections, counted by the allocator of this test; time is
//! virtual.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "hostile/meter.rs"]
mod meter;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use meter::Meter;
use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Event,
    ReadOutcome, RetryPolicy, Routed, ServerConfig, SocketId, TransportConfig, UsedTokens,
};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, ServerTls};
use swiftwater_units::{Dir, Instant, StreamId};

/// First packets of a flood.
const FLOOD: u32 = 100_000;
/// Heap of one half-open connection at most, bytes: TLS session, flight and routes included.
const HALF_OPEN: i64 = 32 << 10;
/// Heap of the record of used tokens: of its two generations the first is begun by the first token.
const TOKEN_RECORD: i64 = UsedTokens::DEFAULT_MEMORY.get().cast_signed() / 2;
/// What stays of one that is over, bytes: room in tables, which the next flood uses again.
const LEFT_BEHIND: i64 = 1 << 10;

fn server_address() -> SocketAddr {
    "192.0.2.2:443".parse().unwrap()
}

/// An address of the flood.
fn spoofed(n: u32) -> SocketAddr {
    let [a, b, c, _] = (n << 8).to_be_bytes();
    let port = 1024 + (n % 251) as u16;
    SocketAddr::from(([10, a, b, c], port))
}

fn meta(remote: SocketAddr) -> DatagramMeta {
    DatagramMeta {
        remote,
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

fn endpoint(seed: u8, max_handshakes: usize, server: Option<ServerConfig>) -> Endpoint {
    let mut config = EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])));
    config.max_handshakes = max_handshakes;
    Endpoint::new(config, server.map(Arc::new), [seed; 32])
}

/// Both ends of a kind of cryptography.
struct Crypto {
    server: Arc<dyn ServerCrypto>,
    client: Arc<dyn ClientCrypto>,
}

impl Crypto {
    fn null() -> Self {
        Self {
            server: Arc::new(NullServer::new(["test"])),
            client: Arc::new(NullClient::new(["test"])),
        }
    }

    fn tls() -> Self {
        let certificate = DevCertificate::deterministic(["localhost"]).unwrap();
        let server = ServerTls::from_dev_certificate(&certificate).unwrap();
        let client = ClientTls::with_roots([certificate.certificate_der()]).unwrap();
        Self {
            server: Arc::new(server.alpn(["test"])),
            client: Arc::new(client.alpn(["test"])),
        }
    }

    fn client_config(&self) -> ClientConfig {
        ClientConfig {
            crypto: Arc::clone(&self.client),
            transport: Arc::new(TransportConfig::default()),
        }
    }
}

/// A server and all its connections.
struct Server {
    endpoint: Endpoint,
    connections: BTreeMap<ConnectionHandle, Box<Connection>>,
    meter: Meter,
    /// Bytes received from, and sent to, clients that do not exist.
    received: u64,
    sent: u64,
    buf: Vec<u8>,
}

impl Server {
    fn new(crypto: &Crypto, retry: RetryPolicy, max_handshakes: usize) -> Self {
        let transport = Arc::new(TransportConfig::default());
        let config = ServerConfig {
            retry,
            ..ServerConfig::new(Arc::clone(&crypto.server), transport)
        };
        Self {
            endpoint: endpoint(1, max_handshakes, Some(config)),
            connections: BTreeMap::new(),
            meter: Meter::default(),
            received: 0,
            sent: 0,
            buf: vec![0; 15_000],
        }
    }

    /// Takes a datagram; returns what it answers.
    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Vec<Vec<u8>> {
        let (endpoint, buf) = (&mut self.endpoint, &mut self.buf);
        let routed = self
            .meter
            .measure(|| endpoint.route(now, &meta(from), datagram, buf));
        let handle = match routed {
            Routed::Connection(handle) => handle,
            Routed::NewConnection { handle, connection } => {
                self.connections.insert(handle, connection);
                handle
            }
            Routed::Response(transmit) => {
                assert!(transmit.size < datagram.len());
                assert_eq!(transmit.destination, from);
                return vec![self.buf[..transmit.size].to_vec()];
            }
            _ => return Vec::new(),
        };
        let connection = self.connections.get_mut(&handle).unwrap();
        let mut copy = datagram.to_vec();
        self.meter
            .measure(|| connection.handle_datagram(now, &meta(from), &mut copy));
        self.poll(now, handle)
    }

    /// What a connection has to send.
    fn poll(&mut self, now: Instant, handle: ConnectionHandle) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        let connection = self.connections.get_mut(&handle).unwrap();
        let (endpoint, buf) = (&mut self.endpoint, &mut self.buf);
        while let Some(transmit) = self.meter.measure(|| connection.poll_transmit(now, 1, buf)) {
            datagrams.push(buf[..transmit.size].to_vec());
        }
        while connection.poll_event().is_some() {}
        while let Some(event) = connection.poll_endpoint_event() {
            self.meter.measure(|| endpoint.handle_event(handle, event));
        }
        if connection.is_drained() {
            let connection = self.connections.remove(&handle);
            self.meter.measure(|| drop(connection));
        }
        datagrams
    }

    /// A datagram of a client that does not exist, and never reads the answers.
    fn receive_spoofed(&mut self, now: Instant, n: u32, datagram: &[u8]) {
        self.received += datagram.len() as u64;
        let answers = self.receive(now, spoofed(n), datagram);
        self.sent += answers
            .iter()
            .map(|answer| answer.len() as u64)
            .sum::<u64>();
    }

    /// Lets time pass; only the server acts.
    fn wait(&mut self, from: Instant, time: Duration) -> Instant {
        let end = from + time;
        let handles: Vec<_> = self.connections.keys().copied().collect();
        for handle in handles {
            while let Some(connection) = self.connections.get_mut(&handle) {
                let Some(at) = connection.poll_timeout().filter(|&at| at <= end) else {
                    break;
                };
                self.meter.measure(|| connection.handle_timeout(at));
                let answers = self.poll(at, handle);
                self.sent += answers
                    .iter()
                    .map(|answer| answer.len() as u64)
                    .sum::<u64>();
            }
        }
        end
    }
}

/// A client that exists.
struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    address: SocketAddr,
    stream: Option<StreamId>,
    refused: bool,
    echoed: usize,
    buf: Vec<u8>,
}

impl Client {
    fn new(crypto: &Crypto, now: Instant, seed: u8) -> Self {
        let mut endpoint = endpoint(seed, 1, None);
        let config = crypto.client_config();
        let connecting = endpoint.connect(now, &config, server_address(), "localhost");
        let (handle, connection) = connecting.unwrap();
        Self {
            endpoint,
            handle,
            connection,
            address: SocketAddr::from(([203, 0, 113, seed], 1111)),
            stream: None,
            refused: false,
            echoed: 0,
            buf: vec![0; 1500],
        }
    }

    /// Its first datagram.
    fn first(&mut self, now: Instant) -> Vec<u8> {
        let transmit = self.connection.poll_transmit(now, 1, &mut self.buf);
        self.buf[..transmit.unwrap().size].to_vec()
    }

    /// One step: timers, what it has to say, and the answers. Says something as soon as it can, and
    /// has the server say the same.
    fn step(&mut self, now: Instant, server: &mut Server) {
        let connection = &mut self.connection;
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(transmit) = self.connection.poll_transmit(now, 1, &mut self.buf) {
            let datagram = self.buf[..transmit.size].to_vec();
            let answers = server.receive(now, self.address, &datagram);
            self.receive(now, answers);
        }
        let Some(stream) = self.stream else {
            return;
        };
        for handle in server.connections.keys().copied().collect::<Vec<_>>() {
            // The server's application, for this client alone.
            let served = server.connections.get_mut(&handle).unwrap();
            if served.remote() != self.address {
                continue;
            }
            served.accept(Dir::Bi);
            let mut bytes = [0; 100];
            if let Ok(ReadOutcome::Data(n)) = served.recv_stream(stream).read(&mut bytes) {
                served.send_stream(stream).write(&bytes[..n]).unwrap();
            }
            let answers = server.poll(now, handle);
            self.receive(now, answers);
        }
    }

    fn receive(&mut self, now: Instant, answers: Vec<Vec<u8>>) {
        for mut answer in answers {
            let meta = meta(server_address());
            let mut out = [0; 1500];
            match self.endpoint.route(now, &meta, &answer, &mut out) {
                Routed::Connection(_) => {}
                routed => panic!("{routed:?}"),
            }
            self.connection.handle_datagram(now, &meta, &mut answer);
        }
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Confirmed => {
                    self.stream = self.connection.open(Dir::Bi);
                    self.say();
                }
                Event::Closed { .. } => self.refused = true,
                _ => {}
            }
        }
        while let Some(event) = self.connection.poll_endpoint_event() {
            self.endpoint.handle_event(self.handle, event);
        }
        if let Some(stream) = self.stream {
            let mut bytes = [0; 100];
            let read = self.connection.recv_stream(stream).read(&mut bytes);
            if let Ok(ReadOutcome::Data(n)) = read {
                self.echoed += n;
                self.say();
            }
        }
    }

    fn say(&mut self) {
        let stream = self.stream.unwrap();
        let written = self.connection.send_stream(stream).write(b"hello");
        assert_eq!(written, Ok(5));
    }
}

/// The datagram that every client of the flood sends: their addresses differ, which is enough.
fn first_packet(crypto: &Crypto, now: Instant) -> Vec<u8> {
    Client::new(crypto, now, 99).first(now)
}

fn start() -> Instant {
    Instant::from_millis(1000)
}

/// The flood with the usual configuration: Retry above a thousand handshakes. A client that was there
/// before is served all the time, and another one that comes in the middle gets in.
fn spoofed_flood(crypto: &Crypto) {
    let first = first_packet(crypto, start());
    let retry = RetryPolicy::Above(1000);
    let mut server = Server::new(crypto, retry, 10_000);
    let mut now = start();
    let mut bystander = Client::new(crypto, now, 2);
    for _ in 0..100 {
        bystander.step(now, &mut server);
        now += Duration::from_millis(2);
    }
    assert!(bystander.echoed > 0);
    let empty = server.meter.held();
    let mut newcomer = None;
    let mut full = 0;
    for n in 0..FLOOD {
        server.receive_spoofed(now, n, &first);
        if n == 2000 {
            full = server.meter.held();
        }
        if n == FLOOD / 2 {
            newcomer = Some(Client::new(crypto, now, 3));
        }
        if n % 1000 == 0 {
            // The flood comes in one second.
            now += Duration::from_millis(10);
            let before = bystander.echoed;
            bystander.step(now, &mut server);
            bystander.step(now, &mut server);
            assert!(bystander.echoed > before, "the bystander is not served");
            if let Some(newcomer) = &mut newcomer {
                newcomer.step(now, &mut server);
            }
        }
    }
    let newcomer = newcomer.unwrap();
    assert!(newcomer.echoed > 0, "no newcomer is served");
    let stats = server.endpoint.stats();
    // 1001 of them, the bystander and the newcomer; all others were asked for a token.
    assert_eq!(stats.accepted, 1001 + 2);
    assert_eq!(stats.retries_sent, u64::from(FLOOD) - 1001 + 1);
    assert_eq!(server.endpoint.handshakes(), 1001);
    assert!(server.sent <= 3 * server.received);
    // Bounded, whatever else comes: a half-open connection costs this, a Retry nothing.
    let each = (full - empty) / 1001;
    assert!(each <= HALF_OPEN, "{each} bytes for a half-open connection");
    let grown = server.meter.peak() - full - TOKEN_RECORD;
    assert!(grown <= 128 << 10, "{grown} bytes more for Retry packets");
    // Ten seconds later they are gone, and their memory with them.
    now = server.wait(now, Duration::from_secs(11));
    assert_eq!(server.endpoint.handshakes(), 0);
    assert_eq!(server.endpoint.connections(), 2);
    let left = server.meter.held() - empty - TOKEN_RECORD;
    println!(
        "{each} bytes for a half-open connection, {} stay",
        left / 1001
    );
    assert!(left <= 1001 * LEFT_BEHIND, "{left} bytes are left");
    // The next flood finds the same place.
    let peak = server.meter.peak();
    for n in 0..3000 {
        server.receive_spoofed(now, n, &first);
    }
    assert_eq!(server.endpoint.handshakes(), 1001);
    assert!(server.meter.peak() <= peak + (128 << 10));
}

#[test]
fn a_hundred_thousand_spoofed_first_packets_are_survived() {
    spoofed_flood(&Crypto::null());
}

#[test]
fn a_hundred_thousand_spoofed_first_packets_are_survived_with_tls() {
    spoofed_flood(&Crypto::tls());
}

/// Clients that prove their addresses, or a server that asks for no proof: handshakes are limited.
#[test]
fn handshakes_beyond_the_limit_are_refused_without_memory() {
    let crypto = Crypto::null();
    let (limit, flood) = (500_u32, 20_000_u32);
    let first = first_packet(&crypto, start());
    let mut server = Server::new(&crypto, RetryPolicy::Never, limit as usize);
    let now = start();
    let empty = server.meter.held();
    for n in 0..limit {
        server.receive_spoofed(now, n, &first);
    }
    let full = server.meter.held();
    assert!(full - empty <= i64::from(limit) * HALF_OPEN);
    let sent = server.sent;
    for n in limit..flood {
        server.receive_spoofed(now, n, &first);
    }
    let refused = u64::from(flood - limit);
    assert_eq!(server.endpoint.stats().refused, refused);
    assert_eq!(server.endpoint.handshakes(), limit as usize);
    // A refusal is a small packet, and leaves nothing.
    assert!(server.sent - sent <= refused * 100);
    assert!(server.meter.peak() - full <= 4096);
    // So is a client that exists, until the time of the others is over.
    let mut late = Client::new(&crypto, now, 4);
    late.step(now, &mut server);
    assert!(late.refused);
    let mut now = server.wait(now, Duration::from_secs(11));
    assert_eq!(server.endpoint.handshakes(), 0);
    assert!(server.meter.held() - empty <= i64::from(limit) * LEFT_BEHIND);
    let mut late = Client::new(&crypto, now, 5);
    for _ in 0..10 {
        late.step(now, &mut server);
        now += Duration::from_millis(2);
    }
    assert!(late.echoed > 0);
}

/// A token works for the address that it was given to and for one Initial destination; the thief's
/// attempt costs a refusal, the replayer's a connection that counts against the limit like any other.
#[test]
fn a_token_that_is_replayed_opens_no_second_place() {
    let crypto = Crypto::null();
    let mut server = Server::new(&crypto, RetryPolicy::Always, 100);
    let now = start();
    let mut client = Client::new(&crypto, now, 6);
    let first = client.first(now);
    let answers = server.receive(now, client.address, &first);
    client.receive(now, answers);
    let second = client.first(now);
    server.receive(now, client.address, &second);
    assert_eq!(server.endpoint.handshakes(), 1);
    let held = server.meter.held();
    for n in 0..1000 {
        // Again from the same address: it belongs to the connection that is there.
        server.receive(now, client.address, &second);
        // From others: refused.
        server.receive(now, spoofed(n), &second);
    }
    assert_eq!(server.endpoint.handshakes(), 1);
    assert_eq!(server.endpoint.stats().invalid_tokens, 1000);
    let grown = server.meter.peak() - held;
    assert!(grown <= 8 << 10, "{grown}");
    // Nor after the connection is over, when the token's time is over too.
    let now = server.wait(now, Duration::from_secs(20));
    assert_eq!(server.endpoint.connections(), 0);
    server.receive(now, client.address, &second);
    assert_eq!(server.endpoint.connections(), 0);
    assert_eq!(server.endpoint.stats().invalid_tokens, 1001);
}
