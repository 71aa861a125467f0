//! Which first packets start a connection; Retry, tokens, limits.

use std::sync::Arc;

use swiftwater_units::Instant;
use swiftwater_wire::{ErrorCode, PacketType, PartialHeader, VERSION_1, VERSION_2};

use super::toy::*;
use crate::address_token::issue_address_token;
use crate::config::RetryPolicy;
use crate::crypto::Primitives;
use crate::endpoint::{Endpoint, Routed};
use crate::events::EndpointEvent;

/// Sends the first packet of client 1 at second 100, expects Retry, and returns its token and
/// source.
fn retried(server: &mut Endpoint) -> (Vec<u8>, swiftwater_wire::ConnectionId) {
    let retry = answer(route(server, 1, &first_initial(1)));
    let header = PartialHeader::parse(&retry, 8).unwrap();
    assert_eq!(header.packet_type, PacketType::Retry);
    assert_eq!(header.dst_cid, cid(&[1, 0xee]));
    let untagged = &retry[..retry.len() - 16];
    assert_eq!(
        header.retry_tag(&retry),
        Some(&Toy.retry_tag(VERSION_1, &cid(&[1; 8]), untagged)),
        "the tag covers the client's first destination"
    );
    (retry[header.token].to_vec(), header.src_cid)
}

#[test]
fn valid_first_packet_starts_a_connection() {
    let mut server = server(RetryPolicy::Never);
    accepted(route(&mut server, 1, &first_initial(1)));
    assert_eq!((server.connections(), server.handshakes()), (1, 1));
    let datagram = [first_initial(2), vec![0; 300]].concat();
    accepted(route(&mut server, 1, &datagram));
}

#[test]
fn packets_that_cannot_start_a_connection_are_dropped() {
    let mut server = server(RetryPolicy::Never);
    let src = cid(&[1]);
    let drop = |datagram: &[u8], server: &mut Endpoint| {
        let routed = route(server, 1, datagram).0;
        assert!(matches!(routed, Routed::Dropped), "{routed:?}");
        server.stats()
    };
    assert_eq!(
        drop(&initial(cid(&[1; 8]), src, &[], 1199), &mut server).dropped_too_short,
        1
    );
    assert_eq!(
        drop(&initial(cid(&[1; 7]), src, &[], 1200), &mut server).dropped_malformed,
        1
    );
    for packet_type in [0x10, 0x20] {
        let mut other = first_initial(1);
        other[0] = other[0] & 0xcf | packet_type;
        drop(&other, &mut server);
    }
    assert_eq!(server.stats().dropped_unknown, 2);
    assert_eq!(drop(&[], &mut server).dropped_malformed, 2);
    server.set_server_config(None);
    assert_eq!(
        drop(&first_initial(1), &mut server).dropped_not_accepting,
        1
    );
    assert_eq!(server.connections(), 0);
}

#[test]
fn damaged_first_packets_leave_no_state() {
    let mut server = server(RetryPolicy::Never);
    for at in (0..1200).step_by(7) {
        let mut damaged = first_initial(1);
        damaged[at] ^= 0x10;
        let routed = route(&mut server, 1, &damaged).0;
        let harmless = matches!(routed, Routed::Dropped | Routed::Response(_));
        assert!(harmless, "byte {at}: {routed:?}");
    }
    assert_eq!(server.connections(), 0);
    assert!(server.stats().dropped_unauthenticated > 100);
}

