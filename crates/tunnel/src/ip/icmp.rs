//! ICMP errors (RFC 792; RFC 4443): to the senders of packets that are not forwarded.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::header::{IpHeader, checksum};
use super::{ICMP, ICMPV6};

/// The longest message, bytes: RFC 1812, section 4.3.2.3, and RFC 4443, section 2.4(c).
const MAX_IPV4: usize = 576;
const MAX_IPV6: usize = 1280;

/// Headers of IP, and of ICMP, bytes.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;

/// TTL or hop limit of the messages.
const HOP_LIMIT: u8 = 64;

/// Why a packet is not forwarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IcmpError {
    /// Its TTL or hop limit is used up.
    TimeExceeded,
    /// It is larger than what the next link carries.
    TooBig {
        /// The largest packet that it carries, bytes.
        mtu: usize,
    },
    /// A policy forbids the destination or the protocol.
    Prohibited,
}

impl IcmpError {
    /// The message from `from` about `packet`, to its sender. `None` if there must be none (RFC 1812, section 4.3.2.7;
    /// RFC 4443, section 2.4(e)): it is no packet, has another version than `from`, or is an ICMP error, a later
    /// fragment, or from or to what is not one host.
    pub fn about(self, packet: &[u8], from: IpAddr) -> Option<Vec<u8>> {
        let header = IpHeader::parse(packet).ok()?;
        let is_host = |address: IpAddr| {
            !address.is_unspecified()
                && !address.is_multicast()
                && address != IpAddr::V4(Ipv4Addr::BROADCAST)
        };
        let is_too_big = matches!(self, Self::TooBig { .. });
        let to_one = is_host(header.destination) || (is_too_big && header.destination.is_ipv6());
        if !is_host(header.source)
            || header.source.is_loopback()
            || !to_one
            || header.is_later_fragment
            || is_error(packet, &header)
        {
            return None;
        }
        match (from, header.source) {
            (IpAddr::V4(from), IpAddr::V4(to)) => Some(self.ipv4(packet, from, to)),
            (IpAddr::V6(from), IpAddr::V6(to)) => Some(self.ipv6(packet, from, to)),
            _ => None,
        }
    }

    fn ipv4(self, packet: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let (kind, code, rest) = match self {
            Self::TimeExceeded => (11, 0, 0),
            Self::TooBig { mtu } => (3, 4, mtu.min(usize::from(u16::MAX)) as u32),
            Self::Prohibited => (3, 13, 0),
        };
        let quoted = &packet[..packet.len().min(MAX_IPV4 - IPV4_HEADER - ICMP_HEADER)];
        let message = message(kind, code, rest, quoted, 0);
        let length = (IPV4_HEADER + message.len()) as u16;
        let mut out = vec![0x45, 0];
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, HOP_LIMIT, ICMP, 0, 0]);
        out.extend_from_slice(&from.octets());
        out.extend_from_slice(&to.octets());
        let sum = checksum(&out, 0).to_be_bytes();
        out[10..12].copy_from_slice(&sum);
        out.extend_from_slice(&message);
        out
    }

    fn ipv6(self, packet: &[u8], from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
        let (kind, code, rest) = match self {
            Self::TimeExceeded => (3, 0, 0),
            Self::TooBig { mtu } => (2, 0, u32::try_from(mtu).unwrap_or(u32::MAX)),
            Self::Prohibited => (1, 1, 0),
        };
        let quoted = &packet[..packet.len().min(MAX_IPV6 - IPV6_HEADER - ICMP_HEADER)];
        let length = ICMP_HEADER + quoted.len();
        // RFC 8200, section 8.1.
        let words = from.segments().into_iter().chain(to.segments());
        let addresses: u32 = words.map(u32::from).sum();
        let pseudo = addresses + length as u32 + u32::from(ICMPV6);
        let message = message(kind, code, rest, quoted, pseudo);
        let mut out = vec![0x60, 0, 0, 0];
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&[ICMPV6, HOP_LIMIT]);
        out.extend_from_slice(&from.octets());
        out.extend_from_slice(&to.octets());
        out.extend_from_slice(&message);
        out
    }
}

/// The message; `pseudo` is the sum of the pseudo-header.
fn message(kind: u8, code: u8, rest: u32, quoted: &[u8], pseudo: u32) -> Vec<u8> {
    let mut out = vec![kind, code, 0, 0];
    out.extend_from_slice(&rest.to_be_bytes());
    out.extend_from_slice(quoted);
    let sum = checksum(&out, pseudo).to_be_bytes();
    out[2..4].copy_from_slice(&sum);
    out
}

/// Whether a packet is an ICMP error, or may be one: all types of IPv4 but those of questions and answers.
fn is_error(packet: &[u8], header: &IpHeader) -> bool {
    let kind = packet.get(header.length).copied();
    match header.protocol {
        ICMP => !matches!(kind, Some(0 | 8 | 9 | 10 | 13..=18)),
        ICMPV6 => kind.is_none_or(|kind| kind < 128 || kind == 137),
        _ => false,
    }
}
