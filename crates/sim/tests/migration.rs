//! Peers whose address changes, and attackers that imitate them.

use crate::support;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::LossModel;
use swiftwater_quic::wire::{ConnectionId, ErrorCode};
use swiftwater_quic::{ConnectionError, Event};
use swiftwater_sim::{Direction, HostConfig, Pair, PairBuilder};
use swiftwater_units::{Instant, Side};

use support::{BOTH, CID_LEN, count, drop_if, link, millis, path, reason, secs, stranger};

fn new_port(pair: &Pair) -> SocketAddr {
    let mut address = pair.address(Side::Client);
    address.set_port(address.port() + 1_000);
    address
}

fn new_ip(nth: u8) -> SocketAddr {
    ([192, 0, 2, 100 + nth], 4_444).into()
}

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair
}

fn moves(pair: &Pair) -> Vec<SocketAddr> {
    let moved = |event: &Event| match event {
        Event::PeerMoved { remote, .. } => Some(*remote),
        _ => None,
    };
    pair.events(Side::Server).iter().filter_map(moved).collect()
}

/// Adds the attacker's address to the network, so that datagrams to it are visible on the server's
/// link; returns the bytes sent there.
fn count_at_foreign_address(pair: &mut Pair) -> Rc<RefCell<u64>> {
    let server = pair.host(Side::Server);
    let network = pair.network();
    let host = network.add_host(HostConfig::default());
    let node = network.node(server);
    network
        .attach(host, stranger(), node, link(100, 5), link(100, 5))
        .unwrap();
    let bytes = Rc::new(RefCell::new(0));
    let total = Rc::clone(&bytes);
    pair.tap(Direction::ToClient, move |datagram| {
        if datagram.destination == stranger() {
            *total.borrow_mut() += datagram.data.len() as u64;
        }
        swiftwater_sim::Verdict::Pass
    });
    bytes
}

/// Duration of a transfer on this link without disturbance.
fn undisturbed(direction: Direction, bytes: u64) -> Duration {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let report = pair.transfer(bytes, direction);
    report.finish - report.start
}

#[test]
fn a_new_port_in_the_middle_of_a_transfer_costs_little() {
    for direction in BOTH {
        let clean = undisturbed(direction, 2_000_000);
        let mut pair = connected(Pair::builder().link(link(10, 20)));
        let id = pair.start_transfer(2_000_000, direction);
        pair.advance(millis(600));
        let before = path(&pair, Side::Server);
        let port = new_port(&pair);
        pair.rebind(Side::Client, port).unwrap();
        pair.advance(millis(300));
        // The path is the same behind the new port (RFC 9000, section 9.4).
        let after = path(&pair, Side::Server);
        assert_eq!(after.min_rtt, before.min_rtt);
        assert!(
            after.cwnd.get() * 2 > before.cwnd.get(),
            "{before:?} {after:?}"
        );
        assert!(pair.finish_transfers(), "{direction:?}");
        let report = pair.transfer_report(id);
        assert!(report.verified);
        // Packets in flight to the old port are lost, and recovered like other losses.
        let took = report.finish - report.start;
        assert!(
            took < clean.mul_f64(1.5) + millis(400),
            "{direction:?}: {took:?} not {clean:?}"
        );
        assert_eq!(moves(&pair), [port], "{direction:?}");
        assert_eq!(pair.server().remote(), port);
    }
}

#[test]
fn a_new_port_while_idle_shows_with_the_next_packet() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    pair.advance(secs(5));
    let port = new_port(&pair);
    pair.rebind(Side::Client, port).unwrap();
    pair.advance(secs(5));
    assert!(moves(&pair).is_empty());
    let report = pair.transfer(1_000, Direction::ToServer);
    assert!(
        report.verified && report.finish - report.start < millis(30),
        "{report:?}"
    );
    pair.advance(millis(100));
    assert_eq!(moves(&pair), [port]);
    let report = pair.transfer(50_000, Direction::ToClient);
    assert!(
        report.verified && report.finish - report.start < millis(200),
        "{report:?}"
    );
}

