//! IP packets of tests, made and checked apart from the code under test.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]

use std::net::IpAddr;

/// The checksum of RFC 1071.
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for word in bytes.chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum += u64::from(u16::from_be_bytes([word[0], low]));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// An IPv4 packet without options.
pub fn ipv4(from: IpAddr, to: IpAddr, protocol: u8, ttl: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + content.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, ttl, protocol, 0, 0]);
    packet.extend(octets(from));
    packet.extend(octets(to));
    let sum = internet_checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend(content);
    packet
}

/// An IPv6 packet; `next` is what `content` begins with.
pub fn ipv6(from: IpAddr, to: IpAddr, next: u8, hop_limit: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((content.len() as u16).to_be_bytes());
    packet.extend([next, hop_limit]);
    packet.extend(octets(from));
    packet.extend(octets(to));
    packet.extend(content);
    packet
}

/// A packet of the version of `from`.
pub fn packet(from: IpAddr, to: IpAddr, protocol: u8, hop_limit: u8, content: &[u8]) -> Vec<u8> {
    if from.is_ipv4() {
        ipv4(from, to, protocol, hop_limit, content)
    } else {
        ipv6(from, to, protocol, hop_limit, content)
    }
}

/// Whether the checksum of an ICMP message, in a packet without options, is right.
pub fn is_valid_icmp(packet: &[u8]) -> bool {
    if packet[0] >> 4 == 4 {
        return internet_checksum(&packet[20..]) == 0;
    }
    let mut pseudo = packet[8..40].to_vec();
    pseudo.extend((packet.len() as u32 - 40).to_be_bytes());
    pseudo.extend([0, 0, 0, 58]);
    pseudo.extend(&packet[40..]);
    internet_checksum(&pseudo) == 0
}
