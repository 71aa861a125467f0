//! Which targets a proxy reaches: checked after the name is resolved, on the address that is then used (RFC 9298,
//! section 7).

mod addresses;
mod ports;
mod reflection;
mod token_bucket;

use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

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
    /// Addresses that may be reached although they are not public, such as those of an internal network.
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
}

impl TargetPolicy {
    /// Checks the port of a target, which needs no resolution.
    pub fn check_port(&self, port: u16) -> Result<(), TargetDenied> {
        let allowed = self.ports.contains(port);
        allowed.then_some(()).ok_or(TargetDenied::Port(port))
    }

    /// Checks an address of a target.
    pub fn check_address(&self, address: IpAddr) -> Result<(), TargetDenied> {
        let plain = addresses::embedded(address);
        let within = |prefixes: &[Prefix]| {
            prefixes
                .iter()
                .any(|prefix| prefix.contains(address) || prefix.contains(plain))
        };
        if within(&self.denied) {
            return Err(TargetDenied::Address(address));
        }
        match reserved(address) {
            Some(reserved) if !within(&self.allowed) => {
                Err(TargetDenied::Reserved { address, reserved })
            }
            _ => Ok(()),
        }
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
