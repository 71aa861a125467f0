//! What a full handshake costs a server, by part, without sockets: real TLS (ECDSA P-256), both ends in
//! one thread, the client closes as soon as it is confirmed.
//!
//! ```sh
//! cargo bench -p swiftwater-quic --bench handshakes            # COUNT: handshakes of each kind
//! valgrind --tool=callgrind target/release/deps/handshakes-... 200 x25519
//! ```
//!
//! Times are the medians of all handshakes, so that other work on the machine matters little. With the name
//! of a kind only that one runs, as an instruction count requires.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it reads the clock, and has failed if it can't go on"
)]

#[path = "support/metered.rs"]
mod metered;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Routed,
    ServerConfig, SocketId, TransportConfig,
};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, ServerTls, Tickets};
use swiftwater_units::Instant;

use metered::{Meter, Metered};

/// Handshakes of each kind, unless the command line says otherwise.
const COUNT: usize = 2000;

/// What is compared: a name, the key exchange and the tickets.
type Kind = (&'static str, &'static dyn SupportedKxGroup, Tickets);

const KINDS: [Kind; 5] = [
    ("x25519", kx_group::X25519, Tickets::Off),
    ("p256", kx_group::SECP256R1, Tickets::Off),
    ("x25519mlkem768", kx_group::X25519MLKEM768, Tickets::Off),
    (
        "tickets-in-memory",
        kx_group::X25519,
        Tickets::SingleUse { capacity: 4096 },
    ),
    ("tickets-sealed", kx_group::X25519, Tickets::Stateless),
];

/// One end and its connection.
struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Box<Connection>)>,
    address: SocketAddr,
    inbox: VecDeque<Vec<u8>>,
    buf: Vec<u8>,
}

/// The parts of a server's handshake, microseconds.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// The first datagram: checked, and a connection made.
    admission: f64,
    /// From there to the server's flight, which waits to be sent.
    flight: f64,
    /// From the flight to the last datagram before the client closes.
    finish: f64,
    /// Closing, draining, and freeing.
    end: f64,
    /// Of all these, the TLS session.
    tls: f64,
    /// Of all these, making Initial keys.
    initial_keys: f64,
    sent: usize,
    batches: usize,
    received: usize,
    bytes_sent: usize,
}

impl Cost {
    fn total(&self) -> f64 {
        self.admission + self.flight + self.finish + self.end
    }
}

fn meta(remote: SocketAddr) -> DatagramMeta {
    DatagramMeta {
        remote,
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

fn peer(address: &str, seed: u8, server: Option<Arc<ServerConfig>>) -> Peer {
    let config = EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])));
    Peer {
        endpoint: Endpoint::new(config, server, [seed; 32]),
        connection: None,
        address: address.parse().unwrap(),
        inbox: VecDeque::new(),
        buf: vec![0; 15_000],
    }
}

impl Peer {
    /// Sends what waits; returns datagrams, batches and bytes.
    fn flush(&mut self, now: Instant, to: &mut VecDeque<Vec<u8>>) -> (usize, usize, usize) {
        let (mut datagrams, mut batches, mut bytes) = (0, 0, 0);
        let Some((handle, connection)) = &mut self.connection else {
            return (0, 0, 0);
        };
        while let Some(transmit) = connection.poll_transmit(now, 10, &mut self.buf) {
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in self.buf[..transmit.size].chunks(segment) {
                to.push_back(datagram.to_vec());
                datagrams += 1;
            }
            batches += 1;
            bytes += transmit.size;
        }
        while connection.poll_event().is_some() {}
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        (datagrams, batches, bytes)
    }

    /// Takes one datagram; microseconds until it was routed, and until it was handled.
    fn receive(&mut self, now: Instant, from: SocketAddr, mut datagram: Vec<u8>) -> (f64, f64) {
        let mut out = [0; 1500];
        let started = Clock::now();
        match self.endpoint.route(now, &meta(from), &datagram, &mut out) {
            Routed::Connection(_) => {}
            Routed::NewConnection { handle, connection } => {
                self.connection = Some((handle, connection));
            }
            _ => return (0.0, 0.0),
        }
        let routed = micros(started);
        let started = Clock::now();
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_datagram(now, &meta(from), &mut datagram);
        }
        (routed, micros(started))
    }

    /// Waits until the connection is over, and drops it.
    fn end(&mut self, now: Instant) {
        let over = now + Duration::from_secs(600);
        let Some((handle, mut connection)) = self.connection.take() else {
            return;
        };
        while !connection.is_drained() {
            connection.handle_timeout(over);
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(handle, event);
        }
    }
}