#[test]
fn keep_alive_lets_a_server_find_an_idle_client_again() {
    let mut pair = connected(
        Pair::builder()
            .link(link(10, 20))
            .client_config(|config| config.keep_alive_interval = Some(secs(3))),
    );
    pair.advance(secs(2));
    let port = new_port(&pair);
    pair.rebind(Side::Client, port).unwrap();
    let report = pair.transfer(20_000, Direction::ToClient);
    // Lost at first; the next keep-alive shows the way.
    assert!(report.verified, "{report:?}");
    assert!(report.finish - report.start < secs(5), "{report:?}");
}

#[test]
fn new_ports_again_and_again_under_loss() {
    for seed in 0..8 {
        for direction in BOTH {
            let lossy = link(10, 20).loss(LossModel::Bernoulli(0.05));
            let mut pair = connected(Pair::builder().seed(seed).link(lossy));
            let id = pair.start_transfer(1_000_000, direction);
            for _ in 0..10 {
                pair.advance(millis(300));
                let port = new_port(&pair);
                pair.rebind(Side::Client, port).unwrap();
            }
            assert!(pair.finish_transfers(), "seed {seed}, {direction:?}");
            let report = pair.transfer_report(id);
            let took = report.finish - report.start;
            assert!(
                report.verified && took < secs(20),
                "seed {seed}, {direction:?}: {took:?}"
            );
        }
    }
}

#[test]
fn a_new_ip_address_starts_the_path_anew() {
    for direction in BOTH {
        let mut pair = connected(Pair::builder().link(link(10, 20)));
        let home = pair.address(Side::Client);
        let sent = pair.record(Direction::ToClient);
        let id = pair.start_transfer(3_000_000, direction);
        pair.advance(millis(800));
        let before = path(&pair, Side::Server);
        pair.rebind(Side::Client, new_ip(1)).unwrap();
        assert!(pair.run_until(|pair| path(pair, Side::Server).remote == new_ip(1)));
        let after = path(&pair, Side::Server);
        if direction == Direction::ToClient {
            assert!(before.cwnd.get() > 20_000, "{before:?}");
            assert!(after.cwnd.get() <= 12_000, "{after:?}");
        }
        assert!(pair.finish_transfers(), "{direction:?}");
        let report = pair.transfer_report(id);
        let took = report.finish - report.start;
        assert!(took < secs(5), "{direction:?}: {took:?}");
        assert_eq!(moves(&pair), [new_ip(1)]);
        // No connection ID is used towards both addresses (section 9.5).
        let ids = |to: SocketAddr| -> Vec<ConnectionId> {
            let all = sent.datagrams();
            let short = all
                .iter()
                .filter(|each| each.destination == to && each.data[0] < 0x80);
            let mut ids: Vec<_> = short
                .map(|each| ConnectionId::new(&each.data[1..=CID_LEN]).unwrap())
                .collect();
            ids.dedup();
            ids
        };
        let (old, new) = (ids(home), ids(new_ip(1)));
        assert!(!old.is_empty() && !new.is_empty());
        assert!(old.iter().all(|id| !new.contains(id)), "{old:?} {new:?}");
    }
}

#[test]
fn many_ip_addresses_one_after_another() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let id = pair.start_transfer(6_000_000, Direction::ToClient);
    for nth in 1..=12 {
        pair.advance(millis(500));
        pair.rebind(Side::Client, new_ip(nth)).unwrap();
        // A receiver sends only acknowledgements; PING makes it send an ack-eliciting packet from the
        // new address.
        pair.client().ping();
    }
    assert!(pair.finish_transfers());
    let report = pair.transfer_report(id);
    let took = report.finish - report.start;
    assert!(report.verified && took < secs(12), "{took:?}");
    assert_eq!(pair.server().remote(), new_ip(12));
}

