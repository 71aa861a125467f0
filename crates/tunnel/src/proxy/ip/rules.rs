//! Which packets pass a tunnel: the scope of its request (RFC 9484, section 4.6) within the policy of the proxy.

use std::net::IpAddr;

use crate::ip::{AddressRange, ICMP, ICMPV6, IpHeader, Routes, reachable};
use crate::policy::TargetPolicy;

/// What passes.
#[derive(Clone, Debug)]
pub(super) struct PacketRules {
    policy: TargetPolicy,
    /// The addresses of the scope; `None` for all.
    targets: Option<Vec<AddressRange>>,
    /// The protocol of the scope; `None` for all.
    protocol: Option<u8>,
}

impl PacketRules {
    pub(super) fn new(
        policy: TargetPolicy,
        targets: Option<Vec<AddressRange>>,
        protocol: Option<u8>,
    ) -> Self {
        Self {
            policy,
            targets,
            protocol,
        }
    }

    /// The versions of IP of the scope: IPv4, IPv6.
    pub(super) fn versions(&self) -> (bool, bool) {
        let Some(targets) = &self.targets else {
            return (true, true);
        };
        let has = |is_ipv4| targets.iter().any(|range| range.is_ipv4() == is_ipv4);
        (has(true), has(false))
    }

    /// The routes for the client.
    pub(super) fn routes(&self) -> Routes {
        reachable(&self.policy, self.targets.as_deref(), self.protocol)
    }

    /// Whether a packet of the client may go to its destination.
    pub(super) fn permit_to_target(&self, header: &IpHeader) -> bool {
        self.is_in_scope(header.destination)
            && self.policy.check_address(header.destination).is_ok()
            && self.permits_protocol(header.protocol)
    }

    /// Whether a packet may go to the client. ICMP comes from whichever router has something to say.
    pub(super) fn permit_to_client(&self, header: &IpHeader) -> bool {
        let is_icmp = is_icmp(header.protocol);
        is_icmp || (self.is_in_scope(header.source) && self.permits_protocol(header.protocol))
    }

    fn is_in_scope(&self, address: IpAddr) -> bool {
        let targets = self.targets.as_deref();
        targets.is_none_or(|targets| targets.iter().any(|range| range.contains(address)))
    }

    fn permits_protocol(&self, protocol: u8) -> bool {
        is_icmp(protocol) || self.protocol.is_none_or(|only| only == protocol)
    }
}

fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ICMP | ICMPV6)
}
