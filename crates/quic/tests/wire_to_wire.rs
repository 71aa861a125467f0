//! Two endpoints joined by a perfect wire: the smallest driver that keeps the crate's contract.
//! Everything with delay, loss or hostility is tested on `swiftwater-sim`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Event,
    ReadOutcome, RetryPolicy, Routed, ServerConfig, StreamEvent, TransportConfig,
};
use swiftwater_tls::{
    ClientTls, DevCertificate, EndpointSecrets, ServerTls,
    null::{NullClient, NullServer},
};
use swiftwater_units::{Dir, Instant};

const ALPN: &str = "test";

struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    inbox: VecDeque<Vec<u8>>,
    events: Vec<Event>,
}

struct Wire {
    client: Peer,
    server: Peer,
    now: Instant,
}

fn peer(address: &str, seed: u8, server: Option<Arc<ServerConfig>>) -> Peer {
    let config = EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])));
    Peer {
        endpoint: Endpoint::new(config, server, [seed; 32]),
        connection: None,
        address: address.parse().unwrap(),
        inbox: VecDeque::new(),
        events: Vec::new(),
    }
}

impl Wire {
    fn new(real_tls: bool, retry: RetryPolicy) -> Self {
        let transport = Arc::new(TransportConfig::default());
        let certificate = DevCertificate::deterministic(["localhost"]).unwrap();
        let server = ServerConfig {
            crypto: if real_tls {
                Arc::new(
                    ServerTls::from_dev_certificate(&certificate)
                        .unwrap()
                        .alpn([ALPN]),
                )
            } else {
                Arc::new(NullServer::new([ALPN]))
            },
            transport: Arc::clone(&transport),
            retry,
            retry_token_lifetime: Duration::from_secs(15),
            address_token_lifetime: Duration::from_secs(3600),
        };
        let client_config = ClientConfig {
            crypto: if real_tls {
                Arc::new(
                    ClientTls::with_roots([certificate.certificate_der()])
                        .unwrap()
                        .alpn([ALPN]),
                )
            } else {
                Arc::new(NullClient::new([ALPN]))
            },
            transport,
        };
        let mut wire = Self {
            client: peer("192.0.2.1:1000", 1, None),
            server: peer("192.0.2.2:2000", 2, Some(Arc::new(server))),
            now: Instant::from_millis(1),
        };
        let remote = wire.server.address;
        wire.client.connection = Some(
            wire.client
                .endpoint
                .connect(wire.now, &client_config, remote, "localhost")
                .unwrap(),
        );
        wire
    }

    /// Moves datagrams until both ends are silent, then time to the next timeout; false if there is
    /// none within `limit`.
    fn step(&mut self, limit: Duration) -> bool {
        loop {
            let sent = self.client.flush(self.now, &mut self.server)
                | self.server.flush(self.now, &mut self.client);
            let (client, server) = (self.client.address, self.server.address);
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            let received = self.client.receive(self.now, server, &mut to_server)
                | self.server.receive(self.now, client, &mut to_client);
            self.server.inbox.extend(to_server);
            self.client.inbox.extend(to_client);
            if !sent && !received {
                break;
            }
            self.now += Duration::from_micros(10);
        }
        let next = [&self.client, &self.server]
            .into_iter()
            .filter_map(|peer| peer.connection.as_ref()?.1.poll_timeout())
            .min();
        match next {
            Some(at) if at <= self.now + limit => {
                self.now = self.now.max(at);
                for peer in [&mut self.client, &mut self.server] {
                    if let Some((_, connection)) = &mut peer.connection {
                        connection.handle_timeout(self.now);
                    }
                }
                true
            }
            _ => false,
        }
    }
}

impl Peer {
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    fn flush(&mut self, now: Instant, to: &mut Peer) -> bool {
        let Some((handle, connection)) = &mut self.connection else {
            return false;
        };
        let mut buf = vec![0; 15_000];
        let mut any = false;
        while let Some(transmit) = connection.poll_transmit(now, 10, &mut buf) {
            assert_eq!(transmit.destination, to.address);
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            to.inbox
                .extend(buf[..transmit.size].chunks(segment).map(<[u8]>::to_vec));
            any = true;
        }
        while let Some(event) = connection.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        any
    }

