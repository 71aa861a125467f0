//! One host: an endpoint, its connections and its application.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use swiftwater_link::Packet;
use swiftwater_quic::{
    ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Routed, ServerConfig, SocketId,
};

use crate::application::{Application, HostContext, Idle, RawDatagram};
use crate::connection_id_map::ConnectionIdMap;
use crate::connection_table::ConnectionTable;
use crate::datagram::{DatagramNote, OutgoingDatagram, Parcel, ecn_from_link};
use crate::event_queue::Task;
use crate::fabric::Fabric;
use crate::path_opener::PathOpener;
use crate::tcp_table::{TcpHandle, TcpTable};

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The endpoint's configuration; `None` for the defaults with a key derived from the seed.
    pub endpoint: Option<EndpointConfig>,
    /// Accepts connections with this configuration; default: none are accepted.
    pub server: Option<Arc<ServerConfig>>,
    /// Most datagrams that a connection sends in one batch; default 10.
    pub max_segments: usize,
    /// Keep drained connections for inspection; default false.
    pub keep_drained: bool,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            server: None,
            max_segments: 10,
            keep_drained: false,
        }
    }
}

/// The host without its application, which accesses it in its calls.
#[derive(Debug)]
pub(crate) struct HostCore {
    pub(crate) endpoint: Endpoint,
    pub(crate) slots: ConnectionTable,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) interfaces: Vec<u32>,
    pub(crate) max_segments: usize,
    pub(crate) path_opener: PathOpener,
    pub(crate) tcp: TcpTable,
    /// Datagrams of the application that have not left.
    pub(crate) outgoing: VecDeque<OutgoingDatagram>,
    /// Connection IDs whose packets the application reads.
    pub(crate) claimed: ConnectionIdMap<()>,
}

impl HostCore {
    /// The socket of an interface of the host: its index.
    pub(crate) fn socket_of(&self, interface: u32) -> SocketId {
        let place = self.interfaces.iter().position(|&id| id == interface);
        SocketId(place.unwrap_or_default() as u16)
    }
}

pub(crate) struct Host {
    pub(crate) id: u32,
    pub(crate) core: HostCore,
    pub(crate) application: Box<dyn Application>,
    /// It is in the list of hosts with pending work.
    pub(crate) is_listed: bool,
    /// Configuration of a new endpoint.
    pub(crate) config: (EndpointConfig, Option<Arc<ServerConfig>>),
    /// How often the host lost its state.
    pub(crate) restarts: u64,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("id", &self.id)
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}

impl Host {
    pub(crate) fn new(
        id: u32,
        config: HostConfig,
        endpoint: EndpointConfig,
        seed: [u8; 32],
        rng: ChaCha20Rng,
    ) -> Self {
        Self {
            id,
            core: HostCore {
                endpoint: Endpoint::new(endpoint.clone(), config.server.clone(), seed),
                slots: ConnectionTable::new(config.keep_drained),
                rng,
                interfaces: Vec::new(),
                max_segments: config.max_segments.max(1),
                path_opener: PathOpener::default(),
                tcp: TcpTable::default(),
                outgoing: VecDeque::new(),
                claimed: ConnectionIdMap::default(),
            },
            application: Box::new(Idle),
            is_listed: false,
            config: (endpoint, config.server),
            restarts: 0,
        }
    }

    /// Passes a received datagram to its connection.
    pub(crate) fn receive(&mut self, fabric: &mut Fabric, mut packet: Packet<Parcel>) {
        let datagram = &mut packet.payload.0;
        let interface = fabric.interface(datagram.interface);
        if !fabric.belongs(datagram.destination, datagram.interface) || interface.host != self.id {
            fabric.stats.misdelivered += 1;
            fabric.pool.recycle(packet);
            return;
        }
        if let Some(port) = datagram.tcp_port {
            let flow = (datagram.interface, datagram.source, port);
            let accepted = self.core.tcp.receive(fabric.now, flow, &datagram.data);
            fabric.pool.recycle(packet);
            if let Some(handle) = accepted {
                let (application, mut context) = self.context(fabric);
                application.on_tcp_accept(&mut context, handle);
            }
            self.list(fabric);
            return;
        }
        if interface.raw || self.core.claimed.of_packet(&datagram.data).is_some() {
            let socket = self.core.socket_of(datagram.interface);
            let (application, mut context) = self.context(fabric);
            application.on_datagram(
                &mut context,
                &RawDatagram {
                    source: packet.payload.0.source,
                    socket,
                    ecn: ecn_from_link(packet.ecn),
                    data: &packet.payload.0.data,
                },
            );
            fabric.pool.recycle(packet);
            self.list(fabric);
            return;
        }
        if datagram.note == DatagramNote::Report {
            let (now, source) = (fabric.now, datagram.source);
            self.core.slots.on_path_report(now, source, &datagram.data);
            fabric.pool.recycle(packet);
            self.list(fabric);
            return;
        }
        let tag = match datagram.note {
            DatagramNote::Tag(tag) => Some(tag),
            _ => None,
        };
        let meta = DatagramMeta {
            remote: datagram.source,
            local_ip: Some(interface.inner.ip()),
            socket: self.core.socket_of(datagram.interface),
            ecn: ecn_from_link(packet.ecn),
        };
        let now = fabric.now;
        let mut buffer = fabric.take_buffer();
        let core = &mut self.core;
        match core.endpoint.route(now, &meta, &datagram.data, &mut buffer) {
            Routed::Connection(handle) => {
                if let Some(connection) = core.slots.get_mut(handle) {
                    connection.handle_tagged_datagram(now, &meta, tag, &mut datagram.data);
                }
            }
            Routed::NewConnection {
                handle,
                mut connection,
            } => {
                connection.handle_tagged_datagram(now, &meta, tag, &mut datagram.data);
                core.slots.insert(handle, connection);
                let (application, mut context) = self.context(fabric);
                application.on_accept(&mut context, handle);
            }
            Routed::Response(transmit) => fabric.transmit(&core.interfaces, &transmit, &buffer),
            _ => {}
        }
        fabric.return_buffer(buffer);
        fabric.pool.recycle(packet);
        self.list(fabric);
    }

