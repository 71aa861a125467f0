//! Addresses that stand for the names of targets, which only the proxy resolves.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::target::{Host, Target};

/// The prefix of the addresses: packets to it are discarded everywhere (RFC 6666), so that one that leaves by mistake
/// is dropped on its way.
const DISCARD_ONLY: u128 = 0x0100 << 112;

/// Names, and the addresses that stand for them. Each name is kept for as long as the carrier.
#[derive(Debug, Default)]
pub(super) struct TargetNames {
    names: Vec<String>,
    numbers: BTreeMap<String, u64>,
}

impl TargetNames {
    /// The address of `host`: its own, or one that stands for its name.
    pub(super) fn address_of(&mut self, host: &Host) -> IpAddr {
        let name = match host {
            Host::Address(address) => return *address,
            Host::Name(name) => name,
        };
        let number = if let Some(&number) = self.numbers.get(name) {
            number
        } else {
            self.names.push(name.clone());
            let number = self.names.len() as u64;
            self.numbers.insert(name.clone(), number);
            number
        };
        Ipv6Addr::from(DISCARD_ONLY | u128::from(number)).into()
    }

    /// The target at `address`; `None` for a port of 0.
    pub(super) fn target_of(&self, address: SocketAddr) -> Option<Target> {
        let name = match address.ip() {
            IpAddr::V6(ip) => self.name_of(ip),
            IpAddr::V4(_) => None,
        };
        let host = name.map_or_else(|| address.ip().to_string(), str::to_owned);
        Target::new(&host, address.port()).ok()
    }

    fn name_of(&self, address: Ipv6Addr) -> Option<&str> {
        let number = u128::from(address).checked_sub(DISCARD_ONLY)?;
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.names.get(at).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_come_back() {
        let mut names = TargetNames::default();
        for text in [
            "a.example:443",
            "b.example:443",
            "a.example:8443",
            "192.0.2.1:443",
            "[2001:db8::1]:443",
            "[100::ffff]:443",
        ] {
            let target: Target = text.parse().unwrap();
            let address = SocketAddr::new(names.address_of(target.host()), target.port());
            assert_eq!(names.target_of(address), Some(target));
        }
        let host = |text: &str| text.parse::<Target>().unwrap().host().clone();
        let (a, b) = (host("a.example:443"), host("b.example:443"));
        assert_eq!(names.address_of(&a), names.address_of(&a));
        assert_ne!(names.address_of(&a), names.address_of(&b));
    }
}