#[test]
fn too_many_connections_or_handshakes_are_refused() {
    for (max_connections, max_handshakes) in [(2, 100), (100, 2)] {
        let mut config = endpoint_config();
        config.max_connections = max_connections;
        config.max_handshakes = max_handshakes;
        let accept = Some(Arc::new(server_config(RetryPolicy::Never)));
        let mut server = Endpoint::new(config, accept, [1; 32]);
        let (first, _) = accepted(route(&mut server, 1, &first_initial(1)));
        accepted(route(&mut server, 1, &first_initial(2)));
        let close = answer(route(&mut server, 1, &first_initial(3)));
        let code = close_code(&close, cid(&[3; 8]), cid(&[3, 0xee]));
        assert_eq!(code, ErrorCode::CONNECTION_REFUSED);
        assert_eq!((server.stats().refused, server.connections()), (1, 2));

        let room = if max_handshakes == 2 {
            EndpointEvent::HandshakeDone
        } else {
            EndpointEvent::Drained
        };
        server.handle_event(first, room.clone());
        server.handle_event(first, room);
        accepted(route(&mut server, 1, &first_initial(3)));
        answer(route(&mut server, 1, &first_initial(4)));
    }
}

#[test]
fn a_busy_driver_refuses_without_state() {
    let mut server = server(RetryPolicy::Never);
    accepted(route(&mut server, 1, &first_initial(1)));
    server.set_refusing(true);
    let mut damaged = first_initial(2);
    damaged[700] ^= 1;
    assert!(matches!(route(&mut server, 1, &damaged).0, Routed::Dropped));
    assert_eq!(server.stats().turned_away, 0);
    let close = answer(route(&mut server, 1, &first_initial(2)));
    let code = close_code(&close, cid(&[2; 8]), cid(&[2, 0xee]));
    assert_eq!(code, ErrorCode::CONNECTION_REFUSED);
    assert_eq!((server.connections(), server.handshakes()), (1, 1));
    let stats = server.stats();
    assert_eq!(
        (stats.refused, stats.turned_away, stats.refusals_sent),
        (1, 1, 1)
    );
    // Nothing was kept that would be in the way of the next attempt.
    server.set_refusing(false);
    accepted(route(&mut server, 1, &first_initial(2)));
    assert_eq!(server.stats().turned_away, 1);
}

#[test]
fn damaged_packet_is_not_refused_aloud() {
    let mut config = endpoint_config();
    config.max_connections = 0;
    let accept = Some(Arc::new(server_config(RetryPolicy::Never)));
    let mut server = Endpoint::new(config, accept, [1; 32]);
    let mut damaged = first_initial(1);
    damaged[700] ^= 1;
    assert!(matches!(route(&mut server, 1, &damaged).0, Routed::Dropped));
    assert_eq!(server.stats().refused, 0);
}

#[test]
fn client_that_answers_retry_is_accepted() {
    let mut server = server(RetryPolicy::Always);
    let (token, src) = retried(&mut server);
    assert_eq!(server.connections(), 0, "Retry keeps no state");
    let second = initial(src, cid(&[1, 0xee]), &token, 1200);
    let (handle, _) = accepted(route_at(&mut server, 115, 1, &second));
    assert_eq!(belongs(route_at(&mut server, 116, 1, &second)), handle);
    assert_eq!(
        (server.stats().retries_sent, server.stats().accepted),
        (1, 1)
    );
}

#[test]
fn retry_token_is_good_only_where_and_when_it_was_given() {
    let mut server = server(RetryPolicy::Always);
    let (token, src) = retried(&mut server);
    let client = cid(&[1, 0xee]);
    let good = initial(src, client, &token, 1200);
    let mut check = |second, port, datagram: &[u8], dst| {
        let close = answer(route_at(&mut server, second, port, datagram));
        assert_eq!(close_code(&close, dst, client), ErrorCode::INVALID_TOKEN);
    };
    check(116, 1, &good, src); // too late
    check(99, 1, &good, src); // from the future
    check(101, 2, &good, src); // another port
    let elsewhere = cid(&[0x77; 8]);
    check(101, 1, &initial(elsewhere, client, &token, 1200), elsewhere);
    for at in 1..token.len() {
        let mut forged = token.clone();
        forged[at] ^= 1;
        check(101, 1, &initial(src, client, &forged, 1200), src);
    }
    let stats = server.stats();
    assert_eq!(
        (stats.invalid_tokens, stats.retries_sent),
        (token.len() as u64 + 3, 1)
    );
    assert_eq!(stats.refusals_sent, stats.invalid_tokens);
    assert_eq!(server.connections(), 0);
}

