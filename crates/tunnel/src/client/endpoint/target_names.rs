//! Addresses that stand for the names of targets, which only the proxy resolves.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use crate::target::{Host, Target};

/// The prefix of the addresses: packets to it are discarded everywhere (RFC 6666), so that one that leaves by mistake
/// is dropped on its way.
const DISCARD_ONLY: u128 = 0x0100 << 112;

/// Names that are known at once. Far more than there are tunnels, so that the name of one in use is not forgotten
/// as long as it is asked for or opened again now and then.
const MAX_NAMES: usize = 4096;

/// Names, and the addresses that stand for them.
///
/// Who chooses the names may be a stranger: a server that redirects to ever new ones, a page with links. So there are
/// [`MAX_NAMES`] at most, 253 bytes each; beyond them the one that nothing was asked of for longest is forgotten. Its
/// address never stands for another name: what is sent there then has no target.
#[derive(Debug, Default)]
pub(super) struct TargetNames {
    /// By the number in their address, which counts up.
    names: BTreeMap<u64, Known>,
    numbers: BTreeMap<Arc<str>, u64>,
    /// The numbers, by when they were last used.
    by_use: BTreeMap<u64, u64>,
    last_number: u64,
    last_use: u64,
}

#[derive(Debug)]
struct Known {
    name: Arc<str>,
    /// Its place in the order of uses.
    used: u64,
}

impl TargetNames {
    /// The address of `host`: its own, or one that stands for its name.
    pub(super) fn address_of(&mut self, host: &Host) -> IpAddr {
        let name = match host {
            Host::Address(address) => return *address,
            Host::Name(name) => name,
        };
        let number = match self.numbers.get(name.as_str()) {
            Some(&number) => number,
            None => self.add(name),
        };
        self.touch(number);
        Ipv6Addr::from(DISCARD_ONLY | u128::from(number)).into()
    }

    /// The target at `address`; `None` for a port of 0, and for a name that is forgotten.
    pub(super) fn target_of(&mut self, address: SocketAddr) -> Option<Target> {
        let number = match address.ip() {
            IpAddr::V6(ip) => number_of(ip),
            IpAddr::V4(_) => None,
        };
        // What was never given out is an address as any other.
        let number = number.filter(|number| (1..=self.last_number).contains(number));
        let Some(number) = number else {
            return Target::new(&address.ip().to_string(), address.port()).ok();
        };
        self.touch(number);
        let known = self.names.get(&number)?;
        Target::new(&known.name, address.port()).ok()
    }

    /// Learns a name; forgets another one if there are too many.
    fn add(&mut self, name: &str) -> u64 {
        if self.names.len() >= MAX_NAMES
            && let Some((_, oldest)) = self.by_use.pop_first()
            && let Some(forgotten) = self.names.remove(&oldest)
        {
            self.numbers.remove(&forgotten.name);
        }
        self.last_number += 1;
        let (number, name) = (self.last_number, Arc::<str>::from(name));
        self.numbers.insert(Arc::clone(&name), number);
        self.names.insert(number, Known { name, used: 0 });
        number
    }

    /// The name with this number is the last used one.
    fn touch(&mut self, number: u64) {
        let Some(known) = self.names.get_mut(&number) else {
            return;
        };
        self.by_use.remove(&known.used);
        self.last_use += 1;
        known.used = self.last_use;
        self.by_use.insert(self.last_use, number);
    }
}

/// The number in an address that stands for a name.
fn number_of(address: Ipv6Addr) -> Option<u64> {
    let number = u128::from(address).checked_sub(DISCARD_ONLY)?;
    u64::try_from(number).ok()
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

    #[test]
    fn however_many_names_a_stranger_makes_up_few_are_kept() {
        let mut names = TargetNames::default();
        let host = |number: u64| {
            let target: Target = format!("{number}.example:443").parse().unwrap();
            target.host().clone()
        };
        let limit = MAX_NAMES as u64;
        let first = SocketAddr::new(names.address_of(&host(0)), 443);
        let second = SocketAddr::new(names.address_of(&host(1)), 443);
        for number in 2..3 * limit {
            names.address_of(&host(number));
            // This one is in use.
            assert!(names.target_of(second).is_some());
            assert!(names.names.len() <= MAX_NAMES);
            assert_eq!(names.numbers.len(), names.names.len());
            assert_eq!(names.by_use.len(), names.names.len());
        }
        // The address of a forgotten name leads nowhere; asked for again, the name has another one.
        assert_eq!(names.target_of(first), None);
        assert_ne!(names.address_of(&host(0)), first.ip());
    }
}
