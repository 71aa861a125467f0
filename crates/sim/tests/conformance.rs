//! Rules that belong to no single feature: paths that are too small for QUIC (RFC 9000, section 14),
//! and state that must not be transferred from one connection to the next (sections 7.4.1 and 9.6).

use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::wire::PacketType;
use swiftwater_quic::{EarlyData, EarlyDataOutcome, Event, PreferredAddresses};
use swiftwater_sim::{Direction, Pair};
use swiftwater_tls::MemorySessionStore;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::Side;

use support::{BOTH, count, drop_if, link, packet_types, secs};

#[test]
fn no_connection_over_less_than_1200_bytes() {
    for direction in BOTH {
        for (carries, works) in [(1199, false), (1200, true)] {
            let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
            drop_if(&mut pair, direction, move |datagram| {
                datagram.data.len() > carries
            });
            assert_eq!(pair.connect(), works, "{direction:?} {carries}");
            let confirmed = |event: &Event| *event == Event::Confirmed;
            for side in support::SIDES {
                assert!(works || count(&pair, side, confirmed) == 0, "{direction:?}");
            }
        }
    }
}

#[test]
fn a_preferred_address_is_for_one_connection() {
    let preferred: SocketAddr = ([198, 51, 100, 77], 4_433).into();
    let client = NullClient::new(["sim"])
        .with_early_data(true)
        .with_sessions(Arc::new(MemorySessionStore::default()));
    let server = NullServer::new(["sim"])
        .with_ticket(true)
        .with_early_data(true);
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let server: Arc<dyn ServerCrypto> = Arc::new(server);
    let visit = |seed| {
        let mut pair = Pair::builder()
            .seed(seed)
            .crypto(Arc::clone(&client), Arc::clone(&server))
            .server_settings(|server| server.early_data = EarlyData::Accept)
            .endpoint(Side::Server, move |config| {
                config.preferred_address = PreferredAddresses::default().with(preferred);
            })
            .link(link(10, 20))
            .build()
            .unwrap();
        pair.attach(Side::Server, preferred, link(10, 20)).unwrap();
        pair
    };
    let migrated = |event: &Event| matches!(event, Event::Migrated { .. });
    let mut pair = visit(1);
    assert!(pair.connect());
    pair.advance(secs(1));
    assert_eq!(count(&pair, Side::Client, migrated), 1);

    let mut pair = visit(2);
    let usual = pair.address(Side::Server);
    let sent = pair.record(Direction::ToServer);
    pair.start().unwrap();
    pair.start_transfer(5_000, Direction::ToServer);
    let confirmed = |event: &Event| *event == Event::Confirmed;
    assert!(pair.run_until(|pair| count(pair, Side::Client, confirmed) == 1));
    let now = pair.now();
    let mut early = 0;
    for datagram in sent.datagrams() {
        if datagram.at < now {
            assert_eq!(datagram.destination, usual);
            let kinds = packet_types(&datagram.data);
            early += usize::from(kinds.contains(&PacketType::ZeroRtt));
        }
    }
    assert!(early > 0);
    let outcome = pair.stats(Side::Client).early_data;
    assert_eq!(outcome, Some(EarlyDataOutcome::Accepted));
}
