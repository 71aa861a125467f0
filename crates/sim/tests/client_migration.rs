//! Clients that move to another local address on request (RFC 9000, section 9).

use crate::support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use swiftwater_link::LossModel;
use swiftwater_quic::{Event, LocalAddress, MigrateError, PathAddress, RetryPolicy, SocketId};
use swiftwater_sim::{Attachment, Cipher, Direction, Pair, PairBuilder, Verdict};
use swiftwater_tls::MemorySessionStore;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::{PathId, Side};

use support::{BOTH, CID_LEN, SIDES, link, millis, path, secs};

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    // Connection IDs have gone back and forth.
    pair.advance(millis(200));
    pair
}

fn usual() -> Pair {
    connected(Pair::builder().link(link(10, 20)))
}

/// As usual, with windows of about what the link holds: no queue builds up.
fn without_queue() -> Pair {
    connected(Pair::builder().link(link(10, 20)).both_configs(|config| {
        config.receive_window = 60_000.into();
        config.max_receive_window = 60_000.into();
    }))
}

/// An address in another network than the client's.
fn away() -> SocketAddr {
    ([192, 0, 2, 200], 50_000).into()
}

/// A second way to the server.
fn second(pair: &mut Pair, address: SocketAddr) -> Attachment {
    pair.attach(Side::Client, address, link(10, 20)).unwrap()
}

fn migrate(pair: &mut Pair, to: LocalAddress) -> Result<(), MigrateError> {
    let now = pair.now();
    pair.client().migrate(now, to)
}

fn rebind(pair: &mut Pair, to: LocalAddress) -> Result<(), MigrateError> {
    let now = pair.now();
    pair.client().rebind(now, to)
}

/// Where the client says that it went, and where it says that it could not go.
fn told(pair: &Pair) -> (Vec<LocalAddress>, Vec<LocalAddress>) {
    let mut told = (Vec::new(), Vec::new());
    for event in pair.events(Side::Client) {
        match event {
            Event::Migrated { address, .. } => told.0.push(address.local),
            Event::MigrationFailed { address, .. } => told.1.push(address.local),
            _ => {}
        }
    }
    told
}

/// Drops what the server sends to `address`, and what `from` sends, from now on.
fn cut(pair: &mut Pair, from: Attachment, address: SocketAddr) {
    pair.network().tap(from.uplink, |_| Verdict::Drop);
    support::drop_if(pair, Direction::ToClient, move |datagram| {
        datagram.destination == address
    });
}

/// By connection ID, the client's addresses between which and the server an observer saw it; one map
/// per direction.
type Sightings = Rc<RefCell<[BTreeMap<Vec<u8>, Vec<SocketAddr>>; 2]>>;

/// Watches 1-RTT packets on all links of the pair, `more` included.
fn watch(pair: &mut Pair, more: &[Attachment]) -> Sightings {
    let seen: Sightings = Rc::default();
    let mut links: Vec<_> = BOTH.map(|direction| pair.link(direction)).to_vec();
    links.extend(more.iter().map(|each| each.uplink));
    let server = pair.address(Side::Server);
    for link in links {
        let seen = Rc::clone(&seen);
        pair.network().tap(link, move |datagram| {
            if datagram.data[0] < 0x80 {
                let to_server = datagram.destination == server;
                let client = if to_server {
                    datagram.source
                } else {
                    datagram.destination
                };
                let id = datagram.data[1..=CID_LEN].to_vec();
                let mut seen = seen.borrow_mut();
                let places = seen[usize::from(to_server)].entry(id).or_default();
                if !places.contains(&client) {
                    places.push(client);
                }
            }
            Verdict::Pass
        });
    }
    seen
}

fn assert_unlinkable(seen: &Sightings) {
    for ids in &*seen.borrow() {
        assert!(ids.len() >= 2, "{ids:?}");
        for (id, places) in ids {
            assert_eq!(places.len(), 1, "{id:?} was seen at {places:?}");
        }
    }
}

