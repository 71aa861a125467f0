//! Ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::policy::Prefix;

/// The addresses of one version of IP from a first one to a last one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// From `first` to `last`, both included; `None` if they are of different versions, or `last` is lower.
    pub fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        let is_range = first.is_ipv4() == last.is_ipv4() && first <= last;
        is_range.then_some(Self { first, last })
    }

    /// The lowest address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// The highest address.
    pub fn last(&self) -> IpAddr {
        self.last
    }

    /// Whether the addresses are of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.first.is_ipv4()
    }

    /// The addresses that both have; `None` if there is none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.is_ipv4() != other.is_ipv4() {
            return None;
        }
        Self::new(self.first.max(other.first), self.last.min(other.last))
    }

    /// What is left without the addresses of `other`, in order: nothing, one range or two.
    pub fn without(&self, other: &Self) -> Vec<Self> {
        let Some(cut) = self.intersection(other) else {
            return vec![*self];
        };
        let (start, end) = (number(self.first), number(self.last));
        let (cut_start, cut_end) = (number(cut.first), number(cut.last));
        let ipv4 = self.is_ipv4();
        let below = (start < cut_start).then(|| Self {
            first: self.first,
            last: address(cut_start - 1, ipv4),
        });
        let above = (cut_end < end).then(|| Self {
            first: address(cut_end + 1, ipv4),
            last: self.last,
        });
        below.into_iter().chain(above).collect()
    }

    /// The fewest prefixes that have these addresses and no others, in order.
    pub fn prefixes(&self) -> Vec<Prefix> {
        let bits = if self.is_ipv4() { 32 } else { 128 };
        let (mut start, end) = (number(self.first), number(self.last));
        let mut prefixes = Vec::new();
        loop {
            // As long as the lowest address permits, and as the highest one does.
            let aligned = start.trailing_zeros().min(bits);
            let left = end - start;
            let fitting = if left == u128::MAX {
                128
            } else {
                (left + 1).ilog2()
            };
            let host_bits = aligned.min(fitting);
            let first = address(start, self.is_ipv4());
            prefixes.extend(Prefix::new(first, (bits - host_bits) as u8));
            let highest = u128::MAX.checked_shr(128 - host_bits).unwrap_or(0);
            match start.checked_add(highest).and_then(|it| it.checked_add(1)) {
                Some(next) if next <= end => start = next,
                _ => return prefixes,
            }
        }
    }

    /// Whether `address` is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        // Addresses of IPv4 are lower than those of IPv6.
        (self.first..=self.last).contains(&address)
    }
}

pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The address of this number, which for IPv4 has 32 bits.
pub(super) fn address(number: u128, is_ipv4: bool) -> IpAddr {
    if is_ipv4 {
        Ipv4Addr::from_bits(number as u32).into()
    } else {
        Ipv6Addr::from_bits(number).into()
    }
}

impl From<Prefix> for AddressRange {
    fn from(prefix: Prefix) -> Self {
        Self {
            first: prefix.first(),
            last: prefix.last(),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}
