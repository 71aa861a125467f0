//! Headers of IP packets (RFC 791; RFC 8200): what forwarding reads and changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// The shortest header of IPv4, bytes.
const MIN_IPV4: usize = 20;
/// The header of IPv6, bytes.
const IPV6: usize = 40;

/// Extension headers of IPv6 (RFC 8200, section 4; RFC 4302; RFC 6275; RFC 7401; RFC 5533).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// What is read of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IpHeader {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The protocol of the content; that of IPv6 is the one after the extension headers.
    pub protocol: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Bytes of the header, extension headers included.
    pub length: usize,
    /// Whether it is a fragment other than the first, whose content does not begin with the header of the protocol.
    pub is_later_fragment: bool,
}

/// Bytes that are no IP packet.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PacketError {
    /// The header is not complete.
    #[error("a packet ends within its header")]
    Truncated,
    /// The version is neither 4 nor 6.
    #[error("{0} is no version of IP")]
    Version(u8),
    /// The length in the header is less than that of the header.
    #[error("a header is too short")]
    HeaderLength,
    /// The length in the header is not that of the packet.
    #[error("the length in a header is not that of the packet")]
    PacketLength,
    /// The checksum of the header is wrong.
    #[error("the checksum of a header is wrong")]
    Checksum,
}

impl IpHeader {
    /// Reads the header of `packet`.
    pub fn parse(packet: &[u8]) -> Result<Self, PacketError> {
        let first = packet.first().ok_or(PacketError::Truncated)?;
        match first >> 4 {
            4 => parse_ipv4(packet),
            6 => parse_ipv6(packet),
            other => Err(PacketError::Version(other)),
        }
    }
}

fn parse_ipv4(packet: &[u8]) -> Result<IpHeader, PacketError> {
    let fixed: &[u8; MIN_IPV4] = packet.first_chunk().ok_or(PacketError::Truncated)?;
    let length = usize::from(fixed[0] & 0x0f) * 4;
    if length < MIN_IPV4 {
        return Err(PacketError::HeaderLength);
    }
    let header = packet.get(..length).ok_or(PacketError::Truncated)?;
    if usize::from(u16::from_be_bytes([fixed[2], fixed[3]])) != packet.len() {
        return Err(PacketError::PacketLength);
    }
    if checksum(header, 0) != 0 {
        return Err(PacketError::Checksum);
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    let address =
        |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]).into();
    Ok(IpHeader {
        source: address(12),
        destination: address(16),
        protocol: fixed[9],
        hop_limit: fixed[8],
        length,
        is_later_fragment: fragment & 0x1fff != 0,
    })
}

fn parse_ipv6(packet: &[u8]) -> Result<IpHeader, PacketError> {
    let fixed: &[u8; IPV6] = packet.first_chunk().ok_or(PacketError::Truncated)?;
    if usize::from(u16::from_be_bytes([fixed[4], fixed[5]])) != packet.len() - IPV6 {
        return Err(PacketError::PacketLength);
    }
    let (protocol, length, is_later_fragment) = after_extensions(packet, fixed[6])?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        Ipv6Addr::from(octets).into()
    };
    Ok(IpHeader {
        source: address(8),
        destination: address(24),
        protocol,
        hop_limit: fixed[7],
        length,
        is_later_fragment,
    })
}

/// The protocol after the extension headers, where it begins, and whether the packet is a later fragment.
fn after_extensions(packet: &[u8], first: u8) -> Result<(u8, usize, bool), PacketError> {
    let (mut protocol, mut at) = (first, IPV6);
    loop {
        let units = match protocol {
            HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS | MOBILITY
            | HIP | SHIM6 => packet.get(at..at + 8).ok_or(PacketError::Truncated)?,
            _ => return Ok((protocol, at, false)),
        };
        let length = usize::from(units[1]);
        let (next, size) = match protocol {
            FRAGMENT => (units[0], 8),
            AUTHENTICATION => (units[0], (length + 2) * 4),
            _ => (units[0], (length + 1) * 8),
        };
        let offset = u16::from_be_bytes([units[2], units[3]]) & 0xfff8;
        if protocol == FRAGMENT && offset != 0 {
            return Ok((next, at + size, true));
        }
        at += size;
        if at > packet.len() {
            return Err(PacketError::Truncated);
        }
        protocol = next;
    }
}

/// Takes one from the TTL or hop limit of a packet whose header was read, as forwarding does; false, and nothing
/// changes, if there is none left.
pub fn decrement_hop_limit(packet: &mut [u8]) -> bool {
    match packet {
        [first, _, _, _, _, _, _, hop_limit, ..] if *first >> 4 == 6 => {
            if *hop_limit <= 1 {
                return false;
            }
            *hop_limit -= 1;
            true
        }
        [first, _, _, _, _, _, _, _, ttl, protocol, high, low, ..] if *first >> 4 == 4 => {
            if *ttl <= 1 {
                return false;
            }
            let before = u16::from_be_bytes([*ttl, *protocol]);
            *ttl -= 1;
            let after = u16::from_be_bytes([*ttl, *protocol]);
            // RFC 1624, section 3.
            let sum = u32::from(!u16::from_be_bytes([*high, *low]))
                + u32::from(!before)
                + u32::from(after);
            [*high, *low] = (!folded(sum)).to_be_bytes();
            true
        }
        _ => false,
    }
}

/// The checksum of the Internet (RFC 1071) over `bytes` and what `sum` holds of a pseudo-header.
pub(super) fn checksum(bytes: &[u8], sum: u32) -> u16 {
    let words = bytes.chunks(2).map(|word| match word {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    // 65,575 bytes do not overflow it.
    !folded(sum + words.sum::<u32>())
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
