//! The client: opens the connection to the proxy, and passes datagrams between it and a local address.

use std::net::SocketAddr;

use rand_core::Rng;
use swiftwater_quic::{ClientConfig, ConnectionHandle, Event, StreamEvent};
use swiftwater_units::{Dir, Instant};

use super::forwarding::ClientForwarding;
use super::registration::Registration;
use super::segments::Segments;
use super::{Carriage, QUIC, TunnelConfig, UDP, wire};
use crate::application::{Application, HostContext, RawDatagram};
use crate::cipher::SERVER_NAME;
use crate::datagram::DatagramNote;

/// Payloads that wait for the connection at most.
const MAX_EARLY: usize = 64;

/// The client of a tunnel.
#[derive(Debug)]
pub struct TunnelClient {
    config: TunnelConfig,
    connection: ClientConfig,
    proxy: SocketAddr,
    start: Instant,
    handle: Option<ConnectionHandle>,
    is_connected: bool,
    /// The local peer, once it has sent something.
    peer: Option<SocketAddr>,
    early: Vec<Vec<u8>>,
    segments: Segments,
    forwarding: ClientForwarding,
}

impl TunnelClient {
    /// A client that connects to `proxy` at `start`.
    pub fn new(
        config: TunnelConfig,
        connection: ClientConfig,
        proxy: SocketAddr,
        start: Instant,
    ) -> Self {
        Self {
            config,
            connection,
            proxy,
            start,
            handle: None,
            is_connected: false,
            peer: None,
            early: Vec::new(),
            segments: Segments::default(),
            forwarding: ClientForwarding::default(),
        }
    }

    fn send(&mut self, host: &mut HostContext<'_>, payload: &[u8]) {
        if !self.is_connected {
            if self.early.len() < MAX_EARLY {
                self.early.push(payload.to_vec());
            }
            return;
        }
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        match self.config.carriage {
            Carriage::Datagrams | Carriage::Forwarded => {
                let datagram = wire::encode(wire::PLAIN, None, payload);
                // As UDP does: the sender of the payload has no guarantee.
                let _ = connection.send_datagram(datagram.into());
                if self.config.carriage == Carriage::Forwarded {
                    let registration = self.forwarding.on_payload_of_peer(payload);
                    self.send_registration(host, registration);
                }
            }
            Carriage::Stream => {
                self.segments.push(payload);
                self.segments.write(connection);
            }
        }
    }

    fn deliver(&self, host: &mut HostContext<'_>, payload: &[u8], note: DatagramNote) {
        if let Some(peer) = self.peer {
            host.send_datagram(UDP, peer, payload.to_vec(), note);
        }
    }

    fn send_registration(
        &mut self,
        host: &mut HostContext<'_>,
        registration: Option<Registration>,
    ) {
        let connection = self.handle.and_then(|handle| host.connection(handle));
        if let (Some(registration), Some(connection)) = (registration, connection) {
            // Without room for it, packets stay in the tunnel.
            self.segments.push(&registration.encode());
            self.segments.write(connection);
        }
    }

    /// A message in the stream.
    fn on_segment(&mut self, host: &mut HostContext<'_>, segment: &[u8]) {
        if self.config.carriage != Carriage::Forwarded {
            self.deliver(host, segment, DatagramNote::None);
        } else if let Some(registration) = Registration::decode(segment) {
            let answer = self.forwarding.on_registration(host, &registration);
            self.send_registration(host, answer);
        }
    }

    /// Whether another report is lost.
    fn is_report_lost(&self, host: &mut HostContext<'_>) -> bool {
        let share = self.config.report_loss;
        share > 0.0 && f64::from(host.rng().next_u32()) < share * (f64::from(u32::MAX) + 1.0)
    }

    fn on_datagrams(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle) {
        while let Some(datagram) = host
            .connection(handle)
            .and_then(swiftwater_quic::Connection::recv_datagram)
        {
            match wire::decode(&datagram) {
                Some((wire::PLAIN, payload)) => {
                    self.deliver(host, payload, DatagramNote::None);
                    if self.config.carriage == Carriage::Forwarded {
                        let registration = self.forwarding.on_payload_of_target(payload);
                        self.send_registration(host, registration);
                    }
                }
                Some((wire::NUMBERED, content)) => {
                    if let Some((number, payload)) = wire::numbered(content) {
                        self.deliver(host, payload, DatagramNote::Tag(number));
                    }
                }
                Some((wire::REPORT, _)) if self.is_report_lost(host) => {}
                Some((wire::REPORT, report)) => self.deliver(host, report, DatagramNote::Report),
                _ => {}
            }
        }
    }

    fn on_connected(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle) {
        self.is_connected = true;
        if matches!(self.config.carriage, Carriage::Stream | Carriage::Forwarded)
            && let Some(connection) = host.connection(handle)
            && let Some(stream) = connection.open(Dir::Bi)
        {
            self.segments.set_stream(stream);
        }
        for payload in std::mem::take(&mut self.early) {
            self.send(host, &payload);
        }
    }
}

impl Application for TunnelClient {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(self.start, 0);
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, _token: u64) {
        self.handle = host.connect(&self.connection, self.proxy, SERVER_NAME).ok();
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Connected => self.on_connected(host, handle),
            Event::DatagramReceived => self.on_datagrams(host, handle),
            Event::Stream(StreamEvent::Writable { .. }) => {
                if let Some(connection) = host.connection(handle) {
                    self.segments.write(connection);
                }
            }
            Event::Stream(StreamEvent::Readable { .. }) => {
                let segments = host
                    .connection(handle)
                    .map(|connection| self.segments.read(connection));
                for segment in segments.into_iter().flatten() {
                    self.on_segment(host, &segment);
                }
            }
            _ => {}
        }
    }

    fn on_datagram(&mut self, host: &mut HostContext<'_>, datagram: &RawDatagram<'_>) {
        if datagram.socket == QUIC {
            // Only the proxy's.
            let is_from_proxy = datagram.source == self.proxy;
            let packet = self.forwarding.to_peer(datagram.data);
            if let (Some(packet), Some(peer)) = (packet.filter(|_| is_from_proxy), self.peer) {
                host.forward_datagram(UDP, peer, packet, datagram.ecn);
            }
            return;
        }
        self.peer = Some(datagram.source);
        if let Some(packet) = self.forwarding.to_proxy(datagram.data) {
            host.forward_datagram(QUIC, self.proxy, packet, datagram.ecn);
        } else {
            self.send(host, datagram.data);
        }
    }
}
