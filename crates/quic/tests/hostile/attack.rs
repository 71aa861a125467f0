//! A victim (our endpoint with its connection), a [`RawPeer`] against it, and the time.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each user takes a part; a failed unwrap is a failed test"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::crypto::{ClientCrypto, EncryptionLevel, ServerCrypto};
use swiftwater_quic::wire::{ErrorCode, Frame, VERSION_1, VERSION_2};
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramMeta, EarlyData, Endpoint,
    EndpointConfig, EndpointStats, Event, RandomCids, RetryPolicy, Routed, ServerConfig, SocketId,
    TransportConfig,
};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, MemorySessionStore, ServerTls};
use swiftwater_units::{Instant, Side, StreamId};

use crate::bystander::Bystander;
use crate::coding::encode;
use crate::meter::Meter;
use crate::peer::{Close, Packet, RawPeer};
use crate::persona::Persona;

const ALPN: &str = "test";

/// Which end and how.
pub(crate) struct Setup {
    /// Real TLS instead of the null cipher.
    pub(crate) real_tls: bool,
    /// The victim's configuration.
    pub(crate) transport: TransportConfig,
    /// The peer's.
    pub(crate) persona: Persona,
    pub(crate) retry: RetryPolicy,
    /// Bytes of the server's certificate chain (null cipher).
    pub(crate) chain_len: usize,
    /// Length of the victim's connection IDs.
    pub(crate) cid_len: usize,
    /// Both ends resume sessions with early data (null cipher): the client keeps them here.
    pub(crate) sessions: Option<Arc<MemorySessionStore>>,
    /// The victim's versions, best first.
    pub(crate) versions: Vec<u32>,
    /// The victim greases.
    pub(crate) grease: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            real_tls: false,
            transport: TransportConfig::default(),
            persona: Persona::default(),
            retry: RetryPolicy::Never,
            chain_len: 800,
            cid_len: 8,
            sessions: None,
            versions: vec![VERSION_1, VERSION_2],
            grease: true,
        }
    }
}

impl Setup {
    /// The configuration of the victim's endpoint.
    fn endpoint(&self, seed: u8) -> EndpointConfig {
        let key = EndpointSecrets::from_seed([seed; 32]);
        let mut config = EndpointConfig::new(Arc::new(key));
        config.cids = Some(Arc::new(RandomCids::new(self.cid_len)));
        config.versions.clone_from(&self.versions);
        config.grease = self.grease;
        config
    }
}

/// The endpoint under attack.
pub(crate) struct Victim {
    pub(crate) endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// What happened on the newest connection.
    pub(crate) events: Vec<Event>,
    buf: Vec<u8>,
    /// Answers of the endpoint itself: Version Negotiation, Retry, refusals, resets.
    pub(crate) answers: Vec<Vec<u8>>,
    /// Connections that were accepted.
    pub(crate) accepted: usize,
    /// Memory of the endpoint and the connection.
    pub(crate) meter: Meter,
    /// Another client of the same endpoint.
    pub(crate) bystander: Option<Bystander>,
}

impl Victim {
    fn new(seed: u8, config: EndpointConfig, server: Option<ServerConfig>) -> Self {
        Self {
            endpoint: Endpoint::new(config, server.map(Arc::new), [seed; 32]),
            connection: None,
            events: Vec::new(),
            buf: vec![0; 15_000],
            answers: Vec::new(),
            accepted: 0,
            meter: Meter::default(),
            bystander: None,
        }
    }

    pub(crate) fn has_connection(&self) -> bool {
        self.connection.is_some()
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    pub(crate) fn stats(&self) -> EndpointStats {
        self.endpoint.stats()
    }

    /// Gives it a datagram.
    pub(crate) fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let meta = DatagramMeta {
            remote: from,
            local_ip: None,
            socket: SocketId::default(),
            ecn: None,
        };
        let mut out = [0; 1500];
        let (endpoint, meter) = (&mut self.endpoint, &mut self.meter);
        match meter.measure(|| endpoint.route(now, &meta, datagram, &mut out)) {
            Routed::Connection(handle) => {
                let bystander = self.bystander.as_mut();
                if let Some(bystander) = bystander.filter(|other| other.handle == handle) {
                    return bystander.receive(now, &meta, datagram);
                }
            }
            Routed::NewConnection { handle, connection } => {
                self.accepted += 1;
                self.events.clear();
                self.connection = Some((handle, *connection));
            }
            Routed::Response(transmit) => {
                assert_eq!(transmit.destination, from);
                self.answers.push(out[..transmit.size].to_vec());
                return;
            }
            _ => return,
        }
        if let Some((_, connection)) = &mut self.connection {
            let mut copy = datagram.to_vec();
            meter.measure(|| connection.handle_datagram(now, &meta, &mut copy));
        }
    }

