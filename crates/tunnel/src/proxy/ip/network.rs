//! The network behind a proxy for IP.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use super::address_pool::AddressPool;
use super::packet_dispatcher::PacketDispatcher;
use crate::device::PacketDevice;
use crate::policy::{Prefix, TargetPolicy};
use crate::proxy::own_addresses::own_addresses;

/// The addresses for tunnels, and the device that their packets go to.
///
/// Of each prefix the second address is the proxy's own: ICMP errors come from it. The first, and for IPv4 the last,
/// are not used. Clones share the addresses.
///
/// With a TUN device, the kernel forwards what it gets only if `net.ipv4.ip_forward` or `net.ipv6.conf.all.forwarding` is
/// set, and answers find the way back only if the prefixes are routed to this machine, or translated.
#[derive(Clone)]
pub struct IpNetwork {
    dispatcher: Arc<PacketDispatcher>,
    prefixes: Vec<Prefix>,
}

/// A network with what the tunnels of one proxy reach in it.
pub(in crate::proxy) struct AttachedNetwork {
    pub(super) dispatcher: Arc<PacketDispatcher>,
    pub(super) policy: TargetPolicy,
}

/// Prefixes that are no addresses for tunnels.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum NetworkError {
    /// There is none.
    #[error("a network for tunnels needs a prefix")]
    Empty,
    /// There are two of one version of IP.
    #[error("a network for tunnels has one prefix of each version of IP")]
    Twice,
    /// It has no address for a tunnel.
    #[error("{0} is too small: a prefix for tunnels has at least 4 addresses")]
    Small(Prefix),
}

impl IpNetwork {
    /// The network of `device` with the addresses of `prefixes`: one of IPv4, one of IPv6, or both.
    pub fn new(device: impl PacketDevice, prefixes: &[Prefix]) -> Result<Self, NetworkError> {
        let pools = pools(prefixes)?;
        Ok(Self {
            dispatcher: Arc::new(PacketDispatcher::new(Arc::new(device), pools)),
            prefixes: prefixes.to_vec(),
        })
    }

    /// The proxy's own addresses, one of each prefix.
    pub fn own_addresses(&self) -> Vec<IpAddr> {
        self.dispatcher.own_addresses().to_vec()
    }

    /// The network for a proxy with this policy.
    pub(in crate::proxy) fn attach(&self, policy: &TargetPolicy) -> AttachedNetwork {
        AttachedNetwork {
            dispatcher: Arc::clone(&self.dispatcher),
            policy: self.guarded_by(policy),
        }
    }

    /// The same policy, and tunnels do not reach the network's own addresses, those of the proxy and of other tunnels, nor
    /// the addresses that its machine has now, unless they are allowed explicitly: these may be public.
    fn guarded_by(&self, policy: &TargetPolicy) -> TargetPolicy {
        let is_allowed = |prefix: &Prefix| {
            let mut allowed = policy.allowed.iter();
            allowed
                .any(|allowed| allowed.contains(prefix.first()) && allowed.contains(prefix.last()))
        };
        let mut guarded = policy.clone();
        let own = self.prefixes.iter().filter(|prefix| !is_allowed(prefix));
        guarded.denied.extend(own);
        guarded.denied.extend(own_addresses(policy));
        guarded
    }
}

/// The addresses that the device of a network of `prefixes` has itself, with the lengths of the prefixes.
pub fn interface_addresses(prefixes: &[Prefix]) -> Result<Vec<Prefix>, NetworkError> {
    let own = pools(prefixes)?;
    let pairs = own.iter().zip(prefixes);
    let own = pairs.filter_map(|(pool, prefix)| Prefix::new(pool.own(), prefix.length()));
    Ok(own.collect())
}

fn pools(prefixes: &[Prefix]) -> Result<Vec<AddressPool>, NetworkError> {
    let versions = prefixes.iter().map(|prefix| prefix.address().is_ipv4());
    match versions.collect::<Vec<_>>()[..] {
        [] => return Err(NetworkError::Empty),
        [_] | [true, false] | [false, true] => {}
        _ => return Err(NetworkError::Twice),
    }
    let pools = prefixes
        .iter()
        .map(|prefix| AddressPool::new(*prefix).ok_or(NetworkError::Small(*prefix)));
    pools.collect()
}

impl fmt::Debug for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpNetwork")
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}
