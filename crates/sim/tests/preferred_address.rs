//! Servers that send their clients a preferred address (RFC 9000, section 9.6).

use crate::support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use swiftwater_link::LossModel;
use swiftwater_quic::{Event, MigrateError, PreferredAddresses, RandomCids, SocketId};
use swiftwater_sim::{Attachment, Cipher, Direction, Pair, PairBuilder, Verdict};
use swiftwater_units::Side;

use support::{BOTH, CID_LEN, link, millis, path, reason, secs, stranger};

fn v4() -> SocketAddr {
    ([198, 51, 100, 77], 4_433).into()
}

fn v6() -> SocketAddr {
    "[2001:db8::77]:4433".parse().unwrap()
}

fn builder(addresses: &[SocketAddr]) -> PairBuilder {
    let preferred = addresses
        .iter()
        .fold(PreferredAddresses::default(), |all, &each| all.with(each));
    Pair::builder()
        .link(link(10, 20))
        .endpoint(Side::Server, move |config| {
            config.preferred_address = preferred;
        })
}

/// The pair, with the server listening at `address` too.
fn listening(builder: PairBuilder, address: SocketAddr) -> (Pair, Attachment) {
    let mut pair = builder.build().unwrap();
    let attachment = pair.attach(Side::Server, address, link(10, 20)).unwrap();
    (pair, attachment)
}

/// By direction (true: to the server) and connection ID, the server's addresses where it was seen.
type Sightings = BTreeMap<(bool, Vec<u8>), Vec<SocketAddr>>;

fn moved(pair: &Pair) -> Vec<SocketAddr> {
    let to = |event: &Event| match event {
        Event::Migrated { address, .. } => Some(address.remote),
        _ => None,
    };
    pair.events(Side::Client).iter().filter_map(to).collect()
}

#[test]
fn a_client_moves_to_the_preferred_address_and_data_follows() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for direction in BOTH {
            let (mut pair, there) = listening(builder(&[v4(), v6()]).cipher(cipher), v4());
            assert!(pair.connect());
            let id = pair.start_transfer(2_000_000, direction);
            assert!(pair.finish_transfers(), "{direction:?}");
            assert!(pair.transfer_report(id).verified);
            assert_eq!(moved(&pair), [v4()]);
            assert_eq!(pair.client().remote(), v4());
            // The server answers from there.
            assert_eq!(path(&pair, Side::Server).local, there.local);
            assert_eq!(pair.server().remote(), pair.address(Side::Client));
            let down = pair.record(Direction::ToClient);
            let report = pair.transfer(200_000, direction);
            assert!(
                report.verified && report.finish - report.start < secs(1),
                "{report:?}"
            );
            assert!(down.is_empty(), "something still came from the old address");
        }
    }
}

#[test]
fn no_connection_id_is_seen_at_both_addresses() {
    let (mut pair, there) = listening(builder(&[v4()]), v4());
    let seen: Rc<RefCell<Sightings>> = Rc::default();
    let client = pair.address(Side::Client);
    let mut links = BOTH.map(|direction| pair.link(direction)).to_vec();
    links.push(there.uplink);
    for link in links {
        let seen = Rc::clone(&seen);
        pair.network().tap(link, move |datagram| {
            if datagram.data[0] < 0x80 {
                let up = datagram.source == client;
                let server = if up {
                    datagram.destination
                } else {
                    datagram.source
                };
                let id = datagram.data[1..=CID_LEN].to_vec();
                let mut seen = seen.borrow_mut();
                let places = seen.entry((up, id)).or_default();
                if !places.contains(&server) {
                    places.push(server);
                }
            }
            Verdict::Pass
        });
    }
    assert!(pair.connect());
    for direction in BOTH {
        pair.start_transfer(500_000, direction);
    }
    assert!(pair.finish_transfers());
    pair.advance(secs(2));
    assert_eq!(moved(&pair), [v4()]);
    let seen = seen.borrow();
    assert!(seen.len() >= 4);
    for (id, places) in &*seen {
        assert_eq!(places.len(), 1, "{id:?} was seen at {places:?}");
    }
}