    /// Takes out what it has to send: one datagram each, with its receiver.
    pub(crate) fn transmits(&mut self, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut datagrams = Vec::new();
        let Some((handle, connection)) = &mut self.connection else {
            return datagrams;
        };
        let (buf, meter) = (&mut self.buf, &mut self.meter);
        while let Some(transmit) = meter.measure(|| connection.poll_transmit(now, 10, buf)) {
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in buf[..transmit.size].chunks(segment) {
                datagrams.push((transmit.destination, datagram.to_vec()));
            }
            assert!(datagrams.len() < 10_000, "the victim never stops sending");
        }
        while let Some(event) = connection.poll_event() {
            self.events.push(event);
        }
        let endpoint = &mut self.endpoint;
        while let Some(event) = connection.poll_endpoint_event() {
            meter.measure(|| endpoint.handle_event(*handle, event));
        }
        datagrams
    }

    /// Its application has seen the events.
    pub(crate) fn discard_events(&mut self) {
        let events = &mut self.events;
        self.meter.measure(|| events.clear());
    }

    /// Its application writes to a stream; how much was taken.
    pub(crate) fn write(&mut self, id: StreamId, data: &[u8]) -> usize {
        let connection = &mut self.connection.as_mut().unwrap().1;
        let write = || connection.send_stream(id).write(data).unwrap_or_default();
        self.meter.measure(write)
    }

    /// Lets its connection act on the time.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            self.meter.measure(|| connection.handle_timeout(now));
        }
    }

    /// Every reason for which it said that the connection closed.
    pub(crate) fn reasons(&self) -> Vec<&ConnectionError> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Closed { reason } => Some(reason),
                _ => None,
            })
            .collect()
    }
}

/// The victim, its peer and the time.
pub(crate) struct Attack {
    pub(crate) victim: Victim,
    pub(crate) peer: RawPeer,
    pub(crate) now: Instant,
    /// Where the peer sends from.
    pub(crate) from: SocketAddr,
    /// Where the victim's datagrams went, and how long they were.
    pub(crate) sent: Vec<(SocketAddr, usize)>,
}

/// The peer's usual address.
pub(crate) fn home() -> SocketAddr {
    "192.0.2.66:6666".parse().unwrap()
}

fn server_crypto(setup: &Setup, certificate: &DevCertificate) -> Arc<dyn ServerCrypto> {
    if setup.real_tls {
        let tls = ServerTls::from_dev_certificate(certificate).unwrap();
        Arc::new(tls.alpn([ALPN]))
    } else {
        let early = setup.sessions.is_some();
        let server = NullServer::new([ALPN]).with_chain_len(setup.chain_len);
        Arc::new(server.with_ticket(early).with_early_data(early))
    }
}

fn client_crypto(setup: &Setup, certificate: &DevCertificate) -> Arc<dyn ClientCrypto> {
    if setup.real_tls {
        let tls = ClientTls::with_roots([certificate.certificate_der()]).unwrap();
        Arc::new(tls.alpn([ALPN]))
    } else if let Some(store) = &setup.sessions {
        let client = NullClient::new([ALPN]).with_early_data(true);
        Arc::new(client.with_sessions(Arc::clone(store) as _))
    } else {
        Arc::new(NullClient::new([ALPN]))
    }
}

/// A server under attack that has received nothing yet, and the client that will attack it.
pub(crate) fn server_victim(setup: Setup) -> Attack {
    let certificate = DevCertificate::deterministic(["localhost"]).unwrap();
    let client_crypto = client_crypto(&setup, &certificate);
    let peer = RawPeer::client(&*client_crypto, &setup.persona);
    let endpoint = setup.endpoint(2);
    let config = ServerConfig {
        retry: setup.retry,
        early_data: match setup.sessions {
            Some(_) => EarlyData::Accept,
            None => EarlyData::Reject,
        },
        address_token_lifetime: Duration::from_secs(3600),
        ..ServerConfig::new(
            server_crypto(&setup, &certificate),
            Arc::new(setup.transport),
        )
    };
    Attack {
        victim: Victim::new(2, endpoint, Some(config)),
        peer,
        now: Instant::from_millis(1),
        from: home(),
        sent: Vec::new(),
    }
}

/// A client under attack whose first datagram is out, before any peer exists.
pub(crate) struct LoneClient {
    pub(crate) victim: Victim,
    pub(crate) first: Vec<u8>,
    pub(crate) now: Instant,
    pub(crate) crypto: Arc<dyn ServerCrypto>,
    persona: Persona,
}

