//! The addresses of the proxy's own machine: what comes to them from itself may be trusted more than what comes from
//! outside (RFC 9298, section 7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use if_addrs::{Interface, get_if_addrs};

use crate::policy::{Prefix, TargetPolicy, reserved};

/// Those of `addresses` that are not of this machine, nor taken by it as its own by a local route, or that `policy` allows.
/// If its addresses can't be read, only the latter.
pub(super) fn without_own(addresses: &mut Vec<SocketAddr>, policy: &TargetPolicy) {
    if addresses.iter().all(|address| policy.allows(address.ip())) {
        return;
    }
    // Read once: a name may have many addresses.
    let interfaces = get_if_addrs().ok();
    addresses.retain(|address| {
        let ip = address.ip().to_canonical();
        let is_own = interfaces.as_ref().is_none_or(|interfaces| {
            let mut own = interfaces.iter().map(Interface::ip);
            own.any(|own| own == ip) || source_to(ip).is_ok_and(|source| source == ip)
        });
        !is_own || policy.allows(address.ip())
    });
}

/// The address from which the system would send to `address`. Sends nothing.
fn source_to(address: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Any port will do.
    socket.connect(SocketAddr::new(address, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The public addresses that this machine has now and that `policy` does not allow; others it refuses anyway.
pub(super) fn own_addresses(policy: &TargetPolicy) -> Vec<Prefix> {
    let interfaces = get_if_addrs().unwrap_or_else(|error| {
        tracing::warn!(%error, "the addresses of this machine are unknown, and can be reached by IP tunnels");
        Vec::new()
    });
    let own = interfaces.iter().map(Interface::ip);
    own.filter(|&own| reserved(own).is_none() && !policy.allows(own))
        .map(Prefix::single)
        .collect()
}
