//! The fields of IPv4 packets (RFC 791) that the relay reads: protocol, flow and ECN.

use std::net::{Ipv4Addr, SocketAddr};

use swiftwater_link::{Ecn, flow_key};

use super::policer::IpProtocol;

/// The shortest header, bytes.
const MIN_HEADER: usize = 20;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The ECN field; `None` if this is no IPv4 packet.
pub(super) fn ecn(packet: &[u8]) -> Option<Ecn> {
    header_len(packet).map(|_| Ecn::from_bits(packet[1]))
}

/// Changes the ECN field, and the header's checksum with it (RFC 1624, section 3). Nothing happens to
/// what is no IPv4 packet.
pub(super) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    if header_len(packet).is_none() {
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] = packet[1] & !0b11 | ecn.bits();
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    // Two carries at most.
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// A number for the flow of the packet: its addresses and, of TCP and UDP, its ports. Fragments have no
/// ports.
pub(super) fn flow(packet: &[u8]) -> u64 {
    let Some(header) = header_len(packet) else {
        return 0;
    };
    let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    let ports = match packet.get(header..header + 4) {
        Some(ports) if matches!(packet[9], TCP | UDP) && !is_fragment => ports,
        _ => &[0; 4],
    };
    let end = |at: usize, port: usize| {
        let octets = [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
        let port = u16::from_be_bytes([ports[port], ports[port + 1]]);
        SocketAddr::from((Ipv4Addr::from(octets), port))
    };
    flow_key(end(12, 0), end(16, 2))
}

/// TCP or UDP; `None` if it is neither.
pub(super) fn protocol(packet: &[u8]) -> Option<IpProtocol> {
    header_len(packet)?;
    match packet[9] {
        TCP => Some(IpProtocol::Tcp),
        UDP => Some(IpProtocol::Udp),
        _ => None,
    }
}

/// Length of the header; `None` if this is no IPv4 packet.
fn header_len(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    let len = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && len >= MIN_HEADER && packet.len() >= len).then_some(len)
}

#[cfg(test)]
mod tests;
