//! The addresses of the proxy's own machine: what comes to them from itself may be trusted more than what comes from
//! outside (RFC 9298, section 7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::policy::{Prefix, TargetPolicy};

/// Whether `address` is one of this machine: the system would send from it to itself. Sends nothing.
pub(super) fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Any port will do.
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip().to_canonical() == address.to_canonical())
}

/// The addresses that this machine has now and that `policy` does not allow.
pub(super) fn own_addresses(policy: &TargetPolicy) -> Vec<Prefix> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::warn!(%error, "the addresses of this machine are unknown, and can be reached by IP tunnels");
        Vec::new()
    });
    let own = interfaces.iter().map(if_addrs::Interface::ip);
    own.filter(|&own| !policy.allows(own))
        .map(Prefix::single)
        .collect()
}