#[test]
fn address_token_saves_retry_while_it_is_good() {
    let mut server = server(RetryPolicy::Always);
    let mut rng = rng();
    let mut of_version = |version: u32, second: u64, ip: [u8; 4]| {
        let now = Instant::from_millis(second * 1000);
        issue_address_token(&Toy, &mut rng, now, version, ip.into())
    };
    // Tokens belong to a version (RFC 9369, section 5).
    let other_version = of_version(VERSION_2, 50, [192, 0, 2, 1]);
    let mut token = |second, ip| of_version(VERSION_1, second, ip);
    let here = [192, 0, 2, 1];
    let (fresh, foreign) = (token(50, here), token(50, [192, 0, 2, 99]));
    let future = token(5000, here);
    let mut forged = fresh.clone();
    forged[30] ^= 1;
    let with = |n: u8, token: &[u8]| initial(cid(&[n; 8]), cid(&[n]), token, 1200);

    // Any port of the address will do.
    accepted(route(&mut server, 1, &with(1, &token(50, here))));
    accepted(route(&mut server, 2, &with(2, &token(50, here))));
    accepted(route_at(&mut server, 1050, 3, &with(3, &token(50, here))));
    // A bad one is as good as none.
    let unknown = vec![0x99; 40];
    let long = vec![0x41; 600];
    let none: [(u64, &[u8]); 7] = [
        (100, &other_version),
        (1051, &fresh),
        (100, &foreign),
        (100, &future),
        (100, &forged),
        (100, &unknown),
        (100, &long),
    ];
    for (n, (second, token)) in none.into_iter().enumerate() {
        let retry = answer(route_at(
            &mut server,
            second,
            9,
            &with(0x40 + n as u8, token),
        ));
        let header = PartialHeader::parse(&retry, 8).unwrap();
        assert_eq!(header.packet_type, PacketType::Retry, "token {n}");
    }
    assert_eq!(server.stats().invalid_tokens, 0);
}

#[test]
fn kinds_of_tokens_cannot_be_exchanged() {
    let mut server = server(RetryPolicy::Always);
    let (retry_token, src) = retried(&mut server);
    let mut address_token = issue_address_token(
        &Toy,
        &mut rng(),
        Instant::ZERO,
        VERSION_1,
        [192, 0, 2, 1].into(),
    );
    let client = cid(&[1, 0xee]);

    let mut disguised = retry_token.clone();
    disguised[0] = address_token[0];
    let reply = answer(route(
        &mut server,
        1,
        &initial(src, client, &disguised, 1200),
    ));
    assert_eq!(
        PartialHeader::parse(&reply, 8).unwrap().packet_type,
        PacketType::Retry
    );

    address_token[0] = retry_token[0];
    let reply = answer(route(
        &mut server,
        1,
        &initial(src, client, &address_token, 1200),
    ));
    assert_eq!(close_code(&reply, src, client), ErrorCode::INVALID_TOKEN);
}

#[test]
fn retry_under_load_only() {
    let mut server = server(RetryPolicy::Above(1));
    let (first, _) = accepted(route(&mut server, 1, &first_initial(1)));
    accepted(route(&mut server, 1, &first_initial(2)));
    answer(route(&mut server, 1, &first_initial(3)));
    assert_eq!(server.stats().retries_sent, 1);
    server.handle_event(first, EndpointEvent::HandshakeDone);
    accepted(route(&mut server, 1, &first_initial(3)));
}

#[test]
fn same_seed_same_answers() {
    let run = |seed| {
        let accept = Some(Arc::new(server_config(RetryPolicy::Always)));
        let mut server = Endpoint::new(endpoint_config(), accept, [seed; 32]);
        let retry = answer(route(&mut server, 1, &first_initial(1)));
        [
            retry,
            answer(route(&mut server, 1, &short_packet(cid(&[9; 8]), 99))),
        ]
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
