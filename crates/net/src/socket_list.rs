//! What an endpoint's handles look up of its sockets: numbers and addresses.

use std::net::SocketAddr;

use swiftwater_quic::SocketId;

use crate::socket::{Family, Socket};

/// The sockets of a worker, by number, and where new connections start.
#[derive(Clone, Debug)]
pub(crate) struct SocketList {
    all: Vec<(SocketId, SocketAddr, Family)>,
    /// Where connections start that are opened from now on.
    current: SocketId,
    /// Numbers given so far.
    given: u16,
}

impl SocketList {
    pub(crate) fn new(first: &Socket) -> Self {
        Self {
            all: vec![(SocketId::default(), first.local_addr(), first.family())],
            current: SocketId::default(),
            given: 1,
        }
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
