//! IP proxying (RFC 9484) without I/O: what client and proxy say about addresses and routes, and what is done with
//! packets.
//!
//! - [`Scope`]: what a request asks for, and its path.
//! - [`IpCapsule`]: addresses and routes on the stream of the request; [`Route`], [`Routes`], [`AddressRange`].
//! - [`reachable`]: the routes within a policy and a scope.
//! - [`IpHeader`]: what is read of packets; [`decrement_hop_limit`]: what forwarding changes in them.
//! - [`IcmpError`]: messages to the senders of packets that are not forwarded.
//!
//! The tunnels are in [`proxy`](crate::proxy) and [`client`](crate::client).

mod address_range;
mod capsules;
mod header;
mod icmp;
mod link;
mod reachable;
mod routes;
mod scope;

pub use address_range::AddressRange;
pub use capsules::{
    AssignedAddress, CapsuleError, IpCapsule, MAX_IP_CAPSULE, RequestedAddress, is_ip_capsule,
};
pub use header::{IpHeader, PacketError, decrement_hop_limit};
pub use icmp::IcmpError;
pub(crate) use link::{
    LINK_PROBE_DATAGRAMS, LINK_PROBE_INTERVAL, LINK_PROBING, PADDING_OF_CLIENT, PADDING_OF_PROXY,
    padding,
};
pub use reachable::reachable;
pub use routes::{Route, RouteOrder, Routes};
pub use scope::{Scope, ScopeError, ScopeTarget, WELL_KNOWN};

/// The largest packet in a tunnel, bytes: that of IPv4, and of IPv6 without jumbograms.
pub const MAX_PACKET: usize = 65_575;

/// The smallest MTU of links with IPv6, bytes (RFC 8200, section 5).
pub const MIN_IPV6_MTU: usize = 1280;

/// ICMP among the protocols of IP.
pub(crate) const ICMP: u8 = 1;

/// ICMPv6 among the protocols of IP.
pub(crate) const ICMPV6: u8 = 58;
