//! What the ends of tunnels for IP packets read: capsules, scopes in paths, packets. What is accepted has a form that
//! is accepted again and means the same; whatever comes, an ICMP error about it is a packet.
#![no_main]

use std::net::IpAddr;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use swiftwater_http::h3::capsule::CapsuleReader;
use swiftwater_tunnel::ip::{
    IcmpError, IpCapsule, IpHeader, MAX_IP_CAPSULE, Scope, decrement_hop_limit,
};
use swiftwater_tunnel::target::Template;

fn check_packet(bytes: &[u8]) {
    let mut packet = bytes.to_vec();
    let Ok(header) = IpHeader::parse(&packet) else {
        decrement_hop_limit(&mut packet);
        return;
    };
    let router: IpAddr = if header.source.is_ipv4() {
        [192, 0, 2, 1].into()
    } else {
        [0xfd; 16].into()
    };
    for error in [IcmpError::TimeExceeded, IcmpError::TooBig { mtu: 1280 }] {
        if let Some(message) = error.about(&packet, router) {
            let of_message = IpHeader::parse(&message).expect("an ICMP error is a packet");
            assert_eq!(of_message.destination, header.source);
        }
    }
    if decrement_hop_limit(&mut packet) {
        let forwarded = IpHeader::parse(&packet).expect("a forwarded packet is one");
        assert_eq!(forwarded.hop_limit + 1, header.hop_limit);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut reader = CapsuleReader::new(MAX_IP_CAPSULE as u64);
    let mut rest = Bytes::copy_from_slice(bytes);
    while let Some(capsule) = reader.next(&mut rest) {
        if let Ok(Some(read)) = IpCapsule::decode(&capsule) {
            assert_eq!(IpCapsule::decode(&read.encode()), Ok(Some(read)));
        }
    }
    check_packet(bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(scope) = Scope::from_path(text)
    {
        let template = Template::new("proxy.example").expect("the default template");
        let uri = scope.uri(&template).expect("every scope fits");
        assert_eq!(Scope::from_path(uri.path()), Ok(scope));
    }
});
