//! The client: opens the connection to the proxy, and passes datagrams between it and a local address.

use std::net::SocketAddr;

use rand_core::Rng;
use swiftwater_quic::{ClientConfig, ConnectionHandle, Event, StreamEvent};
use swiftwater_units::{Dir, Instant};

use super::segments::Segments;
use super::{Carriage, TunnelConfig, UDP, wire};
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
            Carriage::Datagrams => {
                let datagram = wire::encode(wire::PLAIN, None, payload);
                // As UDP does: the sender of the payload has no guarantee.
                let _ = connection.send_datagram(datagram.into());
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
                Some((wire::PLAIN, payload)) => self.deliver(host, payload, DatagramNote::None),
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
        if self.config.carriage == Carriage::Stream
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
                let payloads = host
                    .connection(handle)
                    .map(|connection| self.segments.read(connection));
                for payload in payloads.into_iter().flatten() {
                    self.deliver(host, &payload, DatagramNote::None);
                }
            }
            _ => {}
        }
    }

    fn on_datagram(&mut self, host: &mut HostContext<'_>, datagram: &RawDatagram<'_>) {
        self.peer = Some(datagram.source);
        self.send(host, datagram.data);
    }
}
