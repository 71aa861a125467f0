//! A client and a server, connected by a link each way: the environment of protocol tests.

mod builder;
mod driver;
mod transfers;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::{Counters, Ecn, LinkConfig};
use swiftwater_quic::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, ConnectionStats, Event, LocalAddress,
};
use swiftwater_units::{Instant, Side};

use crate::cipher::SERVER_NAME;
use crate::error::SimError;
use crate::fabric::{InterfaceId, LinkId};
use crate::log::PacketLog;
use crate::network::{HostId, Network, OldAddress};
use crate::tap::{Recording, TapDatagram, Verdict};

use self::driver::Driver;
use self::transfers::Transfers;

pub use self::builder::PairBuilder;
pub use self::transfers::{TransferId, TransferReport};

/// Direction of datagrams or data.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

impl Direction {
    /// The sender.
    pub const fn sender(self) -> Side {
        match self {
            Self::ToServer => Side::Client,
            Self::ToClient => Side::Server,
        }
    }

    /// The receiver.
    pub const fn receiver(self) -> Side {
        match self {
            Self::ToServer => Side::Server,
            Self::ToClient => Side::Client,
        }
    }
}

/// The place of one side in the network.
#[derive(Clone, Copy, Debug)]
struct End {
    host: HostId,
    interface: InterfaceId,
    /// The link that it sends into.
    uplink: LinkId,
}

impl End {
    fn new(host: HostId, interface: InterfaceId, uplink: LinkId) -> Self {
        Self {
            host,
            interface,
            uplink,
        }
    }
}

/// One more address of a side.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// Its interface.
    pub interface: InterfaceId,
    /// The local socket of the side's connections.
    pub local: LocalAddress,
    /// The link that it sends into.
    pub uplink: LinkId,
    /// The link that datagrams to it use after [`Pair::attach_path`]; after [`Pair::attach`] they use the
    /// other side's link.
    pub downlink: LinkId,
}

/// A client and a server.
///
/// Methods that return a connection return the first one of their side, also after its end. Changes
/// made through [`Pair::client`] and [`Pair::server`] take effect when the pair runs next; methods
/// that run it are [`Pair::step`], [`Pair::advance`], [`Pair::run_until`] and those documented so.
#[derive(Debug)]
pub struct Pair {
    network: Network,
    client: End,
    server: End,
    client_config: ClientConfig,
    board: Rc<RefCell<Transfers>>,
    time_limit: Duration,
}

impl Pair {
    /// A pair with chosen links and configurations.
    pub fn builder() -> PairBuilder {
        PairBuilder::default()
    }

    /// Starts a connection without running. Of several, the first is [`Pair::client`].
    pub fn start(&mut self) -> Result<ConnectionHandle, ConnectError> {
        let remote = self.network.address(self.server.interface);
        let config = self.client_config.clone();
        self.start_with(&config, remote)
    }

    /// As [`Pair::start`], with another configuration or address.
    pub fn start_with(
        &mut self,
        config: &ClientConfig,
        remote: SocketAddr,
    ) -> Result<ConnectionHandle, ConnectError> {
        let handle = self.network.with_host(self.client.host, |host| {
            host.connect(config, remote, SERVER_NAME)
        })?;
        self.driver_mut(Side::Client).adopt(handle);
        Ok(handle)
    }

    /// Starts a connection, unless one was started, and runs until the handshake is confirmed at
    /// both ends. False if it fails or takes too long ([`PairBuilder::time_limit`]).
    pub fn connect(&mut self) -> bool {
        if self.handle(Side::Client).is_none() && self.start().is_err() {
            return false;
        }
        self.run_until(|pair| {
            let confirmed = |side| pair.events(side).contains(&Event::Confirmed);
            pair.is_over() || confirmed(Side::Client) && confirmed(Side::Server)
        }) && !self.is_over()
    }

    /// True if a side's connection is closed.
    fn is_over(&self) -> bool {
        let sides = [Side::Client, Side::Server];
        let mut connections = sides.into_iter().filter_map(|side| self.view(side));
        connections.any(Connection::is_closed)
    }

    /// The client's connection.
    ///
    /// # Panics
    ///
    /// If none was started.
    pub fn client(&mut self) -> &mut Connection {
        self.connection(Side::Client)
            .expect("a connection was begun")
    }

