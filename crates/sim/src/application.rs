//! The interface of applications on simulated hosts: callbacks for events and timers, and actions
//! through a [`HostContext`].

use std::any::Any;
use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use swiftwater_quic::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, EcnCodepoint, Event, SocketId,
};
use swiftwater_units::{Dir, Instant, StreamId};
use swiftwater_wire::ConnectionId;

use crate::cipher::SERVER_NAME;
use crate::datagram::{DatagramNote, OutgoingDatagram};
use crate::event_queue::{EventQueue, Task};
use crate::host::HostCore;
use crate::tcp;
use crate::tcp_table::TcpHandle;

/// A program on a host. All calls happen at points of virtual time; it must not use another clock.
pub trait Application: Any {
    /// Called when the network runs for the first time since the application was installed.
    fn on_start(&mut self, _host: &mut HostContext<'_>) {}

    /// A connection was accepted: its first datagram was received and its handshake has started.
    fn on_accept(&mut self, _host: &mut HostContext<'_>, _connection: ConnectionHandle) {}

    /// An event of a connection, opened or accepted.
    fn on_event(&mut self, host: &mut HostContext<'_>, connection: ConnectionHandle, event: Event);

    /// A datagram came that the application reads itself: to an interface of its own
    /// ([`Network::set_raw`](crate::Network::set_raw)), or with a connection ID of its own
    /// ([`HostContext::claim_connection_id`]).
    fn on_datagram(&mut self, _host: &mut HostContext<'_>, _datagram: &RawDatagram<'_>) {}

    /// A TCP connection was accepted: its SYN was received.
    fn on_tcp_accept(&mut self, _host: &mut HostContext<'_>, _connection: TcpHandle) {}

    /// An event of a TCP connection, opened or accepted.
    fn on_tcp(&mut self, _host: &mut HostContext<'_>, _connection: TcpHandle, _event: tcp::Event) {}

    /// A timer set with [`HostContext::set_timer`] expired.
    fn on_timer(&mut self, _host: &mut HostContext<'_>, _token: u64) {}
}

/// A datagram that an application reads itself.
#[derive(Clone, Copy, Debug)]
pub struct RawDatagram<'a> {
    /// Its sender.
    pub source: SocketAddr,
    /// The interface, by its index among those of the host.
    pub socket: SocketId,
    /// The ECN field.
    pub ecn: Option<EcnCodepoint>,
    /// UDP payload.
    pub data: &'a [u8],
}

/// An application that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl Application for Idle {
    fn on_event(&mut self, _: &mut HostContext<'_>, _: ConnectionHandle, _: Event) {}
}

/// A host, as accessed by its application.
#[derive(Debug)]
pub struct HostContext<'a> {
    pub(crate) now: Instant,
    pub(crate) host: u32,
    pub(crate) core: &'a mut HostCore,
    pub(crate) event_queue: &'a mut EventQueue,
}

impl HostContext<'_> {
    /// The present time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Random numbers of this host's application.
    pub fn rng(&mut self) -> &mut ChaCha20Rng {
        &mut self.core.rng
    }

    /// Starts a connection.
    pub fn connect(
        &mut self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<ConnectionHandle, ConnectError> {
        let (now, core) = (self.now, &mut *self.core);
        let (handle, connection) = core.endpoint.connect(now, config, remote, server_name)?;
        core.slots.insert(handle, Box::new(connection));
        Ok(handle)
    }

    /// Starts a connection to a server of the simulation. `None` if that is impossible, which is a mistake of the
    /// simulation.
    pub fn connect_to_server(
        &mut self,
        config: &ClientConfig,
        remote: SocketAddr,
    ) -> Option<ConnectionHandle> {
        match self.connect(config, remote, SERVER_NAME) {
            Ok(handle) => Some(handle),
            Err(error) => {
                debug_assert!(
                    false,
                    "a simulated connection could not be started: {error}"
                );
                None
            }
        }
    }

    /// The next stream that the peer of a connection has opened; `None` if there is none that was not accepted yet.
    pub fn accept(&mut self, handle: ConnectionHandle, dir: Dir) -> Option<StreamId> {
        self.connection(handle)?.accept(dir)
    }

    /// Opens a TCP connection from the first interface of the host.
    pub fn connect_tcp(&mut self, config: &tcp::Config, remote: SocketAddr) -> TcpHandle {
        let interface = self.core.interfaces.first().copied().unwrap_or_default();
        self.core.tcp.connect(self.now, config, interface, remote)
    }

    /// A TCP connection, to read and change; `None` if it no longer exists. Resulting segments are sent
    /// at the same point of time.
    pub fn tcp(&mut self, handle: TcpHandle) -> Option<&mut tcp::Connection> {
        self.core.tcp.get_mut(handle)
    }

    /// A TCP connection, to read; `None` if it no longer exists.
    pub fn view_tcp(&self, handle: TcpHandle) -> Option<&tcp::Connection> {
        self.core.tcp.get(handle)
    }

    /// A connection, to read and change; `None` if it no longer exists. Resulting packets are sent
    /// at the same point of time.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.core.slots.get_mut(handle)
    }

    /// A connection, read-only.
    pub fn view(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.core.slots.get(handle)
    }

    /// Lets the application read the packets with a short header to `id` that come to any interface of the host
    /// ([`Application::on_datagram`]), in the place of the host's endpoint: it is to pass them on. False if that is not
    /// possible: the ID is empty, is a prefix of another or another of it, or there are too many.
    pub fn claim_connection_id(&mut self, id: &ConnectionId) -> bool {
        self.core.claimed.insert(id, ())
    }

    /// Sends a UDP payload from an interface of the host, given by its index, at the same point of time, not marked for
    /// ECN; `note` goes to the connections of the receiving host.
    pub fn send_datagram(
        &mut self,
        socket: SocketId,
        destination: SocketAddr,
        data: Vec<u8>,
        note: DatagramNote,
    ) {
        self.core.outgoing.push_back(OutgoingDatagram {
            socket,
            destination,
            ecn: None,
            note,
            data,
        });
    }

    /// As [`HostContext::send_datagram`], with this ECN field and no note: passes on what came from elsewhere.
    pub fn forward_datagram(
        &mut self,
        socket: SocketId,
        destination: SocketAddr,
        data: Vec<u8>,
        ecn: Option<EcnCodepoint>,
    ) {
        self.core.outgoing.push_back(OutgoingDatagram {
            socket,
            destination,
            ecn,
            note: DatagramNote::None,
            data,
        });
    }

    /// The connections that are not drained.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionHandle> {
        self.core.slots.handles()
    }

    /// Calls [`Application::on_timer`] with `token` at `at`, or now if that is in the past. Timers
    /// can't be cancelled; ignore obsolete ones.
    pub fn set_timer(&mut self, at: Instant, token: u64) {
        let host = self.host;
        self.event_queue
            .push(at.max(self.now), Task::Application { host, token });
    }
}
