//! Ranges of addresses.

use std::fmt;
use std::net::IpAddr;

use crate::policy::Prefix;

/// The addresses of one version of IP from a first one to a last one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// From `first` to `last`, both included; `None` if they are of different versions, or `last` is lower.
    pub fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        let is_range = first.is_ipv4() == last.is_ipv4() && first <= last;
        is_range.then_some(Self { first, last })
    }

    /// The lowest address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// The highest address.
    pub fn last(&self) -> IpAddr {
        self.last
    }

    /// Whether the addresses are of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.first.is_ipv4()
    }

    /// Whether `address` is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        // Addresses of IPv4 are lower than those of IPv6.
        (self.first..=self.last).contains(&address)
    }
}

impl From<Prefix> for AddressRange {
    fn from(prefix: Prefix) -> Self {
        Self {
            first: prefix.first(),
            last: prefix.last(),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}
