//! Which targets a proxy reaches: checked after the name is resolved, on the address that is then used (RFC 9298,
//! section 7).

mod addresses;
mod ports;
mod reflection;
mod token_bucket;

use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

pub(crate) use addresses::embedded;
pub use addresses::{Prefix, PrefixError, Reserved, reserved};
pub use ports::Ports;
pub use reflection::{Reflection, ReflectionLimit};
pub use token_bucket::TokenBucket;

/// Which addresses and ports a proxy reaches.
///
/// By default: public addresses only, and of the ports 443 only. Ports whose services answer small requests with
/// large responses are refused unless they are allowed explicitly.
#[derive(Clone, Debug, Default)]
pub struct TargetPolicy {
    /// Ports that may be reached.
    pub ports: Ports,
    /// Addresses that may be reached although they are not public, such as those of an internal network, or are the proxy's
    /// own.
    pub allowed: Vec<Prefix>,
    /// Addresses that may not be reached, whatever else permits them.
    pub denied: Vec<Prefix>,
}

/// Why a target is not reached.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TargetDenied {
    /// The port is not allowed.
    #[error("port {0} is not allowed")]
    Port(u16),
    /// The address is not public, and not allowed.
    #[error("{address} is {reserved}")]
    Reserved {
        /// The address.
        address: IpAddr,
        /// What it is reserved for.
        reserved: Reserved,
    },
    /// The address is denied.
    #[error("{0} is denied")]
    Address(IpAddr),
    /// The address is one of the proxy itself, and not allowed.
    #[error("{0} is an address of the proxy")]
    Own(IpAddr),
}

impl TargetPolicy {
    /// Checks the port of a target, which needs no resolution.
    pub fn check_port(&self, port: u16) -> Result<(), TargetDenied> {
        let allowed = self.ports.contains(port);
        allowed.then_some(()).ok_or(TargetDenied::Port(port))
    }

    /// Checks an address of a target.
    pub fn check_address(&self, address: IpAddr) -> Result<(), TargetDenied> {
        if within(&self.denied, address) {
            return Err(TargetDenied::Address(address));
        }
        match reserved(address) {
            Some(reserved) if !self.allows(address) => {
                Err(TargetDenied::Reserved { address, reserved })
            }
            _ => Ok(()),
        }
    }

    /// Whether `address` may be reached also if it is not public, or one of the proxy itself.
    pub fn allows(&self, address: IpAddr) -> bool {
        within(&self.allowed, address)
    }

    /// Those of the addresses that may be reached; if none may, why the first may not.
    pub fn permitted(&self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, TargetDenied> {
        let mut denied = None;
        let mut permitted = addresses;
        permitted.retain(|address| match self.check_address(address.ip()) {
            Ok(()) => true,
            Err(reason) => {
                denied.get_or_insert(reason);
                false
            }
        });
        match denied {
            Some(reason) if permitted.is_empty() => Err(reason),
            _ => Ok(permitted),
        }
    }
}

/// Whether a prefix has `address`, or the address of IPv4 for which it stands.
fn within(prefixes: &[Prefix], address: IpAddr) -> bool {
    let plain = embedded(address);
    let mut prefixes = prefixes.iter();
    prefixes.any(|prefix| prefix.contains(address) || prefix.contains(plain))
}