#[test]
fn a_client_moves_in_the_middle_of_a_transfer_and_the_two_paths_cannot_be_linked() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for direction in BOTH {
            let mut pair = connected(Pair::builder().cipher(cipher).link(link(10, 20)));
            let home = pair.address(Side::Client);
            let other = second(&mut pair, away());
            let seen = watch(&mut pair, &[other]);
            let id = pair.start_transfer(3_000_000, direction);
            pair.advance(millis(700));
            migrate(&mut pair, other.local).unwrap();
            // The old path is in use until the new one is validated.
            assert_eq!(path(&pair, Side::Client).local.socket, SocketId(0));
            assert!(pair.run_until(|pair| !told(pair).0.is_empty()));
            assert_eq!(path(&pair, Side::Client).local, other.local);
            assert!(pair.run_until(|pair| path(pair, Side::Server).remote == away()));
            assert!(pair.finish_transfers(), "{direction:?}");
            let report = pair.transfer_report(id);
            assert!(report.verified);
            assert!(report.finish - report.start < secs(5), "{report:?}");
            pair.advance(secs(5));
            assert_eq!(told(&pair), (vec![other.local], vec![]));
            let moved = |event: &Event| matches!(event, Event::PeerMoved { remote, .. } if *remote == away());
            assert_eq!(support::count(&pair, Side::Server, moved), 1);
            assert_unlinkable(&seen);
            assert_ne!(home, away());
        }
    }
}

#[test]
fn moving_costs_no_round_trip_without_data() {
    let mut pair = without_queue();
    let other = second(&mut pair, away());
    let down = pair.record(Direction::ToClient);
    pair.start_transfer(5_000_000, Direction::ToClient);
    pair.advance(secs(1));
    migrate(&mut pair, other.local).unwrap();
    pair.advance(secs(1));
    // 10 Mbit/s hand over a full packet each millisecond. The server validated the new address
    // while it was probed, so no amplification limit and no pause separate the two.
    let at: Vec<_> = down.datagrams().iter().map(|each| each.at).collect();
    let gap = at.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    assert!(gap < millis(60), "{gap:?}");
}

#[test]
fn window_and_rtt_start_anew_behind_another_address() {
    let mut pair = without_queue();
    let other = pair.attach(Side::Client, away(), link(10, 120)).unwrap();
    pair.start_transfer(20_000_000, Direction::ToServer);
    pair.advance(secs(2));
    let before = path(&pair, Side::Client);
    assert!(
        before.cwnd.get() > 40_000 && before.smoothed_rtt < millis(100),
        "{before:?}"
    );
    migrate(&mut pair, other.local).unwrap();
    assert!(pair.run_until(|pair| !told(pair).0.is_empty()));
    let after = path(&pair, Side::Client);
    assert!(after.cwnd.get() <= 12_000, "{after:?}");
    assert_eq!(after.min_rtt, secs(0), "no sample yet");
    // The duration of the validation is a better estimate than the 333 ms of an unknown path.
    assert!(
        after.smoothed_rtt >= millis(140) && after.smoothed_rtt < millis(250),
        "{after:?}"
    );
    pair.advance(secs(1));
    let later = path(&pair, Side::Client);
    assert!(
        later.min_rtt >= millis(140),
        "old packets gave a sample: {later:?}"
    );
}

#[test]
fn window_and_rtt_survive_a_change_of_port() {
    let mut pair = usual();
    let mut address = pair.address(Side::Client);
    let ip = Some(address.ip());
    address.set_port(60_000);
    // Both sockets were bound to an address, so that it is known to be the same host.
    let first = second(&mut pair, away());
    rebind(&mut pair, first.local).unwrap();
    pair.advance(secs(1));
    let mut same_ip = away();
    same_ip.set_port(60_001);
    let other = second(&mut pair, same_ip);
    assert_eq!(other.local.ip, first.local.ip);
    assert_ne!(other.local.ip, ip);
    pair.start_transfer(20_000_000, Direction::ToServer);
    pair.advance(secs(2));
    let before = path(&pair, Side::Client);
    migrate(&mut pair, other.local).unwrap();
    assert!(pair.run_until(|pair| told(pair).0.len() == 2));
    let after = path(&pair, Side::Client);
    assert_eq!(after.min_rtt, before.min_rtt);
    assert!(
        after.cwnd.get() * 2 > before.cwnd.get(),
        "{before:?} {after:?}"
    );
}