#[test]
fn migration_that_is_switched_off_is_ignored() {
    let mut pair = connected(
        Pair::builder()
            .link(link(10, 20))
            .both_configs(|config| config.max_idle_timeout = Some(secs(5)))
            .server_config(|config| config.migration = false),
    );
    let home = pair.address(Side::Client);
    let port = new_port(&pair);
    pair.rebind(Side::Client, port).unwrap();
    let id = pair.start_transfer(10_000, Direction::ToServer);
    pair.advance(secs(3));
    assert_eq!(pair.server().remote(), home);
    assert_eq!(pair.transfer_report(id).received, 0);
    // The previous address is used again, and with it the connection continues.
    pair.rebind(Side::Client, home).unwrap();
    assert!(pair.finish_transfers());
    assert!(moves(&pair).is_empty());
}

#[test]
fn a_copy_from_elsewhere_that_comes_second_is_nothing() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let home = pair.address(Side::Client);
    let to_stranger = count_at_foreign_address(&mut pair);
    let sent = pair.record(Direction::ToServer);
    for direction in BOTH {
        pair.start_transfer(1_000_000, direction);
    }
    let mut copied = 0;
    for _ in 0..20 {
        pair.advance(millis(40));
        let before = pair.offered(Direction::ToServer) as usize - sent.len();
        let arrived = pair.counters(Direction::ToServer).delivered.packets.get() as usize - before;
        for datagram in &sent.datagrams()[copied..arrived] {
            pair.inject(Direction::ToServer, &datagram.data, Some(stranger()));
        }
        copied = arrived;
    }
    assert!(copied > 50);
    assert!(pair.finish_transfers());
    assert_eq!(pair.server().remote(), home);
    assert!(moves(&pair).is_empty());
    assert_eq!(*to_stranger.borrow(), 0);
}

#[test]
fn a_copy_from_elsewhere_that_comes_first_does_not_steal_the_connection() {
    for direction in BOTH {
        let clean = undisturbed(direction, 2_000_000);
        let mut pair = connected(Pair::builder().link(link(10, 20)));
        let home = pair.address(Side::Client);
        let to_stranger = count_at_foreign_address(&mut pair);
        let sent = pair.record(Direction::ToServer);
        let id = pair.start_transfer(2_000_000, direction);
        let mut injected = 0;
        for _ in 0..5 {
            pair.advance(millis(150));
            // The attacker's copy of the newest datagram overtakes the original.
            let newest = sent.datagrams().pop().unwrap();
            injected += newest.data.len() as u64;
            pair.inject(Direction::ToServer, &newest.data, Some(stranger()));
        }
        assert!(pair.finish_transfers(), "{direction:?}");
        let report = pair.transfer_report(id);
        let took = report.finish - report.start;
        assert!(report.verified);
        assert!(
            took < clean * 2 + secs(1),
            "{direction:?}: {took:?} instead of {clean:?}"
        );
        pair.advance(secs(2));
        assert_eq!(pair.server().remote(), home, "{direction:?}");
        assert!(!moves(&pair).contains(&stranger()));
        let bytes = *to_stranger.borrow();
        assert!(
            bytes <= 3 * injected,
            "{direction:?}: {bytes} for {injected}"
        );
    }
}

