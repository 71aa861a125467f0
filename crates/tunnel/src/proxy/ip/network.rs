//! The network behind a proxy for IP.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use super::address_pool::AddressPool;
use super::device::PacketDevice;
use crate::policy::{Prefix, TargetPolicy};

/// The addresses for tunnels, and the device that their packets go to.
///
/// Of each prefix the second address is the proxy's own: ICMP errors come from it. The first, and for IPv4 the last,
/// are not used.
#[derive(Clone)]
pub struct IpNetwork {
    pub(super) device: Arc<dyn PacketDevice>,
    prefixes: Vec<Prefix>,
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
        let versions = prefixes.iter().map(|prefix| prefix.address().is_ipv4());
        match versions.collect::<Vec<_>>()[..] {
            [] => return Err(NetworkError::Empty),
            [_] | [true, false] | [false, true] => {}
            _ => return Err(NetworkError::Twice),
        }
        if let Some(&small) = prefixes
            .iter()
            .find(|prefix| AddressPool::new(**prefix).is_none())
        {
            return Err(NetworkError::Small(small));
        }
        Ok(Self {
            device: Arc::new(device),
            prefixes: prefixes.to_vec(),
        })
    }

    /// The proxy's own addresses, one of each prefix.
    pub fn own_addresses(&self) -> Vec<IpAddr> {
        self.pools().iter().map(AddressPool::own).collect()
    }

    /// The same policy, and tunnels do not reach the network's own addresses, those of the proxy and of other tunnels,
    /// unless they are allowed explicitly: these may be public.
    pub(super) fn guarded_by(&self, policy: &TargetPolicy) -> TargetPolicy {
        let is_allowed = |prefix: &Prefix| {
            let mut allowed = policy.allowed.iter();
            allowed
                .any(|allowed| allowed.contains(prefix.first()) && allowed.contains(prefix.last()))
        };
        let mut guarded = policy.clone();
        let own = self.prefixes.iter().filter(|prefix| !is_allowed(prefix));
        guarded.denied.extend(own);
        guarded
    }

    pub(super) fn pools(&self) -> Vec<AddressPool> {
        let prefixes = self.prefixes.iter();
        prefixes
            .filter_map(|prefix| AddressPool::new(*prefix))
            .collect()
    }
}

impl fmt::Debug for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpNetwork")
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}
