//! Version Negotiation and stateless resets.

use std::sync::Arc;

use swiftwater_wire::{
    InvariantHeader, PacketType, PartialHeader, ResetToken, VERSION_1, Writer,
    write_version_negotiation,
};

use super::toy::*;
use crate::config::RetryPolicy;
use crate::crypto::EndpointKey;
use crate::endpoint::{Endpoint, Routed, version};
use crate::events::EndpointEvent;

/// A packet of `version` with connection IDs of `dst` and `src` bytes.
fn of_version(version: u32, dst: usize, src: usize, size: usize) -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend_from_slice(&version.to_be_bytes());
    packet.push(dst as u8);
    packet.extend(std::iter::repeat_n(0xdd, dst));
    packet.push(src as u8);
    packet.extend(std::iter::repeat_n(0x55, src));
    packet.resize(size.max(packet.len()), 0);
    packet
}

#[test]
fn unknown_version_is_negotiated() {
    let mut server = server(RetryPolicy::Never);
    let reply = answer(route(&mut server, 1, &of_version(0xff00_001d, 20, 7, 1200)));
    let header = PartialHeader::parse(&reply, 8).unwrap();
    assert_eq!(header.packet_type, PacketType::VersionNegotiation);
    assert_eq!(header.dst_cid, cid(&[0x55; 7]));
    assert_eq!(header.src_cid, cid(&[0xdd; 20]));
    let versions: Vec<u32> = header.supported_versions(&reply).collect();
    assert!(versions.contains(&VERSION_1));
    assert!(
        versions
            .iter()
            .any(|version| version & 0x0f0f_0f0f == 0x0a0a_0a0a),
        "{versions:x?}"
    );
    assert_eq!(server.stats().versions_negotiated, 1);
    assert_eq!(server.connections(), 0);
}

#[test]
fn version_negotiation_echoes_long_connection_ids() {
    let mut server = server(RetryPolicy::Never);
    let reply = answer(route(&mut server, 1, &of_version(5, 255, 255, 1200)));
    let header = InvariantHeader::parse(&reply, 8).unwrap();
    assert_eq!(header.version, Some(0));
    assert_eq!(
        (header.dst_cid, header.src_cid),
        (&[0x55; 255][..], Some(&[0xdd; 255][..]))
    );
}

#[test]
fn reserved_version_offered_is_never_the_one_tried() {
    for random in [0, 0x1234_5678, u32::MAX] {
        let offered = version::other_reserved_version(random, Some(VERSION_1));
        assert_eq!(offered & 0x0f0f_0f0f, 0x0a0a_0a0a);
        let other = version::other_reserved_version(random, Some(offered));
        assert_eq!(other & 0x0f0f_0f0f, 0x0a0a_0a0a);
        assert_ne!(other, offered);
    }
}

#[test]
fn small_datagrams_and_version_negotiation_get_no_version_negotiation() {
    let mut server = server(RetryPolicy::Never);
    assert!(matches!(
        route(&mut server, 1, &of_version(5, 8, 8, 1199)).0,
        Routed::Dropped
    ));
    assert_eq!(server.stats().dropped_too_short, 1);

    let mut negotiation = vec![0; 1200];
    let mut w = Writer::new(&mut negotiation);
    write_version_negotiation(&mut w, 0, &[1; 8], &[2; 8], &[0x1a2a_3a4a; 290]);
    assert!(matches!(
        route(&mut server, 1, &negotiation).0,
        Routed::Dropped
    ));
    assert_eq!(server.stats().versions_negotiated, 0);
}

#[test]
fn endpoint_that_accepts_nothing_negotiates_nothing() {
    assert!(matches!(
        route(&mut client(), 1, &of_version(5, 8, 8, 1200)).0,
        Routed::Dropped
    ));
}

#[test]
fn unknown_short_packet_is_answered_with_its_reset_token() {
    let mut server = server(RetryPolicy::Never);
    let unknown = cid(&[9; 8]);
    for size in 22..200 {
        let reset = answer(route(&mut server, 1, &short_packet(unknown, size)));
        assert!(
            reset.len() < size && reset.len() >= 21,
            "{} for {size}",
            reset.len()
        );
        if size <= 43 {
            assert_eq!(reset.len(), size - 1);
        } else {
            assert!(reset.len() >= 43);
        }
        assert_eq!(reset[0] & 0xc0, 0x40);
        assert_eq!(
            ResetToken(*reset.last_chunk().unwrap()),
            Toy.reset_token(&unknown)
        );
    }
    assert_eq!(server.stats().resets_sent, 178);
}

#[test]
fn resets_are_unpredictable() {
    let mut server = server(RetryPolicy::Never);
    let packet = short_packet(cid(&[9; 8]), 43);
    let first = answer(route(&mut server, 1, &packet));
    let second = answer(route(&mut server, 1, &packet));
    assert_ne!(first[1..first.len() - 16], second[1..second.len() - 16]);
}

