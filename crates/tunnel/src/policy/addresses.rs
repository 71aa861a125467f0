//! Addresses that are not public, in all the forms in which they can be written (IANA's registries of
//! special-purpose addresses; RFC 6890).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// What an address that is not public is reserved for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Reserved {
    /// `0.0.0.0/8`, `::`.
    Unspecified,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `169.254.0.0/16`, `fe80::/10`: also the metadata services of clouds.
    LinkLocal,
    /// `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `fc00::/7`, `fec0::/10`.
    Private,
    /// `100.64.0.0/10` (RFC 6598).
    SharedByCarrier,
    /// `224.0.0.0/4`, `ff00::/8`.
    Multicast,
    /// `255.255.255.255`.
    Broadcast,
    /// Documentation, benchmarks and protocol assignments.
    Special,
    /// `240.0.0.0/4` and what is outside `2000::/3`.
    Unallocated,
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Private => "a private address",
            Self::SharedByCarrier => "an address shared within a carrier",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Special => "reserved for a special purpose",
            Self::Unallocated => "not allocated",
        })
    }
}

/// What `address` is reserved for; `None` if it is public. IPv6 addresses that stand for IPv4 addresses (mapped,
/// compatible, NAT64, 6to4, Teredo) are what the IPv4 address is.
pub fn reserved(address: IpAddr) -> Option<Reserved> {
    match embedded(address) {
        IpAddr::V4(v4) => reserved_v4(v4),
        IpAddr::V6(v6) => reserved_v6(v6),
    }
}

/// The IPv4 address for which an IPv6 address stands, or the address itself.
pub(crate) fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let segments = v6.segments();
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Mapped, as translated by SIIT (RFC 7915), 6to4 (RFC 3056), and NAT64 with the well-known prefix (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x2002, high, low, ..]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        // Compatible; :: and ::1 are themselves.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => v4(high, low),
        // Teredo (RFC 4380): the client's address, inverted.
        [0x2001, 0, _, _, _, _, high, low] => v4(!high, !low),
        _ => address,
    }
}

fn reserved_v4(address: Ipv4Addr) -> Option<Reserved> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => Reserved::Unspecified,
        (127, ..) => Reserved::Loopback,
        (169, 254, _) => Reserved::LinkLocal,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Reserved::Private,
        (100, 64..=127, _) => Reserved::SharedByCarrier,
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            Reserved::Special
        }
        (224..=239, ..) => Reserved::Multicast,
        (255, 255, 255) if address.is_broadcast() => Reserved::Broadcast,
        (240..=255, ..) => Reserved::Unallocated,
        _ => return None,
    })
}

fn reserved_v6(address: Ipv6Addr) -> Option<Reserved> {
    let segments = address.segments();
    Some(match segments[0] {
        _ if address.is_unspecified() => Reserved::Unspecified,
        _ if address.is_loopback() => Reserved::Loopback,
        0xfe80..=0xfebf => Reserved::LinkLocal,
        0xfc00..=0xfdff | 0xfec0..=0xfeff => Reserved::Private,
        0xff00..=0xffff => Reserved::Multicast,
        // Local prefixes of NAT64 (RFC 8215): where the IPv4 address is within them, only their network knows.
        0x64 if segments[1] == 0xff9b && segments[2] == 1 => Reserved::Special,
        // Protocol assignments (2001::/23) and documentation.
        0x2001 if segments[1] < 0x200 || segments[1] == 0xdb8 => Reserved::Special,
        0x3fff if segments[1] < 0x1000 => Reserved::Special,
        0x2000..=0x3fff => return None,
        _ => Reserved::Unallocated,
    })
}

/// A prefix of addresses: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Text that is no prefix.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is not an address or ADDRESS/LENGTH")]
pub struct PrefixError(String);

impl Prefix {
    /// The prefix of `length` bits of `address`; `None` if the address is shorter.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        (length <= bits(address)).then_some(Self { address, length })
    }

    /// `address` alone.
    pub fn single(address: IpAddr) -> Self {
        let length = bits(address);
        Self { address, length }
    }

    /// The address that it was made of, whose bits beyond the length may be set.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Its length, bits: at most 32 for IPv4 and 128 for IPv6.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// The lowest address within the prefix.
    pub fn first(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !self.host_bits_v4()).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !self.host_bits_v6()).into(),
        }
    }

    /// The highest address within the prefix.
    pub fn last(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() | self.host_bits_v4()).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() | self.host_bits_v6()).into(),
        }
    }

    /// The bits beyond the length.
    fn host_bits_v4(&self) -> u32 {
        u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0)
    }

    fn host_bits_v6(&self) -> u128 {
        u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0)
    }

    /// True if `address` is within the prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length));
                (ours.to_bits() ^ other.to_bits()) & mask.unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length));
                (ours.to_bits() ^ other.to_bits()) & mask.unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Bits of an address.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let wrong = || PrefixError(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length = match length {
            Some(length) => length.parse().map_err(|_| wrong())?,
            None => bits(address),
        };
        Self::new(address, length).ok_or_else(wrong)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