#[test]
fn a_path_that_does_not_answer_changes_nothing() {
    for direction in BOTH {
        let mut pair = usual();
        let other = second(&mut pair, away());
        cut(&mut pair, other, away());
        let id = pair.start_transfer(8_000_000, direction);
        pair.advance(millis(500));
        let before = path(&pair, Side::Client).local;
        let asked = pair.now();
        migrate(&mut pair, other.local).unwrap();
        assert!(pair.run_until(|pair| !told(pair).1.is_empty()));
        // Three probe timeouts of a path without RTT samples (section 8.2.4).
        let took = pair.now() - asked;
        assert!(took >= secs(2) && took < secs(5), "{took:?}");
        assert_eq!(path(&pair, Side::Client).local, before);
        assert!(pair.finish_transfers());
        let report = pair.transfer_report(id);
        assert!(
            report.verified && report.finish - report.start < secs(9),
            "{report:?}"
        );
        assert_eq!(told(&pair), (vec![], vec![other.local]));
        assert_eq!(pair.stats(Side::Client).path_changes, 0);
        // Its connection ID was retired and replaced: the next attempt has one.
        migrate(&mut pair, other.local).unwrap();
    }
}

#[test]
fn a_lost_challenge_or_response_is_sent_again() {
    for lost in 0..2 {
        let mut pair = usual();
        let other = second(&mut pair, away());
        let mut left = 1;
        let mut tap = move || {
            if left > 0 {
                left -= 1;
                return Verdict::Drop;
            }
            Verdict::Pass
        };
        if lost == 0 {
            pair.network().tap(other.uplink, move |_| tap());
        } else {
            pair.tap(Direction::ToClient, move |datagram| {
                if datagram.destination == away() {
                    tap()
                } else {
                    Verdict::Pass
                }
            });
        }
        migrate(&mut pair, other.local).unwrap();
        pair.advance(secs(3));
        assert_eq!(told(&pair), (vec![other.local], vec![]), "{lost}");
        assert_eq!(pair.server().remote(), away());
    }
}

#[test]
fn moving_back_and_forth_under_loss() {
    for seed in 0..6 {
        let lossy = link(10, 20).loss(LossModel::Bernoulli(0.05));
        let mut pair = connected(Pair::builder().seed(seed).link(lossy.clone()));
        let other = pair.attach(Side::Client, away(), lossy).unwrap();
        let home = LocalAddress::any(SocketId(0));
        let seen = watch(&mut pair, &[other]);
        for direction in BOTH {
            pair.start_transfer(1_500_000, direction);
        }
        for nth in 0..10 {
            let to = if nth % 2 == 0 { other.local } else { home };
            // A try that failed before is repeated from where it is now.
            let _ = migrate(&mut pair, to);
            pair.advance(millis(1_500));
        }
        assert!(pair.finish_transfers(), "seed {seed}");
        assert!(told(&pair).0.len() >= 6, "seed {seed}: {:?}", told(&pair));
        assert_unlinkable(&seen);
    }
}

#[test]
fn a_second_request_replaces_the_first() {
    let mut pair = usual();
    let first = second(&mut pair, away());
    let third = second(&mut pair, ([192, 0, 2, 201], 50_000).into());
    migrate(&mut pair, first.local).unwrap();
    migrate(&mut pair, third.local).unwrap();
    pair.advance(secs(5));
    assert_eq!(told(&pair), (vec![third.local], vec![]));
}

#[test]
fn rebinding_at_once_saves_a_connection_whose_address_is_gone() {
    for direction in BOTH {
        let mut pair = usual();
        let home = pair.address(Side::Client);
        let other = second(&mut pair, away());
        let seen = watch(&mut pair, &[other]);
        let id = pair.start_transfer(3_000_000, direction);
        pair.advance(millis(600));
        // The interface goes down: nothing passes to or from its address.
        let gone = pair.now();
        for direction in BOTH {
            support::drop_if(&mut pair, direction, move |datagram| {
                datagram.now >= gone && [datagram.source, datagram.destination].contains(&home)
            });
        }
        pair.advance(millis(100));
        rebind(&mut pair, other.local).unwrap();
        assert_eq!(path(&pair, Side::Client).local, other.local);
        assert!(pair.finish_transfers(), "{direction:?}");
        let report = pair.transfer_report(id);
        let took = report.finish - report.start;
        assert!(report.verified && took < secs(6), "{direction:?}: {took:?}");
        pair.advance(secs(1));
        assert_eq!(told(&pair), (vec![other.local], vec![]));
        assert_eq!(pair.server().remote(), away());
        assert_unlinkable(&seen);
    }
}

