//! The proxy of one tunnel: passes datagrams between the connection to the client and a server.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_quic::{
    Connection, ConnectionHandle, DatagramFate, DatagramOptions, Event, StreamEvent,
};
use swiftwater_tecc::{
    MAX_QUEUE_DELAY, Repair, RepairStats, Reporter, ReporterConfig, TunnelState,
    URGENCY_OF_REPAIRS, URGENCY_OF_REPORTS, is_numbered, queue_limit,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PathId};

use super::forwarding::ProxyForwarding;
use super::registration::Registration;
use super::segments::Segments;
use super::{Carriage, QUIC, TunnelConfig, UDP, wire};
use crate::application::{Application, HostContext, RawDatagram};
use crate::datagram::DatagramNote;

/// Counters of a proxy.
#[derive(Clone, Debug, Default)]
pub struct TunnelStats {
    /// Payloads to the client.
    pub payloads: u64,
    /// Payloads of those that passed beside the connection ([`Carriage::Forwarded`]).
    pub forwarded: u64,
    /// Payloads to the client that found no room, or waited for too long.
    pub dropped: u64,
    /// Reports sent, and their bytes.
    pub reports: u64,
    /// Bytes of reports.
    pub report_bytes: u64,
    /// Counters of repair.
    pub repair: RepairStats,
    /// Milliseconds that payloads find waiting before them, at the rate of the connection; one for each payload.
    pub queue_delays_ms: Vec<f32>,
}

/// The proxy of a tunnel.
#[derive(Debug)]
pub struct TunnelProxy {
    config: TunnelConfig,
    target: SocketAddr,
    handle: Option<ConnectionHandle>,
    repair: Option<Repair>,
    reporter: Option<Reporter>,
    /// When the timer for the reporter expires.
    timer: Option<Instant>,
    segments: Segments,
    forwarding: ProxyForwarding,
    stats: TunnelStats,
}

impl TunnelProxy {
    /// A proxy whose client's datagrams go to `target`.
    pub fn new(config: TunnelConfig, target: SocketAddr) -> Self {
        Self {
            config,
            target,
            handle: None,
            repair: config.repair.map(|limits| {
                Repair::new(if config.reports {
                    limits.with_reports()
                } else {
                    limits
                })
            }),
            reporter: None,
            timer: None,
            segments: Segments::default(),
            forwarding: ProxyForwarding::default(),
            stats: TunnelStats::default(),
        }
    }

    /// Counters so far.
    pub fn stats(&self) -> TunnelStats {
        TunnelStats {
            repair: self.repair.as_ref().map(Repair::stats).unwrap_or_default(),
            ..self.stats.clone()
        }
    }

    fn queue(&self, connection: &Connection) -> ByteCount {
        match self.config.carriage {
            Carriage::Datagrams | Carriage::Forwarded => connection.unsent_datagram_bytes(),
            Carriage::Stream => {
                let waiting = ByteCount::new(self.segments.waiting() as u64);
                waiting + connection.stats().send_buffered
            }
        }
    }

    /// A payload for the client.
    fn send(&mut self, now: Instant, connection: &mut Connection, payload: &[u8]) {
        let rate = rate(connection);
        let delay = rate.time_to_send(self.queue(connection).get());
        self.stats
            .queue_delays_ms
            .push(delay.as_secs_f32() * 1_000.0);
        let deadline = DatagramOptions::default().with_deadline(now + MAX_QUEUE_DELAY);
        let sent = match (self.config.carriage, &mut self.repair) {
            (Carriage::Stream, _) => {
                let pushed = self.segments.push(payload);
                self.segments.write(connection);
                pushed
            }
            (Carriage::Datagrams, Some(repair)) if is_numbered(payload) => {
                let number = repair.next_number();
                let datagram = wire::encode(wire::NUMBERED, Some(number), payload);
                let datagram = Bytes::from(datagram);
                let limits = if self.config.reports {
                    let path = connection.path_stats(PathId::ZERO);
                    let min_rtt = path.map_or(Duration::ZERO, |path| path.min_rtt);
                    DatagramOptions::default().with_group_limit(queue_limit(rate, min_rtt))
                } else {
                    deadline
                };
                let options = limits.with_key(number);
                let sent = connection
                    .send_datagram_with(datagram.clone(), options)
                    .is_ok();
                if sent {
                    repair.on_queued(datagram);
                }
                sent
            }
            (Carriage::Datagrams | Carriage::Forwarded, _) => {
                let datagram = wire::encode(wire::PLAIN, None, payload);
                connection
                    .send_datagram_with(datagram.into(), deadline)
                    .is_ok()
            }
        };
        self.stats.payloads += 1;
        self.stats.dropped += u64::from(!sent);
    }

    fn on_fate(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        number: u64,
        fate: DatagramFate,
    ) {
        let Some(repair) = &mut self.repair else {
            return;
        };
        match fate {
            DatagramFate::Acknowledged => repair.on_acknowledged(number),
            DatagramFate::Lost { sent_at } => {
                let path = connection.path_stats(PathId::ZERO);
                let horizon = path.map_or(Duration::MAX, |path| {
                    repair.limits().horizon(path.smoothed_rtt, path.rtt_var)
                });
                let Some((datagram, until)) = repair.on_lost(now, number, sent_at, horizon) else {
                    return;
                };
                let options = DatagramOptions::default()
                    .with_key(number)
                    .with_deadline(until)
                    .with_urgency(URGENCY_OF_REPAIRS);
                if connection.send_datagram_with(datagram, options).is_err() {
                    repair.on_unsent(number);
                }
            }
            _ => {
                repair.on_unsent(number);
                self.stats.dropped += 1;
            }
        }
    }