pub(crate) fn client_victim(setup: Setup) -> LoneClient {
    let certificate = DevCertificate::deterministic(["localhost"]).unwrap();
    let crypto = server_crypto(&setup, &certificate);
    let mut victim = Victim::new(1, setup.endpoint(1), None);
    let now = Instant::from_millis(1);
    let config = ClientConfig {
        crypto: client_crypto(&setup, &certificate),
        transport: Arc::new(setup.transport),
    };
    let connection = victim.endpoint.connect(now, &config, home(), "localhost");
    victim.connection = Some(connection.unwrap());
    let mut first = victim.transmits(now);
    assert_eq!(first.len(), 1, "one datagram holds a ClientHello");
    LoneClient {
        victim,
        first: first.pop().unwrap().1,
        now,
        crypto,
        persona: setup.persona,
    }
}

impl LoneClient {
    /// Gives the client a datagram from its server after a round trip; returns what it sends.
    pub(crate) fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.now += Duration::from_millis(100);
        self.victim.receive(self.now, home(), datagram);
        let transmits = self.victim.transmits(self.now);
        transmits
            .into_iter()
            .map(|(_, datagram)| datagram)
            .collect()
    }

    /// The server enters; it has not answered `first` yet.
    pub(crate) fn meet(self, first: &[u8], retried: bool) -> Attack {
        let original = retried.then(|| {
            let header = swiftwater_quic::wire::PartialHeader::parse(&self.first, 0);
            header.unwrap().dst_cid
        });
        let mut peer = RawPeer::server(&*self.crypto, &self.persona, first, original);
        peer.open(first);
        Attack {
            victim: self.victim,
            peer,
            now: self.now,
            from: home(),
            sent: Vec::new(),
        }
    }

    /// The server enters and answers as it should.
    pub(crate) fn meet_server(self) -> Attack {
        let first = self.first.clone();
        self.meet(&first, false)
    }
}

/// A server under attack that accepts early data, and a client that was there before and is about to
/// send its first Initial again. Also what makes further such clients.
pub(crate) fn returning_client(transport: TransportConfig) -> (Attack, impl Fn() -> RawPeer) {
    let setup = Setup {
        transport,
        sessions: Some(Arc::new(MemorySessionStore::new(1))),
        ..Setup::default()
    };
    let certificate = DevCertificate::deterministic(["localhost"]).unwrap();
    let crypto = client_crypto(&setup, &certificate);
    let mut attack = server_victim(setup);
    attack.establish();
    attack.converse();
    let now = attack.now;
    attack.victim.connection().close(now, 0, b"");
    attack.wait(Duration::from_secs(60));
    let client = move || RawPeer::client(&*crypto, &Persona::default());
    // Another port, so that its Initial is none of the first connection.
    attack.from.set_port(7777);
    attack.peer = client();
    assert!(
        attack.peer.has_keys(EncryptionLevel::ZeroRtt),
        "no ticket was given"
    );
    (attack, client)
}

/// An established connection to a server under attack.
pub(crate) fn on_server(setup: Setup) -> Attack {
    let mut attack = server_victim(setup);
    attack.establish();
    attack
}

/// An established connection of a client under attack.
pub(crate) fn on_client(setup: Setup) -> Attack {
    let mut attack = client_victim(setup).meet_server();
    attack.establish();
    attack
}

/// An established connection of a victim in the role `side`, all else as usual.
pub(crate) fn on(side: Side) -> Attack {
    match side {
        Side::Server => on_server(Setup::default()),
        Side::Client => on_client(Setup::default()),
    }
}

impl Attack {
    /// Gives the victim a datagram and the peer what it answers. The peer says nothing itself.
    pub(crate) fn deliver(&mut self, datagram: &[u8]) {
        self.victim.receive(self.now, self.from, datagram);
        self.collect();
    }

    /// Lets another client connect to the same server. From then on `talk` shows that it is served.
    pub(crate) fn invite(&mut self) {
        let bystander = Bystander::join(&mut self.victim.endpoint, self.now);
        self.victim.bystander = Some(bystander);
    }

    /// The bystander has bytes echoed while the attack goes on.
    pub(crate) fn talk(&mut self) {
        if let Some(bystander) = &mut self.victim.bystander {
            bystander.talk(&mut self.victim.endpoint, self.now);
        }
    }

    /// Gives the peer what the victim sends.
    pub(crate) fn collect(&mut self) {
        for (to, datagram) in self.victim.transmits(self.now) {
            self.sent.push((to, datagram.len()));
            self.peer.open(&datagram);
        }
    }

    /// Lets both talk until the peer has nothing well-behaved left to say, or the victim closes.
    pub(crate) fn converse(&mut self) {
        self.collect();
        for _ in 0..100 {
            let answers = self.peer.answers();
            if answers.is_empty() {
                return;
            }
            for datagram in answers {
                if !self.victim.reasons().is_empty() {
                    return;
                }
                self.deliver(&datagram);
            }
            self.now += Duration::from_millis(1);
        }
        panic!("they never stop talking");
    }