#[test]
fn a_client_takes_the_family_that_it_came_with() {
    let home: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
    let mut pair = builder(&[v4(), v6()]).build().unwrap();
    pair.attach(Side::Server, home, link(10, 20)).unwrap();
    let there = pair.attach(Side::Server, v6(), link(10, 20)).unwrap();
    let config = pair.client_config().clone();
    pair.start_with(&config, home).unwrap();
    assert!(pair.connect());
    pair.advance(secs(1));
    assert_eq!(moved(&pair), [v6()]);
    assert_eq!(path(&pair, Side::Server).local, there.local);

    // Without an address of its family it stays.
    let mut pair = builder(&[v6()]).build().unwrap();
    pair.attach(Side::Server, v6(), link(10, 20)).unwrap();
    assert!(pair.connect());
    pair.advance(secs(5));
    assert!(moved(&pair).is_empty());
}

#[test]
fn a_client_stays_where_it_is_without_an_answer_from_the_preferred_address() {
    let mut pair = builder(&[v4()]).build().unwrap();
    let home = pair.address(Side::Server);
    assert!(pair.connect());
    let report = pair.transfer(2_000_000, Direction::ToClient);
    assert!(
        report.verified && report.finish - report.start < secs(3),
        "{report:?}"
    );
    pair.advance(secs(6));
    assert!(moved(&pair).is_empty());
    assert_eq!(pair.client().remote(), home);
    assert!(reason(&pair, Side::Client).is_none());
    // The server requested it, not the application: no failure is reported.
    let failed = |event: &Event| matches!(event, Event::MigrationFailed { .. });
    assert_eq!(support::count(&pair, Side::Client, failed), 0);
}

#[test]
fn a_client_may_ignore_the_preferred_address() {
    let (mut pair, _) = listening(
        builder(&[v4()]).client_config(|config| config.use_preferred_address = false),
        v4(),
    );
    assert!(pair.connect());
    pair.advance(secs(5));
    assert!(moved(&pair).is_empty());
    // The connection ID of the preferred address is an ordinary one.
    let now = pair.now();
    let other = pair
        .attach(Side::Client, ([192, 0, 2, 9], 9_999).into(), link(10, 20))
        .unwrap();
    pair.client().migrate(now, other.local).unwrap();
    pair.advance(secs(1));
    assert_eq!(pair.server().remote(), ([192, 0, 2, 9], 9_999).into());
}

#[test]
fn the_server_sends_from_its_old_address_until_the_client_has_moved() {
    let (mut pair, there) = listening(builder(&[v4()]), v4());
    let from_there = pair.network().record(there.uplink);
    // Nothing but the client's first challenge arrives there.
    let mut first = true;
    support::drop_if(&mut pair, Direction::ToServer, move |datagram| {
        datagram.destination == v4() && !std::mem::take(&mut first)
    });
    assert!(pair.connect());
    pair.start_transfer(3_000_000, Direction::ToClient);
    pair.advance(millis(30));
    assert_eq!(path(&pair, Side::Server).local.socket, SocketId(0));
    pair.advance(millis(500));
    // Only probing packets arrived: full datagrams with challenges and responses.
    let sent = from_there.datagrams();
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|each| each.data.len() == 1_200));
    assert_eq!(path(&pair, Side::Server).local.socket, SocketId(0));
}

#[test]
fn loss_does_not_keep_a_client_from_moving() {
    let mut arrived = 0;
    for seed in 0..10 {
        let lossy = link(10, 20).loss(LossModel::Bernoulli(0.1));
        let mut pair = builder(&[v4()])
            .seed(seed)
            .link(lossy.clone())
            .build()
            .unwrap();
        pair.attach(Side::Server, v4(), lossy).unwrap();
        assert!(pair.connect());
        for direction in BOTH {
            pair.start_transfer(1_000_000, direction);
        }
        assert!(pair.finish_transfers(), "seed {seed}");
        pair.advance(secs(4));
        arrived += moved(&pair).len();
    }
    assert!(arrived >= 8, "{arrived} of 10");
}

