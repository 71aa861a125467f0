//! Several paths beside what the handshake brings with it: early data, a preferred address, several addresses of the
//! server, stateless resets.

use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::{
    ConnectionError, EarlyData, EarlyDataOutcome, PathAddress, PreferredAddresses,
};
use swiftwater_sim::{Cipher, Direction, Pair};
use swiftwater_tls::MemorySessionStore;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::{PathId, Side};

use support::paths::{SECOND, attach, builder, has_opened, kill, opened, sent_on, with_two_paths};
use support::{BOTH, SIDES, link, millis, reason, run_to_close, secs};

fn elsewhere() -> SocketAddr {
    ([198, 51, 100, 77], 4_433).into()
}

/// Limits of paths are not remembered (draft-ietf-quic-multipath-21, section 2.1), and 0-RTT packets belong to path 0.
#[test]
fn paths_are_opened_after_early_data() {
    let client = NullClient::new(["sim"]).with_early_data(true);
    let client: Arc<dyn ClientCrypto> =
        Arc::new(client.with_sessions(Arc::new(MemorySessionStore::default())));
    let server = NullServer::new(["sim"]).with_ticket(true);
    let server: Arc<dyn ServerCrypto> = Arc::new(server.with_early_data(true));
    let visit = |seed| {
        builder(link(20, 10))
            .seed(seed)
            .crypto(Arc::clone(&client), Arc::clone(&server))
            .server_settings(|server| server.early_data = EarlyData::Accept)
            .build()
            .unwrap()
    };
    let mut first = visit(1);
    assert!(first.connect());
    first.advance(secs(1));
    let mut pair = visit(2);
    pair.start().unwrap();
    assert!(pair.client().may_send_early_data());
    assert!(!pair.client().is_multipath());
    let early = pair.start_transfer(3_000, Direction::ToServer);
    assert!(pair.finish_transfers());
    assert!(pair.connect());
    pair.advance(millis(300));
    assert_eq!(
        pair.stats(Side::Server).early_data,
        Some(EarlyDataOutcome::Accepted)
    );
    assert!(pair.transfer_report(early).verified);
    let second = attach(&mut pair, 200, link(20, 10));
    assert_eq!(opened(&mut pair, second), SECOND);
    let later = pair.start_transfer(2_000_000, Direction::ToServer);
    assert!(pair.run_until(|pair| pair.transfer_report(later).verified));
    assert!(sent_on(&pair, Side::Client, SECOND) > 500_000);
}

/// Using the preferred address is a migration of path 0 (section 3.1.3); others stay where they are.
#[test]
fn the_first_path_moves_to_the_preferred_address_and_a_second_one_stays() {
    let builder = builder(link(20, 10)).endpoint(Side::Server, |config| {
        config.preferred_address = PreferredAddresses::default().with(elsewhere());
    });
    let mut pair = builder.build().unwrap();
    pair.attach(Side::Server, elsewhere(), link(20, 10))
        .unwrap();
    assert!(pair.connect());
    pair.advance(secs(1));
    let second = attach(&mut pair, 200, link(20, 10));
    assert_eq!(opened(&mut pair, second), SECOND);
    for direction in BOTH {
        let transfer = pair.start_transfer(2_000_000, direction);
        assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
    }
    let home = pair.address(Side::Server);
    let remote = |pair: &mut Pair, path| pair.client().address_of(path).unwrap().remote;
    assert_eq!(remote(&mut pair, PathId::ZERO), elsewhere());
    assert_eq!(remote(&mut pair, SECOND), home);
    for path in [PathId::ZERO, SECOND] {
        assert!(sent_on(&pair, Side::Server, path) > 200_000, "{path:?}");
    }
}

#[test]
fn paths_lead_to_several_addresses_of_a_server() {
    let mut pair = support::paths::connected(builder(link(20, 10)));
    pair.attach(Side::Server, elsewhere(), link(20, 10))
        .unwrap();
    let second = attach(&mut pair, 200, link(20, 10));
    let (now, to) = (
        pair.now(),
        PathAddress {
            remote: elsewhere(),
            local: second.local,
        },
    );
    assert_eq!(pair.client().open_path(now, to), Ok(SECOND));
    assert!(pair.run_until(|pair| SIDES.into_iter().all(|side| has_opened(pair, side, SECOND))));
    for direction in BOTH {
        let transfer = pair.start_transfer(4_000_000, direction);
        assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
    }
    for side in SIDES {
        for path in [PathId::ZERO, SECOND] {
            assert!(sent_on(&pair, side, path) > 500_000, "{side:?} {path:?}");
        }
    }
}

/// A stateless reset that answers a packet of the second path ends the connection: its token is that of a connection ID
/// of the path.
#[test]
fn a_stateless_reset_on_the_second_path_ends_the_connection() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let (mut pair, second) = with_two_paths(builder(link(20, 10)).cipher(cipher), link(20, 10));
        pair.advance(secs(1));
        // The first path brings nothing any more.
        for direction in BOTH {
            let first = pair.link(direction);
            pair.network().tap(first, |_| swiftwater_sim::Verdict::Drop);
        }
        pair.restart(Side::Server);
        assert!(pair.client().ping_path(SECOND));
        run_to_close(&mut pair, Side::Client);
        assert_eq!(reason(&pair, Side::Client), Some(ConnectionError::Reset));
        kill(&mut pair, second);
    }
}
