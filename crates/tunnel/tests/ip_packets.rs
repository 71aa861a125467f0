//! IP packets in tunnels: what is read of them, what forwarding changes, and ICMP errors.

use std::net::IpAddr;

use proptest::prelude::*;
use swiftwater_tunnel::ip::{IcmpError, IpHeader, PacketError, decrement_hop_limit};

use crate::packets::{internet_checksum, ipv4, ipv6, is_valid_icmp};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn headers_are_read() {
    let packet = ipv4(ip("192.0.2.1"), ip("198.51.100.2"), 17, 64, b"content");
    let header = IpHeader::parse(&packet).unwrap();
    assert_eq!(header.source, ip("192.0.2.1"));
    assert_eq!(header.destination, ip("198.51.100.2"));
    assert_eq!((header.protocol, header.hop_limit), (17, 64));
    assert_eq!(header.length, 20);
    let packet = ipv6(ip("2001:db8::1"), ip("2001:db8::2"), 6, 3, b"content");
    let header = IpHeader::parse(&packet).unwrap();
    assert_eq!(header.source, ip("2001:db8::1"));
    assert_eq!(header.destination, ip("2001:db8::2"));
    assert_eq!((header.protocol, header.hop_limit), (6, 3));
    assert_eq!(header.length, 40);
}