    /// Reports if it is time to.
    fn report(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let (Some(handle), Some(repair)) = (self.handle, &mut self.repair) else {
            return;
        };
        let Some(connection) = host.connection(handle).filter(|_| self.config.reports) else {
            return;
        };
        let Some(path) = connection.path_stats(PathId::ZERO) else {
            return;
        };
        repair.on_bytes_in_flight(usize::try_from(path.cwnd.get()).unwrap_or(usize::MAX));
        let rate = path.granted_rate();
        let queue = connection.unsent_datagram_bytes();
        let state = TunnelState {
            rate,
            acknowledged: path.delivered,
            queue,
            sojourn: rate.time_to_send(queue.get()),
            smoothed_rtt: path.smoothed_rtt,
            rtt_var: path.rtt_var,
            min_rtt: path.min_rtt,
            next_number: repair.next_number(),
            settled: repair.settled(),
            repair: repair.stats(),
            app_limited: path.app_limited,
            startup: path.is_in_startup(),
            congestion_events: path.congestion_events,
            overflows: self.stats.dropped,
        };
        let reporter = self
            .reporter
            .get_or_insert_with(|| Reporter::new(now, ReporterConfig::default()));
        if let Some(report) = reporter.poll(now, &state) {
            let report = wire::encode(wire::REPORT, None, &report.encode());
            self.stats.reports += 1;
            self.stats.report_bytes += report.len() as u64;
            let options = DatagramOptions::default()
                .with_urgency(URGENCY_OF_REPORTS)
                .with_deadline(now + MAX_QUEUE_DELAY);
            // The next one will do as well.
            let _ = connection.send_datagram_with(report.into(), options);
        }
        if let Some(at) = reporter.next_deadline()
            && self.timer.is_none_or(|timer| at < timer || timer <= now)
        {
            self.timer = Some(at);
            host.set_timer(at, 0);
        }
    }

    fn to_server(&self, host: &mut HostContext<'_>, payload: &[u8]) {
        host.send_datagram(UDP, self.target, payload.to_vec(), DatagramNote::None);
    }
}

/// The rate that congestion control grants.
fn rate(connection: &Connection) -> Bandwidth {
    let path = connection.path_stats(PathId::ZERO);
    path.map_or(Bandwidth::ZERO, |path| path.granted_rate())
}

impl Application for TunnelProxy {
    fn on_accept(&mut self, _host: &mut HostContext<'_>, handle: ConnectionHandle) {
        self.handle = Some(handle);
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        let now = host.now();
        match event {
            Event::DatagramReceived => {
                while let Some(datagram) =
                    host.connection(handle).and_then(Connection::recv_datagram)
                {
                    if let Some((wire::PLAIN, payload)) = wire::decode(&datagram) {
                        self.to_server(host, payload);
                    }
                }
            }
            Event::DatagramFate { key, fate } => {
                if let Some(connection) = host.connection(handle) {
                    self.on_fate(now, connection, key, fate);
                }
                self.report(host);
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                if let Some(connection) = host.connection(handle)
                    && let Some(stream) = connection.accept(Dir::Bi)
                {
                    self.segments.set_stream(stream);
                    self.segments.write(connection);
                }
                self.read(host, handle);
            }
            Event::Stream(StreamEvent::Readable { .. }) => self.read(host, handle),
            Event::Stream(StreamEvent::Writable { .. }) => {
                if let Some(connection) = host.connection(handle) {
                    self.segments.write(connection);
                }
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, _token: u64) {
        if self.timer.is_some_and(|at| at <= host.now()) {
            self.timer = None;
        }
        self.report(host);
    }

    fn on_datagram(&mut self, host: &mut HostContext<'_>, datagram: &RawDatagram<'_>) {
        let now = host.now();
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        let client = connection.remote();
        if datagram.socket == QUIC {
            let packet = self.forwarding.to_target(datagram.data);
            if let Some(packet) = packet.filter(|_| datagram.source == client) {
                host.forward_datagram(UDP, self.target, packet, datagram.ecn);
            }
            return;
        }
        // Only the target's, as a connected socket has it.
        if datagram.source != self.target {
            return;
        }
        if let Some(packet) = self.forwarding.to_client(datagram.data) {
            self.stats.payloads += 1;
            self.stats.forwarded += 1;
            self.stats.queue_delays_ms.push(0.0);
            host.forward_datagram(QUIC, client, packet, datagram.ecn);
            return;
        }
        self.send(now, connection, datagram.data);
        self.report(host);
    }
}

impl TunnelProxy {
    /// Acts on what came in the stream: payloads, or registrations.
    fn read(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle) {
        let segments = host
            .connection(handle)
            .map(|connection| self.segments.read(connection));
        for segment in segments.into_iter().flatten() {
            if self.config.carriage != Carriage::Forwarded {
                self.to_server(host, &segment);
            } else if let Some(registration) = Registration::decode(&segment) {
                let answer = self.forwarding.on_registration(host, &registration);
                if let (Some(answer), Some(connection)) = (answer, host.connection(handle)) {
                    // Without room for it, packets stay in the tunnel.
                    self.segments.push(&answer.encode());
                    self.segments.write(connection);
                }
            }
        }
    }
}
