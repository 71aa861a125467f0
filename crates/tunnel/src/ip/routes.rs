//! Routes that one end of a tunnel advertises to the other (RFC 9484, section 4.7.3).

use std::net::IpAddr;

use thiserror::Error;

use super::address_range::AddressRange;
use super::{ICMP, ICMPV6};

/// Destinations that packets may be sent to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Route {
    /// The addresses.
    pub addresses: AddressRange,
    /// The protocol of the packets; 0 for all. ICMP is always allowed.
    pub protocol: u8,
}

/// Routes in the order of the RFC: by version of IP, protocol and address, without overlaps.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Routes(Vec<Route>);

/// Two neighbours are out of order, or overlap.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("routes are out of order, or overlap: {0:?} before {1:?}")]
pub struct RouteOrder(pub Route, pub Route);

impl Routes {
    /// These routes, which are in order.
    pub fn new(routes: Vec<Route>) -> Result<Self, RouteOrder> {
        for pair in routes.windows(2) {
            if let [before, after] = pair
                && !before.precedes(after)
            {
                return Err(RouteOrder(*before, *after));
            }
        }
        Ok(Self(routes))
    }

    /// The routes.
    pub fn as_slice(&self) -> &[Route] {
        &self.0
    }

    /// Whether a packet of `protocol` may be sent to `destination`.
    pub fn allow(&self, destination: IpAddr, protocol: u8) -> bool {
        let is_icmp = matches!(protocol, ICMP | ICMPV6);
        self.0.iter().any(|route| {
            route.addresses.contains(destination)
                && (is_icmp || route.protocol == 0 || route.protocol == protocol)
        })
    }
}

impl Route {
    fn precedes(&self, after: &Self) -> bool {
        let key = |route: &Self| (!route.addresses.is_ipv4(), route.protocol);
        match key(self).cmp(&key(after)) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.addresses.last() < after.addresses.first(),
            std::cmp::Ordering::Greater => false,
        }
    }
}