#[test]
fn rebinding_to_a_path_that_fails_is_reported() {
    let mut pair = usual();
    let other = second(&mut pair, away());
    cut(&mut pair, other, away());
    rebind(&mut pair, other.local).unwrap();
    assert!(pair.run_until(|pair| !told(pair).1.is_empty()));
    assert_eq!(told(&pair), (vec![], vec![other.local]));
    // The connection continues if the client finds a path that works.
    rebind(&mut pair, LocalAddress::any(SocketId(0))).unwrap();
    let report = pair.transfer(100_000, Direction::ToClient);
    assert!(
        report.verified && report.finish - report.start < secs(2),
        "{report:?}"
    );
}

#[test]
fn nothing_moves_before_the_handshake_is_confirmed() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    pair.start().unwrap();
    let other = second(&mut pair, away());
    while !pair.events(Side::Client).contains(&Event::Confirmed) {
        assert_eq!(
            migrate(&mut pair, other.local),
            Err(MigrateError::NotConfirmed)
        );
        assert_eq!(
            rebind(&mut pair, other.local),
            Err(MigrateError::NotConfirmed)
        );
        assert!(pair.step());
    }
    pair.advance(millis(100));
    assert_eq!(migrate(&mut pair, other.local), Ok(()));
}

#[test]
fn what_cannot_migrate_has_an_error() {
    let mut pair = usual();
    let other = second(&mut pair, away());
    let now = pair.now();
    assert_eq!(
        pair.server().migrate(now, other.local),
        Err(MigrateError::NotClient)
    );
    let home = LocalAddress::default();
    assert_eq!(migrate(&mut pair, home), Err(MigrateError::SameAddress));
    pair.client().close(now, 0, b"");
    assert_eq!(migrate(&mut pair, other.local), Err(MigrateError::Closed));

    let mut pair = connected(Pair::builder().server_config(|config| config.migration = false));
    let other = second(&mut pair, away());
    assert_eq!(migrate(&mut pair, other.local), Err(MigrateError::Disabled));
    assert_eq!(rebind(&mut pair, other.local), Err(MigrateError::Disabled));
}

#[test]
fn a_client_without_spare_connection_ids_stays_until_it_gets_one() {
    // The server may have given one more, but none of its packets with one arrives.
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    let other = second(&mut pair, away());
    pair.start().unwrap();
    assert!(pair.run_until(|pair| pair.events(Side::Client).contains(&Event::Confirmed)));
    // HANDSHAKE_DONE and the first NEW_CONNECTION_ID frames share a packet: use up what they gave.
    let mut moves = 0;
    let mut to = other.local;
    let outcome = loop {
        match rebind(&mut pair, to) {
            Ok(()) => moves += 1,
            Err(error) => break error,
        }
        to = if moves % 2 == 0 {
            other.local
        } else {
            LocalAddress::any(SocketId(0))
        };
    };
    assert_eq!(outcome, MigrateError::NoConnectionId);
    assert_eq!(moves, 3, "a limit of 4 leaves 3 to spare");
    // The retired ones are replaced within a round trip.
    pair.advance(millis(500));
    assert_eq!(migrate(&mut pair, to), Ok(()));
}

#[test]
fn a_nat_may_rebind_while_the_client_migrates() {
    for step in [0, 10, 25, 45, 65] {
        let mut pair = usual();
        let other = second(&mut pair, away());
        for direction in BOTH {
            pair.start_transfer(2_000_000, direction);
        }
        pair.advance(millis(500));
        migrate(&mut pair, other.local).unwrap();
        pair.advance(millis(step));
        // Both paths are behind the same NAT, which loses all mappings.
        let mut home = pair.address(Side::Client);
        home.set_port(home.port() + 7);
        pair.rebind(Side::Client, home).unwrap();
        let mut moved = away();
        moved.set_port(moved.port() + 7);
        pair.network()
            .rebind(other.interface, moved, swiftwater_sim::OldAddress::Lost)
            .unwrap();
        assert!(pair.finish_transfers(), "{step}");
        pair.advance(secs(5));
        assert_eq!(told(&pair).0, [other.local], "{step}");
        assert_eq!(pair.server().remote(), moved, "{step}");
    }
}

