//! The addresses of the proxy's own machine: what comes to them from itself may be trusted more than what comes from
//! outside (RFC 9298, section 7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use if_addrs::{Interface, get_if_addrs};

use crate::policy::{Prefix, TargetPolicy, reserved};

/// Whether `address` is one of this machine, or one that it takes as its own by a local route. Also if its addresses can't
/// be read.
pub(super) fn is_own_address(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let Ok(interfaces) = get_if_addrs() else {
        return true;
    };
    let mut own = interfaces.iter().map(Interface::ip);
    own.any(|own| own == address) || source_to(address).is_ok_and(|source| source == address)
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