fn micros(since: Clock) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// Server, client and how the client connects.
fn pair(kind: &Kind, meter: &Arc<Meter>) -> (Peer, Peer, ClientConfig) {
    let (_, group, tickets) = kind;
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let transport = Arc::new(TransportConfig::default());
    let tls = ServerTls::from_dev_certificate(&certificate).unwrap();
    let tls = tls.alpn(["test"]).tickets(*tickets).unwrap();
    let crypto = Arc::new(Metered {
        crypto: Arc::new(tls),
        meter: Arc::clone(meter),
    });
    let server = ServerConfig {
        address_token_lifetime: Duration::from_secs(3600),
        ..ServerConfig::new(crypto, Arc::clone(&transport))
    };
    // What the client says first decides about the key exchange.
    let provider = rustls::crypto::CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![*group],
        ..aws_lc_rs::default_provider()
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.certificate_der()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"test".to_vec()];
    let client = ClientConfig {
        crypto: Arc::new(ClientTls::from_rustls(config)),
        transport,
    };
    (
        peer("192.0.2.2:2000", 2, Some(Arc::new(server))),
        peer("192.0.2.1:1000", 1, None),
        client,
    )
}

/// One connection, from the first datagram to its end.
fn handshake(
    server: &mut Peer,
    client: &mut Peer,
    config: &ClientConfig,
    meter: &Meter,
    now: &mut Instant,
) -> Cost {
    let (handle, connection) = client
        .endpoint
        .connect(*now, config, server.address, "localhost")
        .unwrap();
    client.connection = Some((handle, Box::new(connection)));
    let mut cost = Cost::default();
    meter.take();
    let mut is_closed = false;
    let mut flight_left = false;
    loop {
        let sent = client.flush(*now, &mut server.inbox);
        cost.received += sent.0;
        let mut spent = 0.0;
        while let Some(datagram) = server.inbox.pop_front() {
            let (routed, handled) = server.receive(*now, client.address, datagram);
            if flight_left {
                spent += routed;
            } else {
                cost.admission += routed;
            }
            spent += handled;
        }
        let started = Clock::now();
        let (datagrams, batches, bytes) = server.flush(*now, &mut client.inbox);
        spent += micros(started);
        match (is_closed, flight_left) {
            (true, _) => cost.end += spent,
            (_, true) => cost.finish += spent,
            (_, false) => cost.flight += spent,
        }
        flight_left |= datagrams > 0;
        cost.sent += datagrams;
        cost.batches += batches;
        cost.bytes_sent += bytes;
        *now += Duration::from_micros(50);
        while let Some(datagram) = client.inbox.pop_front() {
            client.receive(*now, server.address, datagram);
        }
        let connection = client.connection.as_mut().map(|(_, connection)| connection);
        if let Some(connection) = connection
            && connection.stats().confirmed_after.is_some()
            && !is_closed
        {
            connection.close(*now, 0, b"");
            is_closed = true;
        } else if sent.0 + datagrams == 0 {
            break;
        }
    }
    let started = Clock::now();
    server.end(*now);
    cost.end += micros(started);
    client.end(*now);
    let (session, initial_keys) = meter.take();
    cost.tls = session as f64 / 1e3;
    cost.initial_keys = initial_keys as f64 / 1e3;
    *now += Duration::from_millis(1);
    cost
}

fn median(costs: &[Cost], part: impl Fn(&Cost) -> f64) -> f64 {
    let mut values: Vec<f64> = costs.iter().map(part).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.iter().find_map(|argument| argument.parse().ok());
    let only = |name: &str| arguments.iter().any(|argument| argument == name);
    let chosen = KINDS.iter().any(|(name, ..)| only(name));
    println!(
        "{:20} {:>7} {:>9} {:>7} {:>7} {:>6} {:>7} {:>8} {:>6} {:>7} {:>6} {:>8}",
        "microseconds",
        "server",
        "admission",
        "flight",
        "finish",
        "end",
        "TLS",
        "initial",
        "sent",
        "batches",
        "recv",
        "bytes out",
    );
    for kind in KINDS.iter().filter(|(name, ..)| !chosen || only(name)) {
        let meter = Arc::new(Meter::default());
        let (mut server, mut client, config) = pair(kind, &meter);
        let mut now = Instant::from_millis(1000);
        let costs: Vec<Cost> = (0..count.unwrap_or(COUNT))
            .map(|_| handshake(&mut server, &mut client, &config, &meter, &mut now))
            .collect();
        let of = |part: fn(&Cost) -> f64| median(&costs, part);
        println!(
            "{:20} {:7.1} {:9.1} {:7.1} {:7.1} {:6.1} {:7.1} {:8.1} {:6} {:7} {:6} {:8}",
            kind.0,
            of(Cost::total),
            of(|cost| cost.admission),
            of(|cost| cost.flight),
            of(|cost| cost.finish),
            of(|cost| cost.end),
            of(|cost| cost.tls),
            of(|cost| cost.initial_keys),
            of(|cost| cost.sent as f64),
            of(|cost| cost.batches as f64),
            of(|cost| cost.received as f64),
            of(|cost| cost.bytes_sent as f64),
        );
    }
}
