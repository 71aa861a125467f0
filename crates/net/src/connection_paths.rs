//! Several paths in one connection, for the application (draft-ietf-quic-multipath-21).

use std::net::SocketAddr;

use swiftwater_quic::policy::PathPreference;
use swiftwater_quic::{
    AbandonPathError, LocalAddress, OpenPathError, PathAddress, PathStats, SocketId,
};
use swiftwater_units::PathId;

use crate::connection::Connection;
use crate::path_events::PathEvents;

impl Connection {
    /// True if both ends support several paths in this connection
    /// ([`TransportConfig::multipath`](swiftwater_quic::TransportConfig::multipath)) and the handshake is
    /// complete.
    pub fn is_multipath(&self) -> bool {
        self.handle.lock().connection.is_multipath()
    }

    /// Opens another path beside those that are open, from one of the endpoint's sockets
    /// ([`Endpoint::add_socket`]) to `remote`, or to the address that the connection goes to if that is `None`.
    /// Clients only.
    ///
    /// Returns at once. The path is validated first: [`PathEvent::Opened`] says that it carries data,
    /// [`PathEvent::Abandoned`] that it does not work. A blocked socket holds back its own paths only, and
    /// each path has its own ECN state and datagram size.
    ///
    /// # Errors
    ///
    /// See [`OpenPathError`]. After [`OpenPathError::Limit`] and [`OpenPathError::NoConnectionId`],
    /// [`PathEvent::Available`] says when a path can be opened.
    ///
    /// [`Endpoint::add_socket`]: crate::Endpoint::add_socket
    /// [`PathEvent::Opened`]: crate::PathEvent::Opened
    /// [`PathEvent::Abandoned`]: crate::PathEvent::Abandoned
    /// [`PathEvent::Available`]: crate::PathEvent::Available
    pub fn open_path(
        &self,
        socket: SocketId,
        remote: Option<SocketAddr>,
    ) -> Result<PathId, OpenPathError> {
        let worker = &self.handle.worker;
        let bound = (worker.socket_address(socket)).ok_or(OpenPathError::NoSuchSocket)?;
        let path = {
            let mut state = self.handle.lock();
            let remote = remote.unwrap_or_else(|| state.connection.remote());
            if bound.is_ipv4() && remote.is_ipv6() {
                return Err(OpenPathError::AddressFamilies);
            }
            let local = LocalAddress {
                socket,
                ip: Some(bound.ip()).filter(|ip| !ip.is_unspecified()),
            };
            let address = PathAddress { remote, local };
            state.connection.open_path(worker.now(), address)?
        };
        self.handle.touch();
        Ok(path)
    }

    /// Abandons a path: nothing is sent there any more, and what was in flight on it leaves on others.
    ///
    /// # Errors
    ///
    /// See [`AbandonPathError`]: the last path ends with the connection.
    pub fn abandon_path(&self, path: PathId) -> Result<(), AbandonPathError> {
        let now = self.handle.worker.now();
        self.handle.lock().connection.abandon_path(now, path)?;
        self.handle.touch();
        Ok(())
    }

    /// Sets status and cost of a path, as schedulers see them, and announces a new status to the peer; false
    /// if the path is not open.
    pub fn set_path_preference(&self, path: PathId, preference: PathPreference) -> bool {
        let is_open = {
            let mut state = self.handle.lock();
            state.connection.set_path_preference(path, preference)
        };
        self.handle.touch();
        is_open
    }

    /// The paths that are open, by identifier; those that are being validated are among them.
    pub fn open_paths(&self) -> Vec<PathId> {
        self.handle.lock().connection.open_paths().collect()
    }

    /// Statistics of every path that is open or being closed, by identifier.
    pub fn paths(&self) -> Vec<PathStats> {
        self.stats().paths
    }

    /// The statistics of paths that have ended, as they were then: the last 64, in the order of their ends.
    pub fn ended_paths(&self) -> Vec<PathStats> {
        let state = self.handle.lock();
        let record = state.path_record.as_deref();
        record.map_or_else(Vec::new, |record| record.ended().to_vec())
    }

    /// What happens to the paths from now on.
    pub fn path_events(&self) -> PathEvents {
        let mut state = self.handle.lock();
        let is_closed = state.closed.is_some();
        let record = state.path_record.get_or_insert_default();
        let events = record.subscribe();
        if is_closed {
            record.close();
        }
        events
    }

    /// Both ends of a path, the local one with its port; `None` if it is not open.
    pub fn path_addresses(&self, path: PathId) -> Option<(SocketAddr, SocketAddr)> {
        let address = self.handle.lock().connection.address_of(path)?;
        let bound = self.handle.worker.socket_address(address.local.socket)?;
        let local = SocketAddr::new(address.local.ip.unwrap_or(bound.ip()), bound.port());
        Some((local, address.remote))
    }
}
