//! What an endpoint's handles look up of its sockets: numbers, addresses, and the sockets of the system for packets
//! that are of no connection.

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_quic::SocketId;

use crate::carrier::DatagramCarrier;
use crate::socket::{Family, Socket};
use crate::worker_socket::WorkerSocket;

/// The sockets of a worker, by number, and where new connections start.
#[derive(Clone)]
pub(crate) struct SocketList {
    all: Vec<(SocketId, SocketAddr, Family)>,
    /// Where connections start that are opened from now on.
    current: SocketId,
    /// Numbers given so far.
    given: u16,
    /// The first one, if it is a carrier, not a socket of the system.
    carrier: Option<Arc<dyn DatagramCarrier>>,
    /// Sockets of the system that the worker uses.
    senders: Vec<(SocketId, Arc<Socket>)>,
}

impl SocketList {
    pub(crate) fn new(first: &WorkerSocket) -> Self {
        Self {
            all: vec![(SocketId::default(), first.local_addr(), first.family())],
            current: SocketId::default(),
            given: 1,
            carrier: first.carrier().cloned(),
            senders: (first.udp().cloned())
                .map(|socket| (SocketId::default(), socket))
                .into_iter()
                .collect(),
        }
    }

    /// The worker uses `socket` from now on.
    pub(crate) fn set_sender(&mut self, id: SocketId, socket: Arc<Socket>) {
        if self.address(id).is_some() {
            self.senders.push((id, socket));
        }
    }

    /// The worker is gone: its sockets close with the last send.
    pub(crate) fn drop_senders(&mut self) {
        self.senders.clear();
    }

    /// The socket of the system with this number; `None` if it is a carrier, gone, or not in use yet.
    pub(crate) fn sender(&self, id: SocketId) -> Option<&Arc<Socket>> {
        let mut senders = self.senders.iter();
        senders
            .find(|(have, _)| *have == id)
            .map(|(_, socket)| socket)
    }

    /// A number for one more socket; `None` once all are used up.
    pub(crate) fn add(&mut self, local: SocketAddr, family: Family) -> Option<SocketId> {
        let id = SocketId(self.given);
        self.given = self.given.checked_add(1)?;
        self.all.push((id, local, family));
        Some(id)
    }

    /// False if there is no such socket, or if it is where new connections start.
    pub(crate) fn remove(&mut self, id: SocketId) -> bool {
        let before = self.all.len();
        if id != self.current {
            self.all.retain(|(have, ..)| *have != id);
            self.senders.retain(|(have, _)| *have != id);
        }
        self.all.len() < before
    }

    pub(crate) fn set_current(&mut self, id: SocketId) {
        self.current = id;
    }

    pub(crate) fn address(&self, id: SocketId) -> Option<SocketAddr> {
        let mut all = self.all.iter();
        all.find(|(have, ..)| *have == id)
            .map(|(_, local, _)| *local)
    }

    /// The carrier over which new connections start; `None` if that is a socket of the system.
    pub(crate) fn carrier(&self) -> Option<&Arc<dyn DatagramCarrier>> {
        let carrier = self.carrier.as_ref();
        carrier.filter(|_| self.current == SocketId::default())
    }

    /// The address where new connections start.
    pub(crate) fn local(&self) -> SocketAddr {
        self.address(self.current).unwrap_or(self.all[0].1)
    }

    /// True if datagrams to `remote` can leave through the socket where new connections start.
    pub(crate) fn reaches(&self, remote: SocketAddr) -> bool {
        let mut all = self.all.iter();
        all.any(|(id, _, family)| *id == self.current && family.reaches(remote))
    }
}
