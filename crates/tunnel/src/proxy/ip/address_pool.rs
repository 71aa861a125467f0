//! Addresses of one version of IP for tunnels.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::Prefix;

/// Addresses that were given back and wait before they are used again, at most.
const WAITING: usize = 4096;

/// The addresses that no tunnel has. One that was given back is used again last, or after many others, so that packets for the tunnel
/// before are late by then.
#[derive(Debug)]
pub(super) struct AddressPool {
    own: IpAddr,
    /// The first that was never used; `None` if all were.
    next: Option<IpAddr>,
    last: IpAddr,
    returned: VecDeque<IpAddr>,
}

impl AddressPool {
    /// The addresses of `prefix`; `None` if they are fewer than four.
    pub(super) fn new(prefix: Prefix) -> Option<Self> {
        let (whole, last) = match prefix.last() {
            IpAddr::V4(broadcast) => {
                let last = broadcast.to_bits().checked_sub(1)?;
                (32, Ipv4Addr::from_bits(last).into())
            }
            last @ IpAddr::V6(_) => (128, last),
        };
        if prefix.length() > whole - 2 {
            return None;
        }
        let own = after(prefix.first())?;
        Some(Self {
            own,
            next: after(own),
            last,
            returned: VecDeque::new(),
        })
    }

    /// The proxy's own address.
    pub(super) fn own(&self) -> IpAddr {
        self.own
    }

    pub(super) fn is_ipv4(&self) -> bool {
        self.own.is_ipv4()
    }

    /// An address for a tunnel, if one is left.
    pub(super) fn take(&mut self) -> Option<IpAddr> {
        let Some(address) = self.next.filter(|_| self.returned.len() < WAITING) else {
            return self.returned.pop_front();
        };
        self.next = (address < self.last).then(|| after(address)).flatten();
        Some(address)
    }

    /// A tunnel does not need `address` any more.
    pub(super) fn give_back(&mut self, address: IpAddr) {
        self.returned.push_back(address);
    }
}

fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => Some(Ipv4Addr::from_bits(v4.to_bits().checked_add(1)?).into()),
        IpAddr::V6(v6) => Some(Ipv6Addr::from_bits(v6.to_bits().checked_add(1)?).into()),
    }
}
