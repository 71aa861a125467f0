//! Two connections and the links between them, in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Event,
    ReadOutcome, RetryPolicy, Routed, ServerConfig, SocketId, StreamEvent, TransportConfig,
};
use swiftwater_tls::EndpointSecrets;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::{Dir, Instant};

/// One direction: a rate, a queue in front of it, a delay, and losses.
pub(crate) struct Link {
    pub(crate) delay: Duration,
    /// Bytes per second, and bytes that may wait; `None` is as fast as can be.
    pub(crate) rate: Option<(f64, f64)>,
    /// Share of the datagrams that get lost.
    pub(crate) loss: f64,
    rng: ChaCha20Rng,
    free_at: Instant,
    travelling: VecDeque<(Instant, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Link {
    pub(crate) fn new(delay: Duration, rate: Option<(f64, f64)>, loss: f64, seed: u64) -> Self {
        Self {
            delay,
            rate,
            loss,
            rng: ChaCha20Rng::seed_from_u64(seed),
            free_at: Instant::ZERO,
            travelling: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    fn send(&mut self, now: Instant, datagram: &[u8]) {
        if f64::from(self.rng.next_u32()) < self.loss * f64::from(u32::MAX) {
            return;
        }
        let mut leaves = now;
        if let Some((rate, queue)) = self.rate {
            let waits = self.free_at.max(now);
            if (waits - now).as_secs_f64() * rate > queue {
                return;
            }
            leaves = waits + Duration::from_secs_f64(datagram.len() as f64 / rate);
            self.free_at = leaves;
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(datagram);
        self.travelling.push_back((leaves + self.delay, copy));
    }

    fn next(&self) -> Option<Instant> {
        self.travelling.front().map(|(at, _)| *at)
    }
}

/// One end.
pub(crate) struct End {
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: Option<(ConnectionHandle, Box<Connection>)>,
    address: SocketAddr,
    buf: Vec<u8>,
    /// True to count the heap that its calls take.
    pub(crate) counts: bool,
    pub(crate) heap: i64,
    pub(crate) most_heap: i64,
    pub(crate) is_confirmed: bool,
    pub(crate) readable: VecDeque<swiftwater_units::StreamId>,
}

pub(crate) fn meta(remote: SocketAddr) -> DatagramMeta {
    DatagramMeta {
        remote,
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

/// Endpoint of a client or, with a configuration, of a server.
pub(crate) fn endpoint(seed: u8, server: Option<Arc<ServerConfig>>) -> Endpoint {
    let config = EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])));
    Endpoint::new(config, server, [seed; 32])
}

/// The null cipher on both ends, so that nothing hides what grows.
pub(crate) fn configs(transport: TransportConfig) -> (Arc<ServerConfig>, ClientConfig) {
    let transport = Arc::new(transport);
    let server = ServerConfig {
        retry: RetryPolicy::Never,
        ..ServerConfig::new(
            Arc::new(NullServer::new(["growth"])),
            Arc::clone(&transport),
        )
    };
    let client = ClientConfig {
        crypto: Arc::new(NullClient::new(["growth"])),
        transport,
    };
    (Arc::new(server), client)
}

impl End {
    fn new(endpoint: Endpoint, address: &str) -> Self {
        Self {
            endpoint,
            connection: None,
            address: address.parse().unwrap(),
            buf: vec![0; 15_000],
            counts: false,
            heap: 0,
            most_heap: 0,
            is_confirmed: false,
            readable: VecDeque::new(),
        }
    }

    /// Calls into the protocol, and counts the heap if it is to be counted.
    pub(crate) fn call<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        if !self.counts {
            return act(self);
        }
        let mut result = None;
        let info = allocation_counter::measure(|| result = Some(act(self)));
        self.most_heap = self.most_heap.max(self.heap + info.bytes_max.cast_signed());
        self.heap += info.bytes_current;
        result.unwrap()
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    fn flush(&mut self, now: Instant, link: &mut Link) {
        while self.connection.is_some() {
            let sent = self.call(|end| {
                let (_, connection) = end.connection.as_mut()?;
                connection.poll_transmit(now, 10, &mut end.buf)
            });
            let Some(transmit) = sent else { break };
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in self.buf[..transmit.size].chunks(segment) {
                link.send(now, datagram);
            }
        }
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Confirmed => self.is_confirmed = true,
                Event::Stream(StreamEvent::Readable { id }) => self.readable.push_back(id),
                Event::Closed { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.call(|end| {
            let mut out = [0; 1500];
            let routed = end.endpoint.route(now, &meta(from), datagram, &mut out);
            if let Routed::NewConnection { handle, connection } = routed {
                end.connection = Some((handle, connection));
            }
            if let Some((_, connection)) = &mut end.connection {
                connection.handle_datagram(now, &meta(from), datagram);
            }
        });
    }
}

/// Both ends.
pub(crate) struct Wire {
    pub(crate) client: End,
    pub(crate) server: End,
    up: Link,
    down: Link,
    pub(crate) now: Instant,
    sink: Vec<u8>,
    /// Bytes that the server has read.
    pub(crate) delivered: u64,
}

impl Wire {
    /// A connection whose handshake is confirmed.
    pub(crate) fn established(transport: TransportConfig, up: Link, down: Link) -> Self {
        let (server, client) = configs(transport);
        let mut wire = Self {
            client: End::new(endpoint(1, None), "192.0.2.1:1000"),
            server: End::new(endpoint(2, Some(server)), "192.0.2.2:2000"),
            up,
            down,
            now: Instant::from_millis(1),
            sink: vec![0; 1 << 16],
            delivered: 0,
        };
        let (now, remote) = (wire.now, wire.server.address);
        let (handle, connection) = (wire.client.endpoint)
            .connect(now, &client, remote, "localhost")
            .unwrap();
        wire.client.connection = Some((handle, Box::new(connection)));
        while !wire.client.is_confirmed || !wire.server.is_confirmed {
            wire.step();
        }
        wire
    }

    /// Sends what waits, and goes on to the next event.
    pub(crate) fn step(&mut self) {
        self.client.flush(self.now, &mut self.up);
        self.server.flush(self.now, &mut self.down);
        let timeout = |end: &End| end.connection.as_ref().and_then(|(_, c)| c.poll_timeout());
        let (of_client, of_server) = (timeout(&self.client), timeout(&self.server));
        let events = [of_client, of_server, self.up.next(), self.down.next()];
        let Some(next) = events.into_iter().flatten().min() else {
            return;
        };
        self.now = self.now.max(next);
        let now = self.now;
        let (client, server) = (self.client.address, self.server.address);
        for (link, end, from) in [
            (&mut self.up, &mut self.server, client),
            (&mut self.down, &mut self.client, server),
        ] {
            while link.next().is_some_and(|at| at <= now) {
                let Some((_, mut datagram)) = link.travelling.pop_front() else {
                    break;
                };
                end.receive(now, from, &mut datagram);
                link.spare.push(datagram);
            }
        }
        for (end, due) in [(&mut self.client, of_client), (&mut self.server, of_server)] {
            if due.is_some_and(|at| at <= now) {
                end.call(|end| end.connection().handle_timeout(now));
            }
        }
    }

    /// The server reads all there is.
    pub(crate) fn read(&mut self) {
        while self.server.connection().accept(Dir::Uni).is_some()
            || self.server.connection().accept(Dir::Bi).is_some()
        {}
        while let Some(id) = self.server.readable.pop_front() {
            let sink = &mut self.sink;
            let read = self.server.call(|end| {
                let mut sum = 0;
                while let Ok(ReadOutcome::Data(n)) = end.connection().recv_stream(id).read(sink) {
                    sum += n as u64;
                }
                sum
            });
            self.delivered += read;
        }
    }
}
