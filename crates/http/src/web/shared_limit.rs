//! A limited resource of a process, shared by its clients: open files, upstream connections,
//! concurrent compressions, buffered bytes.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swiftwater_quic::{AddressShares, ShareError};

/// A limit that all clients of a process share, so that no client can exhaust it for the others
/// ([`AddressShares`] has the rule). Cheap to clone; clones share the limit.
#[derive(Clone, Debug)]
pub struct SharedLimit {
    shares: Arc<Mutex<AddressShares>>,
}

impl SharedLimit {
    /// A limit of `capacity` units.
    pub fn new(capacity: usize) -> Self {
        Self {
            shares: Arc::new(Mutex::new(AddressShares::new(capacity))),
        }
    }

    /// Takes `places` units for `client` until the permit is dropped.
    pub fn try_acquire(&self, client: IpAddr, places: usize) -> Result<SharedPermit, ShareError> {
        self.lock().acquire(client, places)?;
        Ok(SharedPermit {
            limit: self.clone(),
            client,
            places,
        })
    }

    /// Whether [`SharedLimit::try_acquire`] would succeed now.
    pub fn check(&self, client: IpAddr, places: usize) -> Result<(), ShareError> {
        self.lock().check(client, places)
    }

    /// Units in use.
    pub fn held(&self) -> usize {
        self.lock().held()
    }

    /// Capacity in units.
    pub fn capacity(&self) -> usize {
        self.lock().capacity()
    }

    fn lock(&self) -> MutexGuard<'_, AddressShares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units held by a client; dropping it returns them.
pub struct SharedPermit {
    limit: SharedLimit,
    client: IpAddr,
    places: usize,
}

impl SharedPermit {
    /// Number of units.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Takes more units or returns some, so that `places` are held. On an error nothing changes.
    pub fn resize(&mut self, places: usize) -> Result<(), ShareError> {
        if places == self.places {
            return Ok(());
        }
        let mut shares = self.limit.lock();
        if places > self.places {
            shares.acquire(self.client, places - self.places)?;
        } else {
            shares.release(self.client, self.places - places);
        }
        drop(shares);
        self.places = places;
        Ok(())
    }
}

impl fmt::Debug for SharedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPermit")
            .field("client", &self.client)
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        self.limit.lock().release(self.client, self.places);
    }
}
