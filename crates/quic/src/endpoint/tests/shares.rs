//! Clients share connections by their addresses.

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_units::Instant;
use swiftwater_wire::{ErrorCode, PacketType, PartialHeader};

use super::toy::*;
use crate::config::RetryPolicy;
use crate::endpoint::{ConnectionHandle, Endpoint, Routed};
use crate::events::EndpointEvent;
use crate::transmit::DatagramMeta;

/// A server for 8 connections, of which `handshakes` may be half open.
fn sharing(retry: RetryPolicy, handshakes: usize) -> Endpoint {
    let mut config = endpoint_config();
    config.max_connections = 8;
    config.max_handshakes = handshakes;
    config.share_by_address = true;
    Endpoint::new(config, Some(Arc::new(server_config(retry))), [1; 32])
}

/// Client `n`, which is at the address 203.0.113.`host`, asks for a connection.
fn ask(server: &mut Endpoint, host: u8, n: u8) -> (Routed, Vec<u8>) {
    let mut out = vec![0; 1500];
    let meta = DatagramMeta {
        remote: SocketAddr::from(([203, 0, 113, host], u16::from(n))),
        ..meta(1)
    };
    let routed = server.route(Instant::from_millis(1), &meta, &first_initial(n), &mut out);
    if let Routed::Response(transmit) = &routed {
        out.truncate(transmit.size);
    }
    (routed, out)
}

fn admitted(server: &mut Endpoint, host: u8, n: u8) -> ConnectionHandle {
    accepted(ask(server, host, n)).0
}

fn is_refused(server: &mut Endpoint, host: u8, n: u8) {
    let close = answer(ask(server, host, n));
    let code = close_code(&close, cid(&[n; 8]), cid(&[n, 0xee]));
    assert_eq!(code, ErrorCode::CONNECTION_REFUSED);
}

#[test]
fn a_client_that_takes_all_it_can_leaves_places_for_others() {
    let mut server = sharing(RetryPolicy::Never, 100);
    let first = admitted(&mut server, 1, 1);
    for n in 2..=4 {
        let handle = admitted(&mut server, 1, n);
        server.handle_event(handle, EndpointEvent::HandshakeDone);
    }
    // Four places are free, and it holds four.
    is_refused(&mut server, 1, 5);
    assert_eq!((server.stats().refused, server.stats().over_share), (1, 1));
    let other = admitted(&mut server, 2, 6);
    is_refused(&mut server, 1, 7);
    // What it gives back counts no more, and nothing is given back twice.
    for _ in 0..2 {
        server.handle_event(other, EndpointEvent::Drained);
        server.handle_event(first, EndpointEvent::HandshakeDone);
        server.handle_event(first, EndpointEvent::Drained);
    }
    admitted(&mut server, 1, 8);
    is_refused(&mut server, 1, 9);
    admitted(&mut server, 2, 10);
}

#[test]
fn half_open_connections_are_shared_too() {
    let mut server = sharing(RetryPolicy::Never, 4);
    let first = admitted(&mut server, 1, 1);
    admitted(&mut server, 1, 2);
    is_refused(&mut server, 1, 3);
    admitted(&mut server, 2, 4);
    server.handle_event(first, EndpointEvent::HandshakeDone);
    admitted(&mut server, 1, 5);
    is_refused(&mut server, 1, 6);
    admitted(&mut server, 3, 7);
}

/// Half-open connections of addresses that may be forged take no more than an eighth of the places.
#[test]
fn addresses_are_proved_before_many_count() {
    let mut server = sharing(RetryPolicy::Above(1_000), 100);
    let first = admitted(&mut server, 1, 1);
    let retry = answer(ask(&mut server, 2, 2));
    let header = PartialHeader::parse(&retry, 8).unwrap();
    assert_eq!(header.packet_type, PacketType::Retry);
    server.handle_event(first, EndpointEvent::HandshakeDone);
    admitted(&mut server, 2, 2);
}

#[test]
fn without_shares_one_client_may_take_all() {
    let mut config = endpoint_config();
    config.max_connections = 8;
    let accept = Some(Arc::new(server_config(RetryPolicy::Never)));
    let mut server = Endpoint::new(config, accept, [1; 32]);
    for n in 1..=8 {
        admitted(&mut server, 1, n);
    }
    assert_eq!(server.stats().over_share, 0);
}