#[test]
fn disabled_migration_ends_at_the_preferred_address() {
    let (mut pair, there) = listening(
        builder(&[v4()]).server_config(|config| config.migration = false),
        v4(),
    );
    assert!(pair.connect());
    let other = pair
        .attach(Side::Client, ([192, 0, 2, 9], 9_999).into(), link(10, 20))
        .unwrap();
    let now = pair.now();
    // The client has not moved yet.
    assert_eq!(
        pair.client().migrate(now, other.local),
        Err(MigrateError::Disabled)
    );
    pair.advance(secs(1));
    assert_eq!(path(&pair, Side::Server).local, there.local);
    let now = pair.now();
    pair.client().migrate(now, other.local).unwrap();
    let report = pair.transfer(300_000, Direction::ToClient);
    assert!(report.verified);
    assert_eq!(pair.server().remote(), ([192, 0, 2, 9], 9_999).into());
    assert_eq!(path(&pair, Side::Server).local, there.local);
}

#[test]
fn a_client_that_moves_before_it_came_to_the_preferred_address_ends_up_there() {
    for wait in [0, 15, 30, 60] {
        let (mut pair, there) = listening(builder(&[v4()]), v4());
        let away: SocketAddr = ([192, 0, 2, 9], 9_999).into();
        let other = pair.attach(Side::Client, away, link(10, 20)).unwrap();
        assert!(pair.run_until(|pair| {
            if pair.handle(Side::Client).is_none() {
                pair.start().unwrap();
            }
            pair.events(Side::Client).contains(&Event::Confirmed)
        }));
        pair.advance(millis(wait));
        let now = pair.now();
        pair.client().migrate(now, other.local).unwrap();
        for direction in BOTH {
            pair.start_transfer(500_000, direction);
        }
        assert!(pair.finish_transfers(), "{wait}");
        pair.advance(secs(5));
        assert_eq!(pair.client().path_address().local, other.local, "{wait}");
        assert_eq!(pair.client().remote(), v4(), "{wait}");
        assert_eq!(pair.server().remote(), away, "{wait}");
        assert_eq!(path(&pair, Side::Server).local, there.local, "{wait}");
    }
}

#[test]
fn copies_sent_to_the_preferred_address_move_nothing() {
    // The client has no such address, so packets that the server sends from there are ignored.
    let (mut pair, there) = listening(
        builder(&[v4()]).client_config(|config| config.use_preferred_address = false),
        v4(),
    );
    assert!(pair.connect());
    let up = pair.record(Direction::ToServer);
    let home = pair.address(Side::Server);
    let client = pair.address(Side::Client);
    for direction in BOTH {
        pair.start_transfer(1_000_000, direction);
    }
    for nth in 0..20 {
        pair.advance(millis(30));
        let newest = up.datagrams().pop().unwrap().data;
        let from = if nth % 2 == 0 { client } else { stranger() };
        pair.network()
            .inject(there.interface, from, swiftwater_link::Ecn::NotEct, &newest);
    }
    assert!(pair.finish_transfers());
    pair.advance(secs(5));
    assert_eq!(path(&pair, Side::Server).local.socket, SocketId(0));
    assert_eq!(pair.server().remote(), client);
    assert_eq!(pair.client().remote(), home);
    assert!(reason(&pair, Side::Server).is_none());
}

#[test]
fn a_client_with_empty_connection_ids_stays() {
    let (mut pair, _) = listening(
        builder(&[v4()]).endpoint(Side::Client, |config| {
            config.cids = Some(Arc::new(RandomCids::new(0)));
        }),
        v4(),
    );
    assert!(pair.connect());
    let report = pair.transfer(500_000, Direction::ToClient);
    assert!(report.verified);
    assert!(moved(&pair).is_empty());
}