    /// Adds the host to the list of those with pending work, if it has any.
    pub(crate) fn list(&mut self, fabric: &mut Fabric) {
        let core = &self.core;
        let is_busy = core.slots.is_busy() || core.tcp.is_busy() || !core.outgoing.is_empty();
        if is_busy && !self.is_listed {
            self.is_listed = true;
            fabric.busy.push_back(self.id);
        }
    }

    /// Lets all connections with pending work send and report events.
    pub(crate) fn drive(&mut self, fabric: &mut Fabric) {
        let mut buffer = fabric.take_buffer();
        while let Some(handle) = self.core.slots.next_busy() {
            self.drive_connection(fabric, handle, &mut buffer);
        }
        fabric.return_buffer(buffer);
        while let Some(reset) = self.core.tcp.next_reset(fabric.now) {
            fabric.transmit_tcp(reset.interface, reset.remote, reset.port, reset.data);
        }
        while let Some(handle) = self.core.tcp.next_busy() {
            self.drive_tcp(fabric, handle);
        }
        while let Some(datagram) = self.core.outgoing.pop_front() {
            fabric.transmit_raw(&self.core.interfaces, &datagram);
        }
        if self.core.slots.is_busy() {
            // An application answered an event of TCP through QUIC.
            self.list(fabric);
        }
    }

    /// Lets a TCP connection send and report events.
    fn drive_tcp(&mut self, fabric: &mut Fabric, handle: TcpHandle) {
        let now = fabric.now;
        while let Some(flow) = self.core.tcp.transmit(now, handle) {
            fabric.transmit_tcp(flow.interface, flow.remote, flow.port, flow.data);
        }
        while let Some(event) = self.core.tcp.poll_event(handle) {
            let (application, mut context) = self.context(fabric);
            application.on_tcp(&mut context, handle, event);
        }
        self.core
            .tcp
            .settle(handle, self.id, &mut fabric.event_queue);
    }

    /// The drain required by the contract: transmits, events, endpoint events, timeout.
    fn drive_connection(
        &mut self,
        fabric: &mut Fabric,
        handle: ConnectionHandle,
        buffer: &mut [u8],
    ) {
        let now = fabric.now;
        let max_segments = self.core.max_segments;
        while let Some(connection) = self.core.slots.serve(handle)
            && let Some(transmit) = connection.poll_transmit(now, max_segments, buffer)
        {
            fabric.transmit(&self.core.interfaces, &transmit, buffer);
        }
        while let Some(connection) = self.core.slots.serve(handle)
            && let Some(event) = connection.poll_event()
        {
            let opener = &mut self.core.path_opener;
            if let Some(at) = opener.on_event(now, handle, connection, &event) {
                fabric.event_queue.push(at, Task::Paths { host: self.id });
            }
            let (application, mut context) = self.context(fabric);
            application.on_event(&mut context, handle, event);
        }
        while let Some(connection) = self.core.slots.serve(handle)
            && let Some(event) = connection.poll_endpoint_event()
        {
            let collision = self.core.endpoint.handle_event(handle, event);
            if let Some(collision) = collision
                && let Some(connection) = self.core.slots.get_mut(handle)
            {
                connection.handle_cid_collision(&collision);
            }
        }
        let Some(connection) = self.core.slots.serve(handle) else {
            return;
        };
        if connection.is_drained() {
            self.core.slots.remove(handle);
        } else if !self.core.slots.is_waiting(handle) {
            // Otherwise the application changed it, and it is processed again at once.
            self.core
                .slots
                .arm(handle, self.id, &mut fabric.event_queue);
        }
    }

    /// Opens the paths of all connections that ended before.
    pub(crate) fn reopen_paths(&mut self, fabric: &mut Fabric) {
        let handles: Vec<_> = self.core.slots.handles().collect();
        for handle in handles {
            if let Some(connection) = self.core.slots.get_mut(handle)
                && connection.is_multipath()
            {
                self.core.path_opener.open(fabric.now, handle, connection);
            }
        }
        self.list(fabric);
    }

    /// The application, and its context.
    pub(crate) fn context<'a>(
        &'a mut self,
        fabric: &'a mut Fabric,
    ) -> (&'a mut dyn Application, HostContext<'a>) {
        let context = HostContext {
            now: fabric.now,
            host: self.id,
            core: &mut self.core,
            event_queue: &mut fabric.event_queue,
        };
        (&mut *self.application, context)
    }

    /// Discards all state except the configuration.
    pub(crate) fn restart(&mut self, seed: [u8; 32]) {
        let (endpoint, server) = self.config.clone();
        self.core.endpoint = Endpoint::new(endpoint, server, seed);
        self.core.slots.clear();
        self.core.tcp.clear();
        self.core.claimed = ConnectionIdMap::default();
    }
}