#[test]
fn a_stolen_packet_costs_an_idle_connection_nothing_but_time() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let home = pair.address(Side::Client);
    let to_stranger = count_at_foreign_address(&mut pair);
    pair.advance(secs(1));
    // The original never arrives, and the client sends nothing for long.
    let sent = pair.record(Direction::ToServer);
    let until = pair.now() + secs(4);
    drop_if(&mut pair, Direction::ToServer, move |datagram| {
        datagram.now < until
    });
    pair.client().ping();
    pair.advance(millis(1));
    let stolen = sent.datagrams()[0].data.clone();
    pair.inject(Direction::ToServer, &stolen, Some(stranger()));
    assert_eq!(pair.server().remote(), stranger());
    // With much data to send, the limit for the attacker's address is kept to the byte.
    let id = pair.start_transfer(500_000, Direction::ToClient);
    pair.advance(millis(900));
    let bytes = *to_stranger.borrow();
    assert!(
        bytes > 0 && bytes <= 3 * stolen.len() as u64,
        "{bytes} for {}",
        stolen.len()
    );
    // Validation fails, and the server goes back to where it was.
    pair.advance(secs(4));
    assert_eq!(pair.server().remote(), home);
    assert!(pair.finish_transfers(), "{:?}", reason(&pair, Side::Server));
    let report = pair.transfer_report(id);
    assert!(report.verified);
    assert!(report.finish - report.start < secs(10), "{report:?}");
    assert!(moves(&pair).is_empty());
    assert!(*to_stranger.borrow() <= 3 * stolen.len() as u64);
}

#[test]
fn a_new_address_gets_three_times_what_it_sent_until_it_answers() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    pair.start_transfer(2_000_000, Direction::ToClient);
    pair.advance(millis(500));
    let (down, up) = (
        pair.record(Direction::ToClient),
        pair.record(Direction::ToServer),
    );
    pair.rebind(Side::Client, new_ip(3)).unwrap();
    assert!(pair.run_until(|pair| !moves(pair).is_empty()));
    let (validated, delay) = (pair.now(), millis(20));
    let mut sent = 0;
    for datagram in down.datagrams() {
        if datagram.destination != new_ip(3) || datagram.at >= validated {
            continue;
        }
        sent += datagram.data.len();
        let arrived = up
            .datagrams()
            .into_iter()
            .filter(|each| each.source == new_ip(3) && each.at + delay <= datagram.at);
        let received: usize = arrived.map(|each| each.data.len()).sum();
        assert!(
            sent <= 3 * received,
            "{sent} for {received} at {}",
            datagram.at
        );
    }
    assert!(sent > 0);
    assert!(pair.finish_transfers());
}

#[test]
fn garbage_from_elsewhere_moves_nothing() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let home = pair.address(Side::Client);
    let to_stranger = count_at_foreign_address(&mut pair);
    let sent = pair.record(Direction::ToServer);
    for direction in BOTH {
        pair.start_transfer(500_000, direction);
    }
    for nth in 0..30 {
        pair.advance(millis(20));
        // A real connection ID, but nothing authentic behind it.
        let mut data = sent.datagrams().pop().unwrap().data;
        let at = CID_LEN + 2 + nth % (data.len() - CID_LEN - 2);
        data[at] ^= 0x40;
        pair.inject(Direction::ToServer, &data, Some(stranger()));
    }
    assert!(pair.finish_transfers());
    assert_eq!(pair.server().remote(), home);
    assert_eq!(*to_stranger.borrow(), 0);
    assert_eq!(
        count(&pair, Side::Server, |event| matches!(
            event,
            Event::Closed { .. }
        )),
        0
    );
}

#[test]
fn a_client_ignores_another_server_address() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let home = pair.address(Side::Server);
    let sent = pair.record(Direction::ToClient);
    pair.start_transfer(500_000, Direction::ToClient);
    for _ in 0..10 {
        pair.advance(millis(30));
        let newest = sent.datagrams().pop().unwrap();
        pair.inject(Direction::ToClient, &newest.data, Some(stranger()));
    }
    assert!(pair.finish_transfers());
    assert_eq!(pair.client().remote(), home);
}

#[test]
fn a_client_that_vanishes_while_moving_times_out() {
    let mut pair = connected(
        Pair::builder()
            .link(link(10, 20))
            .both_configs(|config| config.max_idle_timeout = Some(secs(6))),
    );
    pair.rebind(Side::Client, new_ip(4)).unwrap();
    pair.client().ping();
    assert!(pair.run_until(|pair| pair.server().remote() == new_ip(4)));
    support::black_out(&mut pair, Instant::ZERO, secs(3_600));
    let end = support::run_to_close(&mut pair, Side::Server);
    assert_eq!(reason(&pair, Side::Server), Some(ConnectionError::TimedOut));
    assert!(end < Instant::from_millis(8_000), "{end}");
}

