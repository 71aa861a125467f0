//! Limits on the connections of each client network, by the addresses that connections were accepted from.

use std::net::IpAddr;

use crate::address_shares::AddressShares;

/// While half-open connections hold one in this many places, addresses are validated first: connections from
/// forged addresses never hold more.
const UNVALIDATED_PART: usize = 8;

/// Accepted connections of each client, and those of them that are half open.
#[derive(Debug)]
pub(super) struct ClientShares {
    connections: AddressShares,
    handshakes: AddressShares,
}

impl ClientShares {
    pub(super) fn new(connections: usize, handshakes: usize) -> Self {
        Self {
            connections: AddressShares::new(connections),
            handshakes: AddressShares::new(handshakes),
        }
    }

    /// Counts a half-open connection of `client`; false if the client's network holds its share already.
    pub(super) fn acquire(&mut self, client: IpAddr) -> bool {
        if self.connections.acquire(client, 1).is_err() {
            return false;
        }
        let admitted = self.handshakes.acquire(client, 1).is_ok();
        if !admitted {
            self.connections.release(client, 1);
        }
        admitted
    }

    /// A connection of `client` is not half open any more.
    pub(super) fn finish_handshake(&mut self, client: IpAddr) {
        self.handshakes.release(client, 1);
    }

    /// A connection of `client`, which is not half open, is gone.
    pub(super) fn release(&mut self, client: IpAddr) {
        self.connections.release(client, 1);
    }

    /// True if so many connections are half open that forged addresses could take the shares of others.
    pub(super) fn needs_validation(&self) -> bool {
        let half_open = self.handshakes.held();
        let places = self.connections.capacity().min(self.handshakes.capacity());
        half_open > 0 && half_open >= places / UNVALIDATED_PART
    }
}