    /// The server's connection.
    ///
    /// # Panics
    ///
    /// If none was accepted, or if the server was restarted.
    pub fn server(&mut self) -> &mut Connection {
        self.connection(Side::Server)
            .expect("a connection was accepted")
    }

    /// A side's connection, if there is one.
    pub fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        let handle = self.handle(side)?;
        self.network.connection(self.end(side).host, handle)
    }

    /// A side's connection, read-only.
    pub fn view(&self, side: Side) -> Option<&Connection> {
        self.network.view(self.end(side).host, self.handle(side)?)
    }

    /// Statistics of a side's connection; empty if there is none.
    pub fn stats(&self, side: Side) -> ConnectionStats {
        self.view(side).map(Connection::stats).unwrap_or_default()
    }

    /// The handle of a side's connection.
    pub fn handle(&self, side: Side) -> Option<ConnectionHandle> {
        self.driver(side).connections().first().copied()
    }

    /// The handles of all connections that a side has had.
    pub fn handles(&self, side: Side) -> &[ConnectionHandle] {
        self.driver(side).connections()
    }

    /// Events of a side's connection since the start, or since [`Pair::take_events`].
    pub fn events(&self, side: Side) -> &[Event] {
        self.driver(side).events()
    }

    /// Takes the events of a side's connection.
    pub fn take_events(&mut self, side: Side) -> Vec<Event> {
        self.driver_mut(side).take_events()
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        self.network.now()
    }

    /// Processes the next event; false if there is none.
    pub fn step(&mut self) -> bool {
        self.network.step()
    }

    /// Runs for `duration` of virtual time.
    pub fn advance(&mut self, duration: Duration) {
        self.network.run_for(duration);
    }

    /// Runs until `condition` holds, and returns whether it does. Stops when there are no more
    /// events or the time limit is reached ([`PairBuilder::time_limit`]).
    pub fn run_until(&mut self, mut condition: impl FnMut(&mut Self) -> bool) -> bool {
        let limit = self.now() + self.time_limit;
        self.network.settle();
        while !condition(self) {
            if !self.network.step_until(limit) {
                return condition(self);
            }
        }
        true
    }

    /// Runs until both connections are drained, and returns whether they are.
    pub fn run_to_end(&mut self) -> bool {
        self.run_until(|pair| {
            [Side::Client, Side::Server]
                .into_iter()
                .all(|side| pair.view(side).is_none_or(Connection::is_drained))
        })
    }

    /// Transfers `bytes` of checked content over a new unidirectional stream, running until it is
    /// complete or the time limit is reached. The connection must exist.
    pub fn transfer(&mut self, bytes: u64, direction: Direction) -> TransferReport {
        let id = self.start_transfer(bytes, direction);
        self.finish_transfers();
        self.transfer_report(id)
    }

    /// Starts a transfer without running. Any number may be in progress; those blocked by the
    /// peer's stream limit wait.
    pub fn start_transfer(&mut self, bytes: u64, direction: Direction) -> TransferId {
        let now = self.now();
        let id = self.board.borrow_mut().add(direction, bytes, now);
        let host = self.end(direction.sender()).host;
        self.network
            .with_application(host, |driver: &mut Driver, host| driver.open_waiting(host));
        id
    }

    /// Runs until all transfers are complete or failed; true if all arrived complete and correct.
    pub fn finish_transfers(&mut self) -> bool {
        self.run_until(|pair| pair.board.borrow().is_settled() || pair.is_over());
        self.board.borrow().is_verified()
    }

    /// Progress of a transfer.
    pub fn transfer_report(&self, id: TransferId) -> TransferReport {
        self.board.borrow().report(id, self.now())
    }

    /// Drops the `index`-th datagram (from 0, counted from the first) of a direction.
    pub fn drop_datagram(&mut self, direction: Direction, index: u64) {
        self.tap(direction, move |datagram| {
            if datagram.index == index {
                return Verdict::Drop;
            }
            Verdict::Pass
        });
    }

    /// Drops the next datagram of a direction.
    pub fn drop_next(&mut self, direction: Direction) {
        self.drop_datagram(direction, self.offered(direction));
    }

    /// Flips a bit in the middle of the `index`-th datagram of a direction.
    pub fn corrupt_datagram(&mut self, direction: Direction, index: u64) {
        self.tap(direction, move |datagram| {
            if datagram.index == index {
                let middle = datagram.data.len() / 2;
                datagram.data[middle] ^= 0x10;
            }
            Verdict::Pass
        });
    }

    /// Number of datagrams sent in a direction so far, lost ones included.
    pub fn offered(&self, direction: Direction) -> u64 {
        self.network.offered(self.link(direction))
    }

    /// Counters of the datagrams of a direction.
    pub fn counters(&self, direction: Direction) -> &Counters {
        self.network.counters(self.link(direction))
    }

    /// Passes every datagram of a direction to `tap` before the link.
    pub fn tap(
        &mut self,
        direction: Direction,
        tap: impl FnMut(&mut TapDatagram<'_>) -> Verdict + 'static,
    ) {
        self.network.tap(self.link(direction), tap);
    }

    /// Copies every datagram of a direction from now on.
    pub fn record(&mut self, direction: Direction) -> Recording {
        self.network.record(self.link(direction))
    }

    /// Injects a datagram at the receiver of `direction` now, as if it had come from `from`; `None`
    /// means the sender's own address.
    pub fn inject(&mut self, direction: Direction, data: &[u8], from: Option<SocketAddr>) {
        let from = from.unwrap_or_else(|| self.address(direction.sender()));
        let to = self.end(direction.receiver()).interface;
        self.network.inject(to, from, Ecn::NotEct, data);
    }

    /// The outer address of `side`.
    pub fn address(&self, side: Side) -> SocketAddr {
        self.network.address(self.end(side).interface)
    }

    /// NAT rebinding of `side`: from now on its datagrams have the source `address`.
    pub fn rebind(&mut self, side: Side, address: SocketAddr) -> Result<(), SimError> {
        let interface = self.end(side).interface;
        self.network.rebind(interface, address, OldAddress::Lost)
    }

    /// Adds an address to `side`, with a separate link to the other side.
    pub fn attach(
        &mut self,
        side: Side,
        address: SocketAddr,
        link: LinkConfig,
    ) -> Result<Attachment, SimError> {
        let (own, other) = match side {
            Side::Client => (self.client, self.server),
            Side::Server => (self.server, self.client),
        };
        let network = &mut self.network;
        let nodes = [own.host, other.host].map(|host| network.node(host));
        let uplink = network.add_link(nodes[0], nodes[1], link.clone())?;
        let downlink = network.add_link(nodes[1], nodes[0], link)?;
        let interface = network.add_interface(own.host, address, uplink, downlink)?;
        let local = LocalAddress {
            socket: network.socket(interface),
            ip: Some(address.ip()),
        };
        Ok(Attachment {
            interface,
            local,
            uplink,
            downlink,
        })
    }

    /// Like [`Pair::attach`], with links of its own in both directions: a second path for multipath.
    pub fn attach_path(
        &mut self,
        side: Side,
        address: SocketAddr,
        link: LinkConfig,
    ) -> Result<Attachment, SimError> {
        let attachment = self.attach(side, address, link)?;
        self.network.set_direct(attachment.interface);
        Ok(attachment)
    }

    /// `side` loses all its connections without CONNECTION_CLOSE and continues with the same
    /// configuration and keys.
    pub fn restart(&mut self, side: Side) {
        self.network.restart(self.end(side).host);
    }

    /// The packet log, if enabled by [`PairBuilder::log`].
    pub fn log(&self) -> Option<&PacketLog> {
        self.network.log()
    }

    /// The client's configuration.
    pub fn client_config(&self) -> &ClientConfig {
        &self.client_config
    }

    /// The network, for everything else.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The link of a direction.
    pub fn link(&self, direction: Direction) -> LinkId {
        self.end(direction.sender()).uplink
    }

    /// The host of a side.
    pub fn host(&self, side: Side) -> HostId {
        self.end(side).host
    }

    /// The interface of a side.
    pub fn interface(&self, side: Side) -> InterfaceId {
        self.end(side).interface
    }

    fn end(&self, side: Side) -> End {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    fn driver(&self, side: Side) -> &Driver {
        let host = self.end(side).host;
        self.network.application(host).expect(INSTALLED)
    }

    fn driver_mut(&mut self, side: Side) -> &mut Driver {
        let host = self.end(side).host;
        self.network.application_mut(host).expect(INSTALLED)
    }
}

/// Why the application of a side has the expected type.
const INSTALLED: &str = "the pair's hosts run its own application";
