//! The addresses that a tunnel has assigned to its client, and the answers to the client's requests for them (RFC 9484,
//! section 4.7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use swiftwater_wire::VarInt;

use crate::ip::{AssignedAddress, IpCapsule, RequestedAddress};
use crate::policy::Prefix;

/// At most one address of each version.
#[derive(Debug, Default)]
pub(super) struct TunnelAddresses {
    assigned: Vec<AssignedAddress>,
    /// An address of IPv6 that waits until the link is known to carry its packets, and the request that it is for.
    waiting: Option<AssignedAddress>,
}

impl TunnelAddresses {
    /// Assigns `addresses`, those of IPv6 only once the link carries them.
    pub(super) fn new(addresses: &[IpAddr]) -> Self {
        let entry = |address: &IpAddr| AssignedAddress {
            request_id: VarInt::from_u32(0),
            prefix: Prefix::single(*address),
        };
        let (v4, v6): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.is_ipv4());
        Self {
            assigned: v4.into_iter().map(|address| entry(&address)).collect(),
            waiting: v6.first().map(entry),
        }
    }

    /// Whether an address waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether none is assigned.
    pub(super) fn is_empty(&self) -> bool {
        self.assigned.is_empty()
    }

    /// The link carries IPv6: the address that waited is assigned.
    pub(super) fn assign_waiting(&mut self) {
        self.assigned.extend(self.waiting.take());
    }

    /// The link does not carry IPv6; the refusal, if the client asked for an address.
    pub(super) fn refuse_waiting(&mut self) -> Option<IpCapsule> {
        let waiting = self.waiting.take()?;
        (waiting.request_id.get() != 0).then(|| {
            let refused = refusal(waiting.request_id, &waiting.prefix);
            self.capsule(vec![refused])
        })
    }

    /// Whether the client may send from `address`.
    pub(super) fn contain(&self, address: IpAddr) -> bool {
        let mut prefixes = self.assigned.iter().map(|entry| entry.prefix);
        prefixes.any(|prefix| prefix.contains(address))
    }

    /// The capsule of what is assigned.
    pub(super) fn current(&self) -> IpCapsule {
        self.capsule(Vec::new())
    }

    /// The answer to a request: the address of each version answers the first request for one of it, which waits if the
    /// address does; the rest is refused.
    pub(super) fn answer(&mut self, requests: &[RequestedAddress]) -> IpCapsule {
        let mut refused = Vec::new();
        for request in requests {
            let is_ipv4 = request.prefix.address().is_ipv4();
            let mut entries = self.assigned.iter_mut().chain(&mut self.waiting);
            let free = entries.find(|entry| {
                entry.request_id.get() == 0 && entry.prefix.address().is_ipv4() == is_ipv4
            });
            match free {
                Some(entry) => entry.request_id = request.request_id,
                None => refused.push(refusal(request.request_id, &request.prefix)),
            }
        }
        self.capsule(refused)
    }

    fn capsule(&self, refused: Vec<AssignedAddress>) -> IpCapsule {
        let assigned = self.assigned.iter().copied();
        IpCapsule::AddressAssign(assigned.chain(refused).collect())
    }
}

fn refusal(request_id: VarInt, wanted: &Prefix) -> AssignedAddress {
    let none = if wanted.address().is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let prefix = Prefix::single(none);
    AssignedAddress { request_id, prefix }
}
