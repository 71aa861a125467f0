//! The smallest driver that keeps the crate's contract: two endpoints joined by a perfect wire.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each user takes a part; a failed unwrap is a failed test"
)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::crypto::ServerCrypto;
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Event,
    RetryPolicy, Routed, ServerConfig, SocketId, TransportConfig,
};
use swiftwater_tls::{
    ClientTls, DevCertificate, EndpointSecrets, ServerTls,
    null::{NullClient, NullServer},
};
use swiftwater_units::Instant;

/// The application protocol of both ends.
pub(crate) const ALPN: &str = "test";

/// One end.
pub(crate) struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    inbox: VecDeque<Vec<u8>>,
    /// Datagrams to use again, so that the driver itself allocates nothing in steady state.
    spare: Vec<Vec<u8>>,
    buf: Vec<u8>,
    /// Everything that happened.
    pub(crate) events: Vec<Event>,
}

/// Both ends and the time.
pub(crate) struct Wire {
    /// The end that connects.
    pub(crate) client: Peer,
    /// The end that accepts.
    pub(crate) server: Peer,
    /// Virtual time.
    pub(crate) now: Instant,
}

fn peer(address: &str, seed: u8, server: Option<Arc<ServerConfig>>) -> Peer {
    let config = EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])));
    Peer {
        endpoint: Endpoint::new(config, server, [seed; 32]),
        connection: None,
        address: address.parse().unwrap(),
        inbox: VecDeque::new(),
        spare: Vec::new(),
        buf: vec![0; 15_000],
        events: Vec::new(),
    }
}

impl Wire {
    /// A client that is about to connect, with real TLS or the null cipher.
    pub(crate) fn new(real_tls: bool, retry: RetryPolicy) -> Self {
        Self::with(real_tls, retry, TransportConfig::default())
    }

    /// The same with another configuration for both ends.
    pub(crate) fn with(real_tls: bool, retry: RetryPolicy, transport: TransportConfig) -> Self {
        let transport = Arc::new(transport);
        let certificate = DevCertificate::deterministic(["localhost"]).unwrap();
        let crypto: Arc<dyn ServerCrypto> = if real_tls {
            Arc::new(
                ServerTls::from_dev_certificate(&certificate)
                    .unwrap()
                    .alpn([ALPN]),
            )
        } else {
            Arc::new(NullServer::new([ALPN]))
        };
        let server = ServerConfig {
            retry,
            address_token_lifetime: Duration::from_secs(3600),
            ..ServerConfig::new(crypto, Arc::clone(&transport))
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

    /// The client's packets are answered at once, but its driver stops running for `pause`: it finds
    /// the answers when it comes back, and its timers late.
    pub(crate) fn client_pauses(&mut self, pause: Duration) {
        self.client.flush(self.now, &mut self.server);
        let mut replies = Vec::new();
        self.server
            .receive(self.now, self.client.address, &mut replies);
        // The server's acknowledgements may wait for their timer.
        self.now += Duration::from_millis(30);
        self.server.connection().handle_timeout(self.now);
        self.server.flush(self.now, &mut self.client);
        self.now += pause;
    }

    /// Moves datagrams until neither end sends, then time to the next timeout; false if there is
    /// none within `limit`.
    pub(crate) fn step(&mut self, limit: Duration) -> bool {
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
    /// The connection.
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    fn flush(&mut self, now: Instant, to: &mut Peer) -> bool {
        let Some((handle, connection)) = &mut self.connection else {
            return false;
        };
        let mut any = false;
        while let Some(transmit) = connection.poll_transmit(now, 10, &mut self.buf) {
            assert_eq!(transmit.destination, to.address);
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in self.buf[..transmit.size].chunks(segment) {
                let mut copy = to.spare.pop().unwrap_or_default();
                copy.clear();
                copy.extend_from_slice(datagram);
                to.inbox.push_back(copy);
            }
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
                socket: SocketId::default(),
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
            self.spare.push(datagram);
        }
        any
    }
}

/// Steps until the handshake is confirmed on both ends.
pub(crate) fn establish(wire: &mut Wire) {
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
}
