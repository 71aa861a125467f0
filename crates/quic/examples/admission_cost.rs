//! What the first packets of clients cost a server: time for each answer, and heap for each half-open
//! connection.
//!
//! ```sh
//! cargo run --release -p swiftwater-quic --example admission_cost
//! ```
//!
//! Real TLS (Ed25519, X25519), one thread, no sockets. Time is the least of several rounds, so
//! that other work on the machine matters little; memory is counted by the allocator.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it reads the clock, and has failed if it can't go on"
)]

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig,
    RetryPolicy, Routed, ServerConfig, SocketId, TransportConfig,
};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, ServerTls};
use swiftwater_units::Instant;

/// First packets of each kind in a round, which is shorter than the time slices of the system, and
/// rounds.
const PACKETS: u32 = 100;
const ROUNDS: u32 = 300;
/// Connections that are half open at the same time when memory is counted.
const HALF_OPEN: u32 = 10_000;

fn meta(n: u32) -> DatagramMeta {
    let host = Ipv4Addr::from_bits(0x0a00_0000 + n);
    DatagramMeta {
        remote: SocketAddr::from((host, 5000)),
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

fn now() -> Instant {
    Instant::from_millis(1000)
}

/// The certificate that every server of the example has.
fn certificate() -> DevCertificate {
    DevCertificate::deterministic(["localhost"]).unwrap()
}

fn server(retry: RetryPolicy, limit: usize) -> Endpoint {
    let tls = ServerTls::from_dev_certificate(&certificate()).unwrap();
    let server = ServerConfig {
        retry,
        ..ServerConfig::new(
            Arc::new(tls.alpn(["test"])),
            Arc::new(TransportConfig::default()),
        )
    };
    let mut config = EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([1; 32])));
    config.max_handshakes = limit;
    Endpoint::new(config, Some(Arc::new(server)), [1; 32])
}

/// A client's first datagram.
fn first_packet() -> Vec<u8> {
    let tls = ClientTls::with_roots([certificate().certificate_der()]).unwrap();
    let config = ClientConfig {
        crypto: Arc::new(tls.alpn(["test"])),
        transport: Arc::new(TransportConfig::default()),
    };
    let key = Arc::new(EndpointSecrets::from_seed([2; 32]));
    let mut endpoint = Endpoint::new(EndpointConfig::new(key), None, [2; 32]);
    let to = "192.0.2.1:443".parse().unwrap();
    let (_, mut connection) = endpoint.connect(now(), &config, to, "localhost").unwrap();
    let mut buf = vec![0; 1500];
    let transmit = connection.poll_transmit(now(), 1, &mut buf).unwrap();
    buf.truncate(transmit.size);
    buf
}

/// Microseconds for one packet: the least of the rounds.
fn time(mut round: impl FnMut()) -> f64 {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let started = Clock::now();
        round();
        least = least.min(started.elapsed());
    }
    least.as_secs_f64() * 1e6 / f64::from(PACKETS)
}

/// A server gets the datagram from as many addresses.
fn cost(name: &str, endpoint: &mut Endpoint, datagram: &[u8]) {
    let mut out = vec![0; 1500];
    let mut round = || {
        for n in 0..PACKETS {
            black_box(endpoint.route(now(), &meta(n), datagram, &mut out));
        }
    };
    let each = time(&mut round);
    let info = allocation_counter::measure(&mut round);
    println!(
        "{name}: {each:.2} us, {:.1} allocations, {:.1} bytes stay",
        info.count_total as f64 / f64::from(PACKETS),
        info.bytes_current as f64 / f64::from(PACKETS),
    );
}

/// Takes the first packet and answers it with the server's flight.
fn accept(
    endpoint: &mut Endpoint,
    n: u32,
    datagram: &[u8],
    out: &mut [u8],
) -> (ConnectionHandle, Box<Connection>) {
    let routed = endpoint.route(now(), &meta(n), datagram, out);
    let Routed::NewConnection {
        handle,
        mut connection,
    } = routed
    else {
        panic!("{routed:?}");
    };
    connection.handle_datagram(now(), &meta(n), &mut datagram.to_vec());
    while connection.poll_transmit(now(), 10, out).is_some() {}
    while let Some(event) = connection.poll_endpoint_event() {
        endpoint.handle_event(handle, event);
    }
    (handle, connection)
}

fn accepted(datagram: &[u8]) {
    let count = 4;
    let mut out = vec![0; 15_000];
    let mut endpoint = server(RetryPolicy::Never, usize::MAX);
    let mut next = 0;
    let each = time(|| {
        for n in next..next + count {
            black_box(accept(&mut endpoint, n, datagram, &mut out));
        }
        next += count;
    }) * f64::from(PACKETS / count);
    println!("accepted, and answered with certificate and signature: {each:.1} us");
    let mut endpoint = server(RetryPolicy::Never, usize::MAX);
    let mut connections = Vec::with_capacity(HALF_OPEN as usize);
    let mut hold = |range: std::ops::Range<u32>, connections: &mut Vec<_>| {
        let info = allocation_counter::measure(|| {
            for n in range.clone() {
                connections.push(accept(&mut endpoint, n, datagram, &mut out));
            }
        });
        info.bytes_current as f64 / f64::from(range.end - range.start)
    };
    let each = hold(0..HALF_OPEN, &mut connections);
    println!("heap of a half-open connection: {each:.0} bytes, {HALF_OPEN} at a time");
    println!(
        "of these the connection itself: {} bytes",
        size_of::<Connection>()
    );
    // And when they time out.
    let over = now() + Duration::from_secs(30);
    let info = allocation_counter::measure(|| {
        for (handle, mut connection) in connections.drain(..) {
            while !connection.is_drained() {
                connection.handle_timeout(over);
            }
            while let Some(event) = connection.poll_endpoint_event() {
                endpoint.handle_event(handle, event);
            }
        }
    });
    let freed = -info.bytes_current as f64 / f64::from(HALF_OPEN);
    println!("freed when they time out: {freed:.0} bytes each");
    assert_eq!(endpoint.connections(), 0);
}

fn main() {
    let first = first_packet();
    let mut damaged = first.clone();
    damaged[600] ^= 1;
    let mut unknown = first.clone();
    unknown[1..5].copy_from_slice(&[0xba, 0xba, 0xba, 0xba]);
    let mut short = vec![0x41; 60];
    short[20] = 7;
    let small = &first[..1100];
    let mut retrying = server(RetryPolicy::Always, 10_000);
    let mut full = server(RetryPolicy::Never, 0);
    cost("too small", &mut full, small);
    cost("another version, negotiated", &mut full, &unknown);
    cost("unknown connection, reset", &mut full, &short);
    cost("Retry", &mut retrying, &first);
    cost("damaged, dropped", &mut full, &damaged);
    cost("refused", &mut full, &first);
    accepted(&first);
}