#[test]
fn the_protocol_is_the_one_after_extension_headers() {
    let (from, to) = (ip("2001:db8::1"), ip("2001:db8::2"));
    // Hop-by-hop options, destination options of two units, a first fragment, UDP.
    let mut content = vec![60, 0, 0, 0, 0, 0, 0, 0];
    content.extend([44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    content.extend([17, 0, 0, 1, 0, 0, 0, 9]);
    content.extend(b"datagram");
    let header = IpHeader::parse(&ipv6(from, to, 0, 64, &content)).unwrap();
    assert_eq!((header.protocol, header.length), (17, 72));
    assert!(!header.is_later_fragment);
    let later = [17, 0, 0, 8, 0, 0, 0, 9, 1, 2];
    let header = IpHeader::parse(&ipv6(from, to, 44, 64, &later)).unwrap();
    assert_eq!(header.protocol, 17);
    assert!(header.is_later_fragment);
    // The options end beyond the packet.
    let cut = [17, 9, 0, 0, 0, 0, 0, 0];
    let packet = ipv6(from, to, 0, 64, &cut);
    assert_eq!(IpHeader::parse(&packet), Err(PacketError::Truncated));
}

#[test]
fn what_is_no_packet_is_refused() {
    let whole = ipv4(ip("192.0.2.1"), ip("198.51.100.2"), 17, 64, b"content");
    assert_eq!(IpHeader::parse(&[]), Err(PacketError::Truncated));
    assert_eq!(IpHeader::parse(&[0x50; 40]), Err(PacketError::Version(5)));
    assert_eq!(IpHeader::parse(&whole[..19]), Err(PacketError::Truncated));
    let cut = &whole[..whole.len() - 1];
    assert_eq!(IpHeader::parse(cut), Err(PacketError::PacketLength));
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(IpHeader::parse(&longer), Err(PacketError::PacketLength));
    let mut short = whole.clone();
    short[0] = 0x44;
    assert_eq!(IpHeader::parse(&short), Err(PacketError::HeaderLength));
    let mut wrong = whole;
    wrong[8] += 1;
    assert_eq!(IpHeader::parse(&wrong), Err(PacketError::Checksum));
}

#[test]
fn packets_without_hops_left_are_not_changed() {
    let v4 = |ttl| ipv4(ip("192.0.2.1"), ip("198.51.100.2"), 17, ttl, b"content");
    let v6 = |limit| ipv6(ip("2001:db8::1"), ip("2001:db8::2"), 17, limit, b"content");
    for left in [0, 1] {
        for packet in [v4(left), v6(left)] {
            let mut forwarded = packet.clone();
            assert!(!decrement_hop_limit(&mut forwarded));
            assert_eq!(forwarded, packet);
        }
    }
    let mut forwarded = v6(2);
    assert!(decrement_hop_limit(&mut forwarded));
    assert_eq!(forwarded, v6(1));
}

#[test]
fn errors_quote_the_packet() {
    let (router4, router6) = (ip("192.0.2.254"), ip("2001:db8::ff"));
    let packet = ipv4(ip("192.0.2.1"), ip("198.51.100.2"), 17, 1, &[7; 1400]);
    for (error, kind, code) in [
        (IcmpError::TimeExceeded, 11, 0),
        (IcmpError::TooBig { mtu: 1300 }, 3, 4),
        (IcmpError::Prohibited, 3, 13),
    ] {
        let message = error.about(&packet, router4).unwrap();
        let header = IpHeader::parse(&message).unwrap();
        assert_eq!(
            (header.source, header.destination),
            (router4, ip("192.0.2.1"))
        );
        assert_eq!((header.protocol, &message[20..22]), (1, &[kind, code][..]));
        assert!(is_valid_icmp(&message));
        assert_eq!(message.len(), 576);
        assert_eq!(message[28..], packet[..548]);
        let mtu = u16::from_be_bytes([message[26], message[27]]);
        assert_eq!(mtu == 1300, kind == 3 && code == 4);
    }
    let packet = ipv6(ip("2001:db8::1"), ip("2001:db8:1::2"), 6, 1, &[7; 1401]);
    for (error, kind, code) in [
        (IcmpError::TimeExceeded, 3, 0),
        (IcmpError::TooBig { mtu: 1300 }, 2, 0),
        (IcmpError::Prohibited, 1, 1),
    ] {
        let message = error.about(&packet, router6).unwrap();
        let header = IpHeader::parse(&message).unwrap();
        assert_eq!(
            (header.source, header.destination),
            (router6, ip("2001:db8::1"))
        );
        assert_eq!((header.protocol, &message[40..42]), (58, &[kind, code][..]));
        assert!(is_valid_icmp(&message));
        assert_eq!(message.len(), 1280);
        assert_eq!(message[48..], packet[..1232]);
    }
}

#[test]
fn no_errors_about_errors_fragments_or_groups() {
    let router = ip("192.0.2.254");
    let (from, to) = (ip("192.0.2.1"), ip("198.51.100.2"));
    let about = |packet: &[u8]| IcmpError::TimeExceeded.about(packet, router);
    assert!(about(&ipv4(from, to, 1, 1, &[8, 0, 0, 0])).is_some());
    assert!(about(&ipv4(from, to, 1, 1, &[11, 0, 0, 0])).is_none());
    assert!(about(&ipv4(from, to, 1, 1, &[])).is_none());
    assert!(about(&ipv4(from, ip("224.0.0.1"), 17, 1, b"x")).is_none());
    assert!(about(&ipv4(ip("0.0.0.0"), to, 17, 1, b"x")).is_none());
    let mut fragment = ipv4(from, to, 17, 1, b"x");
    fragment[7] = 5;
    fragment[10..12].copy_from_slice(&[0, 0]);
    let sum = internet_checksum(&fragment[..20]).to_be_bytes();
    fragment[10..12].copy_from_slice(&sum);
    assert!(IpHeader::parse(&fragment).unwrap().is_later_fragment);
    assert!(about(&fragment).is_none());
    // Of the other version.
    assert!(about(&ipv6(ip("2001:db8::1"), ip("2001:db8::2"), 17, 1, b"x")).is_none());
    let error = ipv6(ip("2001:db8::1"), ip("2001:db8::2"), 58, 1, &[1, 0, 0, 0]);
    assert!(
        IcmpError::TimeExceeded
            .about(&error, ip("2001:db8::9"))
            .is_none()
    );
    // Path MTU discovery works for groups (RFC 4443, section 2.4(e.3)).
    let group = ipv6(ip("2001:db8::1"), ip("ff0e::1"), 17, 9, b"x");
    let too_big = IcmpError::TooBig { mtu: 1280 };
    assert!(too_big.about(&group, ip("2001:db8::9")).is_some());
}

proptest! {
    #[test]
    fn a_forwarded_header_is_valid(from: [u8; 4], to: [u8; 4], protocol: u8, ttl in 2_u8.., content in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut packet = ipv4(from.into(), to.into(), protocol, ttl, &content);
        prop_assert!(decrement_hop_limit(&mut packet));
        let header = IpHeader::parse(&packet).unwrap();
        prop_assert_eq!(header.hop_limit, ttl - 1);
        prop_assert_eq!(header.protocol, protocol);
        prop_assert_eq!(&packet[20..], &content[..]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut packet in prop::collection::vec(any::<u8>(), 0..200), version in prop_oneof![Just(4_u8), Just(6)], first: bool) {
        if first && let [start, ..] = &mut packet[..] {
            *start = version << 4 | 5;
        }
        let _ = IpHeader::parse(&packet);
        let _ = IcmpError::TimeExceeded.about(&packet, "192.0.2.1".parse().unwrap());
        decrement_hop_limit(&mut packet);
    }

    #[test]
    fn any_extension_headers_are_read_or_refused(next in prop_oneof![Just(0_u8), Just(43), Just(44), Just(51), Just(60)], content in prop::collection::vec(prop_oneof![Just(0_u8), Just(44), Just(51), Just(60), 0_u8..4], 0..100)) {
        let packet = ipv6(ip("2001:db8::1"), ip("2001:db8::2"), next, 64, &content);
        if let Ok(header) = IpHeader::parse(&packet) {
            prop_assert!(header.length <= packet.len());
            let _ = IcmpError::Prohibited.about(&packet, ip("2001:db8::9"));
        }
    }
}