#[test]
fn a_new_address_just_when_connection_ids_change() {
    for (nth, side) in [Side::Client, Side::Server].into_iter().enumerate() {
        for limit in [2, 4] {
            for wait in [0, 1, 15, 25] {
                let mut pair = connected(
                    Pair::builder()
                        .link(link(10, 20))
                        .both_configs(|config| config.active_connection_id_limit = limit),
                );
                pair.advance(millis(500));
                pair.connection(side).unwrap().rotate_connection_ids();
                pair.advance(millis(wait));
                let address = if nth == 0 { new_port(&pair) } else { new_ip(5) };
                pair.rebind(Side::Client, address).unwrap();
                // The first packet from there already carries another of the server's IDs, and the
                // server may have none to spare: it follows all the same.
                for direction in BOTH {
                    pair.start_transfer(200_000, direction);
                }
                let what = format!("{side:?}, {limit} IDs, {wait} ms");
                assert!(pair.finish_transfers(), "{what}");
                assert_eq!(pair.server().remote(), address, "{what}");
            }
        }
    }
}

/// A client whose first packet from a new address is too small for a full challenge, over a path to
/// there that drops full datagrams until `until`.
fn moved_behind_a_narrow_path(until: Duration) -> Pair {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    pair.advance(secs(1));
    pair.rebind(Side::Client, new_ip(7)).unwrap();
    let end = pair.now() + until;
    drop_if(&mut pair, Direction::ToClient, move |datagram| {
        datagram.now < end && datagram.destination == new_ip(7) && datagram.data.len() >= 1_200
    });
    pair.client().ping();
    pair.advance(millis(200));
    // The small challenge was answered.
    assert_eq!(moves(&pair), [new_ip(7)]);
    pair
}

#[test]
fn a_path_that_carries_no_full_datagrams_is_abandoned() {
    let mut pair = moved_behind_a_narrow_path(secs(3_600));
    let end = support::run_to_close(&mut pair, Side::Client);
    let reason = reason(&pair, Side::Client);
    let Some(ConnectionError::PeerTransport(error)) = reason else {
        panic!("{reason:?}");
    };
    assert_eq!(error.code, ErrorCode::NO_VIABLE_PATH);
    // Three validations of three, six and twelve probe timeouts of a path of which nothing is known.
    assert!(end < Instant::from_millis(25_000), "{end}");
}

#[test]
fn full_challenges_that_were_lost_by_chance_cost_nothing() {
    let mut pair = moved_behind_a_narrow_path(secs(8));
    let id = pair.start_transfer(500_000, Direction::ToClient);
    assert!(pair.finish_transfers());
    assert!(pair.transfer_report(id).verified);
    pair.advance(secs(25));
    assert_eq!(moves(&pair), [new_ip(7)]);
    let report = pair.transfer(500_000, Direction::ToClient);
    assert!(report.verified);
}

/// A lost challenge does not imply a small MTU: the peer returns without a request.
#[test]
fn a_client_whose_new_address_is_lost_at_once_may_come_back() {
    let mut pair = connected(
        Pair::builder()
            .link(link(10, 20))
            .both_configs(|config| config.max_idle_timeout = None),
    );
    pair.advance(secs(1));
    pair.rebind(Side::Client, new_ip(8)).unwrap();
    pair.client().ping();
    // The small challenge is answered; before the full one comes, the address is gone.
    assert!(pair.run_until(|pair| !moves(pair).is_empty()));
    pair.rebind(Side::Client, new_ip(9)).unwrap();
    pair.advance(secs(90));
    assert_eq!(reason(&pair, Side::Server), None);
    for direction in BOTH {
        let report = pair.transfer(100_000, direction);
        assert!(report.verified, "{direction:?}");
    }
    assert_eq!(moves(&pair), [new_ip(8), new_ip(9)]);
}