    /// Completes and confirms the handshake.
    pub(crate) fn establish(&mut self) {
        self.converse();
        for _ in 0..100 {
            if self.peer.is_complete() {
                break;
            }
            self.pass(Duration::from_millis(50));
        }
        assert!(self.peer.is_complete(), "{:?}", self.victim.events);
        if self.victim.connection().side() == Side::Client {
            self.send_frames(&[Frame::HandshakeDone]);
        }
        self.converse();
        // Acknowledgements that the victim holds back.
        self.pass(Duration::from_millis(50));
        assert!(
            self.victim.events.contains(&Event::Confirmed),
            "{:?}",
            self.victim.events
        );
    }

    /// Sends one 1-RTT packet and lets the victim answer.
    pub(crate) fn send(&mut self, payload: &[u8]) {
        self.send_packet(&Packet::new(EncryptionLevel::OneRtt, payload));
    }

    /// Sends one packet in a datagram of its own.
    pub(crate) fn send_packet(&mut self, packet: &Packet<'_>) {
        let datagram = self.peer.seal(packet);
        self.deliver(&datagram);
    }

    /// Sends frames in one 1-RTT packet.
    pub(crate) fn send_frames(&mut self, frames: &[Frame<'_>]) {
        self.send(&encode(frames));
    }

    /// Lets time pass; the peer acknowledges what arrives meanwhile.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.pass_until(end, true);
    }

    /// Lets time pass without a datagram of the attacker.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        self.pass_until(end, false);
    }

    fn pass_until(&mut self, end: Instant, answer: bool) {
        for _ in 0..100_000 {
            self.collect();
            if answer {
                for datagram in self.peer.answers() {
                    self.deliver(&datagram);
                }
            }
            let next = self.victim.connection().poll_timeout();
            let Some(at) = next.filter(|&at| at <= end) else {
                self.now = self.now.max(end);
                self.collect();
                return;
            };
            self.now = self.now.max(at);
            self.victim.handle_timeout(self.now);
        }
        panic!("the victim's timers never rest");
    }

    /// The victim has closed with `code`, blaming a frame of `frame_type` (0 for none): once to its
    /// application, and without repeating it unless asked. It drains and is gone.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self, code: ErrorCode, frame_type: u64) {
        self.assert_closed_as(code, Some(frame_type));
    }

    /// The same, whatever frame is blamed.
    #[track_caller]
    pub(crate) fn assert_closed_with(&mut self, code: ErrorCode) {
        self.assert_closed_as(code, None);
    }

    #[track_caller]
    fn assert_closed_as(&mut self, code: ErrorCode, frame_type: Option<u64>) {
        let reasons = self.victim.reasons();
        assert_eq!(reasons.len(), 1, "{:?}", self.victim.events);
        match reasons[0] {
            ConnectionError::Transport(error) => assert_eq!(error.code, code, "{error}"),
            other => panic!("closed because of: {other}"),
        }
        let closes = self.peer.closes();
        assert!(!closes.is_empty(), "the peer got no CONNECTION_CLOSE");
        for close in &closes {
            assert_eq!(close.code, code.0, "{closes:?}");
            if let Some(frame_type) = frame_type {
                assert_eq!(close.frame_type, Some(frame_type), "{closes:?}");
            }
        }
        for level in EncryptionLevel::SPACES {
            let of = closes.iter().filter(|close| close.level == level).count();
            assert!(of <= 1, "closed more than once: {closes:?}");
        }
        // From then on nothing is sent.
        let packets = self.peer.packets.len();
        self.wait(Duration::from_secs(60));
        assert_eq!(self.peer.packets.len(), packets, "it spoke after closing");
        assert!(self.victim.connection().is_drained());
        assert_eq!(self.victim.reasons().len(), 1);
        let others = usize::from(self.victim.bystander.is_some());
        assert_eq!(self.victim.endpoint.connections(), others);
    }

    /// The victim has not closed and still acknowledges.
    #[track_caller]
    pub(crate) fn assert_open(&mut self) {
        assert!(
            self.victim.reasons().is_empty(),
            "{:?}",
            self.victim.reasons()
        );
        let number = self.peer.next_number(EncryptionLevel::OneRtt);
        self.send_frames(&[Frame::Ping]);
        self.pass(Duration::from_millis(50));
        assert!(
            self.peer.is_acked(EncryptionLevel::OneRtt, number),
            "packet {number} was not acknowledged"
        );
    }

    /// Every CONNECTION_CLOSE of the victim.
    pub(crate) fn closes(&self) -> Vec<Close> {
        self.peer.closes()
    }

    /// Bytes that the victim sent to `to`.
    pub(crate) fn bytes_to(&self, to: SocketAddr) -> usize {
        self.sent
            .iter()
            .filter(|(address, _)| *address == to)
            .map(|(_, len)| len)
            .sum()
    }
}