#[test]
fn no_reset_where_it_could_loop_or_is_unwanted() {
    let mut server = server(RetryPolicy::Never);
    for size in 9..22 {
        let routed = route(&mut server, 1, &short_packet(cid(&[9; 8]), size)).0;
        assert!(
            matches!(routed, Routed::Dropped),
            "{size} bytes: {routed:?}"
        );
    }
    // Without the QUIC bit it is QUIC only for peers with the parameter (RFC 9287).
    let mut not_quic = short_packet(cid(&[9; 8]), 60);
    not_quic[0] = 0x0c;
    answer(route(&mut server, 1, &not_quic));
    let mut config = endpoint_config();
    config.grease = false;
    let mut plain = Endpoint::new(config, None, [1; 32]);
    assert!(matches!(route(&mut plain, 1, &not_quic).0, Routed::Dropped));

    let mut config = endpoint_config();
    config.stateless_reset = false;
    let mut quiet = Endpoint::new(config, None, [1; 32]);
    assert!(matches!(
        route(&mut quiet, 1, &short_packet(cid(&[9; 8]), 60)).0,
        Routed::Dropped
    ));
}

#[test]
fn two_endpoints_that_reset_each_other_stop_sending() {
    let mut ends = [server(RetryPolicy::Never), client()];
    let mut packet = short_packet(cid(&[9; 8]), 1200);
    for round in 0.. {
        assert!(round < 100, "still sending");
        match route(&mut ends[round % 2], 1, &packet) {
            (Routed::Response(_), reply) => packet = reply,
            (Routed::Dropped, _) => break,
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[test]
fn reset_from_the_peer_reaches_the_connection() {
    let mut endpoint = client();
    let (handle, _) = endpoint
        .connect(
            crate::units::Instant::ZERO,
            &client_config(),
            addr(443),
            "host",
        )
        .unwrap();
    let token = ResetToken([0xab; 16]);
    let event = EndpointEvent::PeerResetToken {
        remote: addr(443),
        token,
    };
    endpoint.handle_event(handle, event);

    let mut reset = short_packet(cid(&[9; 8]), 40);
    reset[24..].copy_from_slice(&token.0);
    assert_eq!(belongs(route(&mut endpoint, 443, &reset)), handle);
    assert_eq!(endpoint.stats().resets_received, 1);
    // From elsewhere, with another token or too short it is just an unknown packet.
    assert!(!matches!(
        route(&mut endpoint, 444, &reset).0,
        Routed::Connection(_)
    ));
    assert!(!matches!(
        route(&mut endpoint, 443, &reset[20..]).0,
        Routed::Connection(_)
    ));
    let mut other = reset.clone();
    other[39] ^= 1;
    assert!(!matches!(
        route(&mut endpoint, 443, &other).0,
        Routed::Connection(_)
    ));

    let event = EndpointEvent::PeerResetTokenRetired {
        remote: addr(443),
        token,
    };
    endpoint.handle_event(handle, event);
    assert!(!matches!(
        route(&mut endpoint, 443, &reset).0,
        Routed::Connection(_)
    ));
}

#[test]
fn answers_that_do_not_fit_are_not_sent() {
    let mut endpoint = server(RetryPolicy::Always);
    let datagrams = [
        of_version(5, 8, 8, 1200),
        short_packet(cid(&[9; 8]), 60),
        first_initial(1),
    ];
    for datagram in &datagrams {
        let mut out = [0; 20];
        let now = crate::units::Instant::ZERO;
        let routed = endpoint.route(now, &meta(1), datagram, &mut out);
        assert!(matches!(routed, Routed::Dropped), "{routed:?}");
    }
    assert_eq!(endpoint.stats().dropped_no_room, 3);
}

#[test]
fn resets_are_limited_in_number() {
    let mut config = endpoint_config();
    config.stateless_resets_per_second = 10;
    let accept = Some(Arc::new(server_config(RetryPolicy::Never)));
    let mut server = Endpoint::new(config, accept, [1; 32]);
    let flood = |server: &mut Endpoint, second, packets: u8| {
        for n in 0..packets {
            let packet = short_packet(cid(&[n; 8]), 100);
            route_at(server, second, 1, &packet);
        }
        (server.stats().resets_sent, server.stats().resets_withheld)
    };
    assert_eq!(flood(&mut server, 100, 50), (10, 40));
    assert_eq!(flood(&mut server, 100, 50), (10, 90));
    assert_eq!(flood(&mut server, 101, 50), (20, 130));
    // However long nothing was received.
    assert_eq!(flood(&mut server, 900, 50), (30, 170));
}
