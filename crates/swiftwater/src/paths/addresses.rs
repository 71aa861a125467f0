//! Which pairs of addresses no datagram can travel between.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The part of a network in which an address means something (RFC 4007, RFC 3927, RFC 1122).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    Host,
    Link,
    Wider,
}

fn scope(ip: IpAddr) -> Scope {
    let is_link_local = match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => is_unicast_link_local(v6),
    };
    if ip.is_loopback() {
        Scope::Host
    } else if is_link_local {
        Scope::Link
    } else {
        Scope::Wider
    }
}

fn is_unicast_link_local(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

/// True if datagrams from `local` can reach `remote` at all: both have one family and one scope, on the same
/// link if they are link-local, and neither is a wildcard or a multicast address. Whether a route leads there
/// is another matter.
pub fn is_possible_pair(local: SocketAddr, remote: SocketAddr) -> bool {
    let (from, to) = (local.ip().to_canonical(), remote.ip().to_canonical());
    let is_unicast = |ip: IpAddr| !ip.is_unspecified() && !ip.is_multicast();
    let is_same_link = match (local, remote) {
        (SocketAddr::V6(local), SocketAddr::V6(remote))
            if is_unicast_link_local(*local.ip()) && remote.scope_id() != 0 =>
        {
            local.scope_id() == remote.scope_id()
        }
        _ => true,
    };
    from.is_ipv4() == to.is_ipv4()
        && scope(from) == scope(to)
        && is_unicast(from)
        && is_unicast(to)
        && is_same_link
}
