//! Many connections that do nothing, or only send keep-alives.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use swiftwater_quic::TransportConfig;
use swiftwater_quic::{ClientConfig, Connection, ConnectionHandle, Endpoint, Routed};
use swiftwater_units::Instant;

use crate::clock::processor_time;
use crate::fit::Curve;
use crate::wire::{configs, endpoint, meta};

/// A step that has no common divisor with the numbers of connections: no structure is in that order.
const STRIDE: usize = 7919;

/// A server and its clients.
struct Crowd {
    server: Endpoint,
    client: Endpoint,
    accepted: Vec<(ConnectionHandle, Box<Connection>)>,
    opened: Vec<(ConnectionHandle, Connection)>,
    config: ClientConfig,
    now: Instant,
    buf: Vec<u8>,
    /// Heap of the server.
    heap: i64,
}

fn address(n: usize) -> SocketAddr {
    (Ipv4Addr::from_bits(0x0a00_0000 + n as u32), 5000).into()
}

impl Crowd {
    fn new(transport: TransportConfig) -> Self {
        let (server, config) = configs(transport);
        Self {
            server: endpoint(2, Some(server)),
            client: endpoint(1, None),
            accepted: Vec::new(),
            opened: Vec::new(),
            config,
            now: Instant::from_millis(1000),
            buf: vec![0; 15_000],
            heap: 0,
        }
    }

    fn open(&mut self) {
        let remote = "192.0.2.2:2000".parse().unwrap();
        let (handle, connection) = (self.client)
            .connect(self.now, &self.config, remote, "localhost")
            .unwrap();
        self.opened.push((handle, connection));
        let n = self.opened.len() - 1;
        for _ in 0..4 {
            self.exchange(n);
            // Acknowledgements that wait.
            self.now += Duration::from_millis(30);
            self.opened[n].1.handle_timeout(self.now);
            let (now, accepted) = (self.now, &mut self.accepted[n].1);
            let info = allocation_counter::measure(|| accepted.handle_timeout(now));
            self.heap += info.bytes_current;
        }
    }

    /// Moves datagrams of connection `n` until neither end sends.
    fn exchange(&mut self, n: usize) {
        let now = self.now;
        loop {
            let mut any = false;
            let (handle, connection) = &mut self.opened[n];
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut self.buf) {
                any = true;
                let datagram = &mut self.buf[..transmit.size];
                let (server, accepted) = (&mut self.server, &mut self.accepted);
                let info = allocation_counter::measure(|| {
                    let mut out = [0; 1500];
                    let routed = server.route(now, &meta(address(n)), datagram, &mut out);
                    if let Routed::NewConnection { handle, connection } = routed {
                        accepted.push((handle, connection));
                    }
                    accepted[n]
                        .1
                        .handle_datagram(now, &meta(address(n)), datagram);
                });
                self.heap += info.bytes_current;
            }
            while connection.poll_event().is_some() {}
            while let Some(event) = connection.poll_endpoint_event() {
                self.client.handle_event(*handle, event);
            }
            loop {
                let (server, accepted, buf) = (&mut self.server, &mut self.accepted, &mut self.buf);
                let mut sent = None;
                let info = allocation_counter::measure(|| {
                    let (handle, connection) = &mut accepted[n];
                    sent = connection.poll_transmit(now, 1, buf);
                    while connection.poll_event().is_some() {}
                    while let Some(event) = connection.poll_endpoint_event() {
                        server.handle_event(*handle, event);
                    }
                });
                self.heap += info.bytes_current;
                let Some(transmit) = sent else { break };
                any = true;
                let from = "192.0.2.2:2000".parse().unwrap();
                (self.opened[n].1).handle_datagram(
                    now,
                    &meta(from),
                    &mut self.buf[..transmit.size],
                );
            }
            if !any {
                return;
            }
        }
    }

    /// Every connection sends a keep-alive once, in an order of its own; nanoseconds each, both ends.
    fn keep_alive(&mut self) -> f64 {
        let count = self.opened.len();
        self.now += Duration::from_secs(5);
        let started = processor_time();
        for nth in 0..count {
            let n = nth * STRIDE % count;
            self.opened[n].1.ping();
            self.exchange(n);
        }
        processor_time().saturating_sub(started).as_nanos() as f64 / count as f64
    }

    /// Timers of the server that are due within `time` of rest.
    fn timers_within(&self, time: Duration) -> usize {
        let due = |connection: &Connection| connection.poll_timeout();
        (self.accepted.iter())
            .filter(|(_, connection)| due(connection).is_some_and(|at| at <= self.now + time))
            .count()
    }
}

pub(crate) fn idle(quick: bool) -> Vec<Curve> {
    let (mut memory, mut alive, mut opening) = (Vec::new(), Vec::new(), Vec::new());
    let most = if quick { 1000 } else { 10_000 };
    for count in [1, 10, 100, 1000, 10_000]
        .into_iter()
        .filter(|n| *n <= most)
    {
        let mut crowd = Crowd::new(TransportConfig {
            // Opening them takes a while of virtual time.
            max_idle_timeout: Some(Duration::from_secs(1_000_000)),
            mtu_discovery: None,
            ..TransportConfig::default()
        });
        let started = processor_time();
        for _ in 0..count {
            crowd.open();
        }
        let x = count as f64;
        opening.push((
            x,
            processor_time().saturating_sub(started).as_nanos() as f64 / 1e3 / x,
        ));
        crowd.now += Duration::from_secs(1);
        for n in 0..count {
            crowd.opened[n].1.handle_timeout(crowd.now);
            crowd.accepted[n].1.handle_timeout(crowd.now);
            crowd.exchange(n);
        }
        memory.push((x, crowd.heap as f64 / x));
        let timers = crowd.timers_within(Duration::from_secs(10));
        println!("{count} idle connections: {timers} timers of the server are due within 10 s");
        let repeats = (20_000 / count).clamp(3, 1000);
        let least = (0..repeats)
            .map(|_| crowd.keep_alive())
            .fold(f64::MAX, f64::min);
        alive.push((x, least));
    }
    let curve = |cost, points| Curve {
        of: "idle connections",
        cost,
        points,
    };
    vec![
        curve("heap of the server, bytes each", memory),
        curve("one keep-alive, both ends, ns", alive),
        curve("opening (null cipher), both ends, us", opening),
    ]
}
