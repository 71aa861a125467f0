//! Fair shares of a limited resource (connections, open files, buffered bytes) by client network.
//!
//! Counting only: what a place stands for, and locks, are left to the users.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// A client, as limits count it: an IPv4 address, or the /64 network of an IPv6 address, since one
/// subscriber commonly has all addresses of it (RFC 6177, section 2). IPv4-mapped addresses count as IPv4.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClientNetwork(IpAddr);

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        })
    }
}

/// Places that clients share: no client holds more than are free, except the first that it asks for.
///
/// This is the dynamic threshold of shared-memory switches (Choudhury and Hahne, 1998) with factor 1: a
/// client that takes as many as it can leaves half of what was free, so that filling all of `c` places takes
/// about log2(c) networks. Memory grows with the clients that hold places; each call is O(log n) in their
/// number.
#[derive(Clone, Debug)]
pub struct AddressShares {
    capacity: usize,
    held: usize,
    by_client: BTreeMap<ClientNetwork, usize>,
}

/// Why a client gets no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ShareError {
    /// There are not enough free places for any client.
    Full,
    /// The client holds its share already.
    ShareExceeded,
}

impl AddressShares {
    /// `capacity` places, all free.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            held: 0,
            by_client: BTreeMap::new(),
        }
    }

    /// Gives `client` `places` more, to be given back by [`AddressShares::release`]. On an error nothing
    /// changes.
    pub fn acquire(&mut self, client: IpAddr, places: usize) -> Result<(), ShareError> {
        let client = ClientNetwork::from(client);
        let holds = self.checked(client, places)?;
        if places > 0 {
            self.by_client.insert(client, holds + places);
            self.held += places;
        }
        Ok(())
    }

    /// Whether [`AddressShares::acquire`] would succeed now.
    pub fn check(&self, client: IpAddr, places: usize) -> Result<(), ShareError> {
        self.checked(ClientNetwork::from(client), places).map(drop)
    }

    /// What `client` holds, if it may have `places` more.
    fn checked(&self, client: ClientNetwork, places: usize) -> Result<usize, ShareError> {
        let free = self.capacity - self.held;
        if places > free {
            return Err(ShareError::Full);
        }
        let holds = self.held_by_network(client);
        if holds > 0 && holds + places > free {
            return Err(ShareError::ShareExceeded);
        }
        Ok(holds)
    }

    /// Takes back `places` that `client` acquired.
    ///
    /// # Panics
    ///
    /// In debug builds, if the client holds fewer.
    pub fn release(&mut self, client: IpAddr, places: usize) {
        let client = ClientNetwork::from(client);
        let holds = self.held_by_network(client);
        debug_assert!(holds >= places, "released more than was acquired");
        let places = places.min(holds);
        self.held -= places;
        if holds == places {
            self.by_client.remove(&client);
        } else {
            self.by_client.insert(client, holds - places);
        }
    }

    /// All places.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Places in use.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Places that the network of `client` holds.
    pub fn held_by(&self, client: IpAddr) -> usize {
        self.held_by_network(client.into())
    }

    fn held_by_network(&self, client: ClientNetwork) -> usize {
        self.by_client.get(&client).copied().unwrap_or_default()
    }
}
