//! Address validation tokens are valid once (RFC 9000, sections 8.1.3, 8.1.4 and 21.3): a client that
//! sends one again, perhaps from a forged address, gets what a client without a token gets.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::units::ByteCount;
use swiftwater_quic::wire::{PacketType, PartialHeader};
use swiftwater_quic::{
    ClientConfig, Connection, DatagramMeta, Endpoint, EndpointConfig, Event, RetryPolicy, Routed,
    ServerConfig, SocketId, TransportConfig, UsedTokens, Worker,
};
use swiftwater_tls::EndpointSecrets;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::Instant;

/// Length of the servers' certificate chains, bytes: many times the anti-amplification limit.
const CHAIN: usize = 20_000;

/// Bytes that a client may get for its first datagram before its address is validated.
const LIMIT: usize = 3 * 1200;

fn second(second: u64) -> Instant {
    Instant::from_millis(second * 1000)
}

/// An address of the host that the tokens are for; the port is free to choose.
fn client_address(port: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 7], port))
}

fn meta(remote: SocketAddr) -> DatagramMeta {
    DatagramMeta {
        remote,
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

fn endpoint_config(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}

/// The workers of a server, with clones of one configuration.
fn workers(config: &EndpointConfig, retry: RetryPolicy, count: u8) -> Vec<Endpoint> {
    let server = Arc::new(ServerConfig {
        retry,
        ..ServerConfig::new(
            Arc::new(NullServer::new(["test"]).with_chain_len(CHAIN)),
            Arc::default(),
        )
    });
    (0..count)
        .map(|index| {
            let mut config = config.clone();
            config.worker = Worker { index, count };
            Endpoint::new(config, Some(Arc::clone(&server)), [1; 32])
        })
        .collect()
}

/// A client that sends `token` in its Initial.
fn client(now: Instant, seed: u8, token: Vec<u8>) -> (Endpoint, Connection) {
    let mut endpoint = Endpoint::new(endpoint_config(seed), None, [seed; 32]);
    let config = ClientConfig {
        crypto: Arc::new(NullClient::new(["test"])),
        transport: Arc::new(TransportConfig::default()),
    };
    let server = "192.0.2.2:443".parse().unwrap();
    let connecting = endpoint.connect_with_token(now, &config, server, "localhost", token);
    (endpoint, connecting.unwrap().1)
}

fn datagrams(now: Instant, connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut buf = vec![0; 1500];
    let mut all = Vec::new();
    while let Some(transmit) = connection.poll_transmit(now, 1, &mut buf) {
        all.push(buf[..transmit.size].to_vec());
    }
    all
}

/// What a worker did with a client's Initial.
#[derive(Debug, PartialEq)]
enum Answer {
    /// A packet without a connection: Retry, or a refusal.
    Stateless(PacketType),
    /// A connection, which sent so many bytes to a client that sent nothing from then on.
    Connection { bytes: usize },
}

const RETRY: Answer = Answer::Stateless(PacketType::Retry);

impl Answer {
    /// True if the connection kept to the anti-amplification limit.
    fn is_limited(&self) -> bool {
        matches!(self, Self::Connection { bytes } if *bytes <= LIMIT)
    }

    /// True if the connection took the address for validated: it sent an initial window and probes.
    fn is_unlimited(&self) -> bool {
        matches!(self, Self::Connection { bytes } if *bytes > 4 * LIMIT)
    }
}

/// Sends `datagram` from `port` of the client, which reads no answer.
fn send(worker: &mut Endpoint, now: Instant, port: u16, datagram: &[u8]) -> Answer {
    let from = meta(client_address(port));
    let mut out = vec![0; 1500];
    match worker.route(now, &from, datagram, &mut out) {
        Routed::NewConnection {
            handle,
            mut connection,
        } => {
            connection.handle_datagram(now, &from, &mut datagram.to_vec());
            let mut bytes = 0;
            let mut at = now;
            loop {
                bytes += datagrams(at, &mut connection)
                    .iter()
                    .map(Vec::len)
                    .sum::<usize>();
                while connection.poll_event().is_some() {}
                while let Some(event) = connection.poll_endpoint_event() {
                    worker.handle_event(handle, event);
                }
                let Some(timeout) = connection.poll_timeout() else {
                    break;
                };
                at = timeout;
                connection.handle_timeout(at);
            }
            assert!(connection.is_drained());
            Answer::Connection { bytes }
        }
        Routed::Response(transmit) => {
            let header = PartialHeader::parse(&out[..transmit.size], 8).unwrap();
            Answer::Stateless(header.packet_type)
        }
        routed => panic!("{routed:?}"),
    }
}

/// Sends a first Initial with `token` from `port` of the client.
fn present(worker: &mut Endpoint, now: Instant, port: u16, token: &[u8]) -> Answer {
    let (_, mut connection) = client(now, port as u8, token.to_vec());
    let datagram = datagrams(now, &mut connection).remove(0);
    assert_eq!(datagram.len(), 1200);
    send(worker, now, port, &datagram)
}

/// The token that a worker gives in a connection at `now`, which needs a server without Retry.
fn address_token(worker: &mut Endpoint, mut now: Instant) -> Vec<u8> {
    let seed = worker.stats().accepted as u8 | 0x80;
    let (_client, mut connection) = client(now, seed, Vec::new());
    let at_server = meta(client_address(seed.into()));
    let at_client = meta("192.0.2.2:443".parse().unwrap());
    let mut served: Option<Box<Connection>> = None;
    for _ in 0..1000 {
        now += Duration::from_micros(100);
        for mut datagram in datagrams(now, &mut connection) {
            if served.is_none() {
                let mut out = [0; 1500];
                match worker.route(now, &at_server, &datagram, &mut out) {
                    Routed::NewConnection { connection, .. } => served = Some(connection),
                    routed => panic!("{routed:?}"),
                }
            }
            let served = served.as_mut().unwrap();
            served.handle_datagram(now, &at_server, &mut datagram);
        }
        for mut datagram in datagrams(now, served.as_mut().unwrap()) {
            connection.handle_datagram(now, &at_client, &mut datagram);
        }
        while let Some(event) = connection.poll_event() {
            if let Event::NewToken { token } = event {
                return token;
            }
        }
    }
    panic!("the server gave no token")
}

/// The token of a Retry for `port` of the client, and a first Initial that answers it.
fn retry_answer(worker: &mut Endpoint, now: Instant, port: u16) -> Vec<u8> {
    let (_, mut connection) = client(now, port as u8, Vec::new());
    let first = datagrams(now, &mut connection).remove(0);
    let mut out = vec![0; 1500];
    let routed = worker.route(now, &meta(client_address(port)), &first, &mut out);
    let Routed::Response(transmit) = routed else {
        panic!("{routed:?} instead of Retry");
    };
    let server = meta("192.0.2.2:443".parse().unwrap());
    connection.handle_datagram(now, &server, &mut out[..transmit.size]);
    datagrams(now, &mut connection).remove(0)
}

#[test]
fn a_token_that_is_sent_again_lifts_no_limit() {
    let mut worker = workers(&endpoint_config(1), RetryPolicy::Never, 1).remove(0);
    let token = address_token(&mut worker, second(1));
    let without = present(&mut worker, second(2), 1, &[]);
    assert!(without.is_limited(), "{without:?}");
    let first = present(&mut worker, second(3), 2, &token);
    assert!(first.is_unlimited(), "{first:?}");
    // From other ports of the address, as an attacker who forges it would send them.
    for n in 0..20 {
        let again = present(&mut worker, second(4 + n), 3 + n as u16, &token);
        assert!(again.is_limited(), "{again:?}");
    }
    assert_eq!(worker.stats().used_tokens, 20);
    // Another token is not affected.
    let other = address_token(&mut worker, second(30));
    assert!(present(&mut worker, second(31), 90, &other).is_unlimited());
}

#[test]
fn a_token_that_is_sent_again_saves_no_retry() {
    let config = endpoint_config(1);
    let token = address_token(&mut workers(&config, RetryPolicy::Never, 1)[0], second(1));
    let mut worker = workers(&config, RetryPolicy::Always, 1).remove(0);
    assert_eq!(present(&mut worker, second(2), 1, &[]), RETRY);
    assert!(present(&mut worker, second(3), 2, &token).is_unlimited());
    for port in 3..10 {
        assert_eq!(present(&mut worker, second(4), port, &token), RETRY);
    }
}

#[test]
fn a_token_used_at_one_worker_is_used_at_all() {
    let config = endpoint_config(1);
    let mut workers = workers(&config, RetryPolicy::Never, 3);
    for user in 0..3 {
        let now = 100 * (user as u64 + 1);
        let token = address_token(&mut workers[user], second(now));
        let first = present(&mut workers[(user + 1) % 3], second(now + 1), 1, &token);
        assert!(first.is_unlimited(), "{first:?}");
        for (n, worker) in workers.iter_mut().enumerate() {
            let again = present(worker, second(now + 20), 2 + n as u16, &token);
            assert!(again.is_limited(), "{again:?}");
        }
    }
}

/// An attempt that comes to nothing costs the client its token as little as its connection.
#[test]
fn a_refused_client_keeps_its_token() {
    let mut worker = workers(&endpoint_config(1), RetryPolicy::Never, 1).remove(0);
    let token = address_token(&mut worker, second(1));
    worker.set_refusing(true);
    let refused = Answer::Stateless(PacketType::Initial);
    assert_eq!(present(&mut worker, second(2), 1, &token), refused);
    worker.set_refusing(false);
    assert!(present(&mut worker, second(3), 2, &token).is_unlimited());
}

/// After the connection that used it is over, its packet starts another, within the limit even where a
/// Retry is required: a client ignores a second Retry.
#[test]
fn the_token_of_a_retry_that_is_sent_again_lifts_no_limit() {
    for retry in [RetryPolicy::Always, RetryPolicy::Never] {
        let config = endpoint_config(1);
        let mut asker = workers(&config, RetryPolicy::Always, 1).remove(0);
        let answer = retry_answer(&mut asker, second(1), 1);
        let mut workers = workers(&config, retry, 2);
        let first = send(&mut workers[0], second(1), 1, &answer);
        assert!(first.is_unlimited(), "{first:?}");
        for worker in &mut workers {
            let again = send(worker, second(12), 1, &answer);
            assert!(again.is_limited(), "{again:?}");
            let stats = worker.stats();
            assert_eq!((stats.invalid_tokens, stats.used_tokens), (0, 1));
        }
    }
}

/// With the least memory, a server that has accepted more clients with tokens than it can record.
#[test]
fn a_full_record_accepts_no_token_twice() {
    let mut config = endpoint_config(1);
    config.used_tokens = Arc::new(UsedTokens::new(ByteCount::ZERO));
    let capacity = config.used_tokens.generation_capacity();
    let mut worker = workers(&config, RetryPolicy::Never, 1).remove(0);
    let used = address_token(&mut worker, second(1));
    let unused = address_token(&mut worker, second(1));
    assert!(present(&mut worker, second(2), 1, &used).is_unlimited());
    let mut asker = workers(&config, RetryPolicy::Always, 1).remove(0);
    let mut buf = [0; 1500];
    for n in 0..=2 * capacity {
        let now = Instant::from_millis(20_000 + n / 100);
        let answer = retry_answer(&mut asker, now, n as u16 | 1);
        let routed = asker.route(now, &meta(client_address(n as u16 | 1)), &answer, &mut buf);
        let Routed::NewConnection { handle, .. } = routed else {
            panic!("{routed:?} for client {n}");
        };
        asker.handle_event(handle, swiftwater_quic::EndpointEvent::Drained);
    }
    for token in [used, unused] {
        let again = present(&mut worker, second(30), 3, &token);
        assert!(again.is_limited(), "{again:?}");
    }
    let recent = address_token(&mut worker, second(40));
    assert!(present(&mut worker, second(41), 5, &recent).is_unlimited());
}