#[test]
fn the_server_validates_the_old_path_after_a_migration() {
    let mut pair = usual();
    let home = pair.address(Side::Client);
    let other = second(&mut pair, away());
    let down = pair.record(Direction::ToClient);
    migrate(&mut pair, other.local).unwrap();
    assert!(pair.run_until(|pair| !told(pair).0.is_empty()));
    let since = pair.now();
    pair.advance(millis(200));
    // A full datagram to the old address: a challenge (section 9.3.3), answered from there.
    let asked = |to: SocketAddr| {
        let all = down.datagrams();
        all.iter()
            .any(|each| each.at > since && each.destination == to && each.data.len() >= 1200)
    };
    assert!(asked(home));
    assert_eq!(pair.server().remote(), away());
}

#[test]
fn stats_and_events_name_both_ends() {
    let mut pair = usual();
    let other = second(&mut pair, away());
    migrate(&mut pair, other.local).unwrap();
    pair.advance(secs(1));
    let server = pair.address(Side::Server);
    let expected = PathAddress {
        remote: server,
        local: other.local,
    };
    assert_eq!(pair.client().path_address(), expected);
    assert!(pair.events(Side::Client).contains(&Event::Migrated {
        path: PathId::ZERO,
        address: expected
    }));
    for side in SIDES {
        assert_eq!(pair.stats(side).path_changes, 1, "{side:?}");
        assert!(path(&pair, side).validated);
    }
    assert_eq!(path(&pair, Side::Server).remote, away());
}

/// A client whose new address is validated gets a token for it (RFC 9000, section 9.3), whether it migrates
/// or a NAT rebinds its address: the next connection from there needs no Retry.
#[test]
fn a_client_that_moved_needs_no_retry_in_its_next_connection() {
    for by_nat in [false, true] {
        let client =
            NullClient::new(["sim"]).with_sessions(Arc::new(MemorySessionStore::default()));
        let server = NullServer::new(["sim"]).with_ticket(true);
        let mut pair = connected(
            Pair::builder()
                .crypto(Arc::new(client), Arc::new(server))
                .link(link(10, 20))
                .server_settings(|server| server.address_token_lifetime = secs(3600))
                .retry(RetryPolicy::Always),
        );
        let retries = |pair: &mut Pair| {
            let host = pair.host(Side::Server);
            pair.network().endpoint_stats(host).retries_sent
        };
        assert_eq!(retries(&mut pair), 1);
        if by_nat {
            pair.rebind(Side::Client, away()).unwrap();
        } else {
            let other = second(&mut pair, away());
            migrate(&mut pair, other.local).unwrap();
        }
        pair.start_transfer(10_000, Direction::ToServer);
        assert!(pair.finish_transfers());
        pair.advance(secs(1));
        assert_eq!(path(&pair, Side::Server).remote, away());
        if !by_nat {
            // New connections begin at the first interface: it moves to the same IP address.
            let port = away().port() + 1;
            pair.rebind(Side::Client, (away().ip(), port).into())
                .unwrap();
        }
        pair.start().unwrap();
        pair.advance(secs(1));
        assert_eq!(pair.handles(Side::Server).len(), 2);
        assert_eq!(retries(&mut pair), 1, "by NAT: {by_nat}");
    }
}

/// The token of the handshake is valid for any port of its address.
#[test]
fn a_change_of_port_needs_no_new_token() {
    let mut pair = connected(
        Pair::builder()
            .link(link(10, 20))
            .server_settings(|server| server.address_token_lifetime = secs(3600)),
    );
    let home = pair.address(Side::Client);
    for port in 1..4 {
        let address = SocketAddr::new(home.ip(), home.port() + port);
        pair.rebind(Side::Client, address).unwrap();
        pair.start_transfer(10_000, Direction::ToServer);
        assert!(pair.finish_transfers());
        pair.advance(secs(1));
        assert_eq!(path(&pair, Side::Server).remote, address);
    }
    let tokens = |event: &Event| matches!(event, Event::NewToken { .. });
    assert_eq!(support::count(&pair, Side::Client, tokens), 1);
}