    /// Takes what arrived; answers of the endpoint itself go to `replies`.
    fn receive(&mut self, now: Instant, from: SocketAddr, replies: &mut Vec<Vec<u8>>) -> bool {
        let mut any = false;
        while let Some(mut datagram) = self.inbox.pop_front() {
            any = true;
            let meta = DatagramMeta {
                remote: from,
                local_ip: None,
                ecn: None,
            };
            let mut out = [0; 1500];
            match self.endpoint.route(now, &meta, &datagram, &mut out) {
                Routed::Connection(_) => {}
                Routed::NewConnection { handle, connection } => {
                    self.connection = Some((handle, *connection));
                }
                Routed::Response(transmit) => {
                    replies.push(out[..transmit.size].to_vec());
                    continue;
                }
                _ => continue,
            }
            self.connection().handle_datagram(now, &meta, &mut datagram);
        }
        any
    }
}

fn establish(wire: &mut Wire) {
    for _ in 0..100 {
        wire.step(Duration::from_millis(100));
        if wire.client.events.contains(&Event::Confirmed) {
            break;
        }
    }
    assert!(
        wire.client.events.contains(&Event::Connected),
        "{:?}",
        wire.client.events
    );
    assert!(wire.client.events.contains(&Event::Confirmed));
    assert!(wire.server.events.contains(&Event::Connected));
    assert_eq!(wire.client.connection().alpn(), Some(ALPN.as_bytes()));
    assert_eq!(wire.server.connection().alpn(), Some(ALPN.as_bytes()));
}

/// Sends `len` bytes on one stream and returns what arrived.
fn transfer(wire: &mut Wire, len: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
    let id = wire.client.connection().open(Dir::Bi).unwrap();
    let (mut written, mut got) = (0, Vec::new());
    let mut accepted = false;
    for _ in 0..100_000 {
        if written < len {
            let stream = &mut wire.client.connection().send_stream(id);
            written += stream.write(&data[written..]).unwrap();
            if written == len {
                stream.finish().unwrap();
            }
        }
        wire.step(Duration::from_secs(1));
        accepted |= wire
            .server
            .connection()
            .accept(Dir::Bi)
            .is_some_and(|have| have == id);
        let mut buf = [0; 4096];
        if !accepted {
            continue;
        }
        loop {
            match wire
                .server
                .connection()
                .recv_stream(id)
                .read(&mut buf)
                .unwrap()
            {
                ReadOutcome::Data(n) => got.extend_from_slice(&buf[..n]),
                ReadOutcome::Blocked => break,
                ReadOutcome::Finished => {
                    assert!(got == data, "wrong bytes");
                    return got;
                }
            }
        }
    }
    panic!("{} of {len} bytes arrived, {written} written", got.len());
}

#[test]
fn null_handshake_and_transfer() {
    let mut wire = Wire::new(false, RetryPolicy::Never);
    establish(&mut wire);
    assert_eq!(transfer(&mut wire, 5_000_000).len(), 5_000_000);
}

#[test]
fn real_handshake_and_transfer() {
    let mut wire = Wire::new(true, RetryPolicy::Never);
    establish(&mut wire);
    assert_eq!(transfer(&mut wire, 5_000_000).len(), 5_000_000);
    wire.step(Duration::from_secs(1));
    let finished = |event: &Event| matches!(event, Event::Stream(StreamEvent::Finished { .. }));
    assert!(wire.client.events.iter().any(finished));
}

#[test]
fn handshake_through_retry() {
    let mut wire = Wire::new(true, RetryPolicy::Always);
    establish(&mut wire);
    assert_eq!(transfer(&mut wire, 10_000).len(), 10_000);
}

#[test]
fn the_peer_hears_why_the_application_closed() {
    let mut wire = Wire::new(true, RetryPolicy::Never);
    establish(&mut wire);
    let now = wire.now;
    wire.client.connection().close(now, 42, b"done");
    while wire.step(Duration::from_secs(60)) {}
    let reason = swiftwater_quic::ConnectionError::PeerApplication {
        code: 42,
        reason: b"done".to_vec(),
    };
    assert!(wire.server.events.contains(&Event::Closed { reason }));
    assert!(wire.server.connection().is_drained());
    assert!(wire.client.connection().is_drained());
}
