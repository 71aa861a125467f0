//! What keeps each of several paths working: moves of its addresses, keep-alive, and the end of a path that
//! works in one direction only.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_policies::Policies;
use swiftwater_policies::schedulers::BackupConfig;
use swiftwater_quic::{Event, MigrateError, MultipathConfig, TransportConfig};
use swiftwater_sim::{Attachment, Direction, LinkId, Pair, Verdict};
use swiftwater_units::{PathId, Side};

use crate::support::paths::{self, SECOND, address, has_abandoned, open, sent_on};
use crate::support::{link, millis, secs};

const ABANDON_AFTER: Duration = Duration::from_secs(3);

fn attach(pair: &mut Pair, nth: u8) -> Attachment {
    paths::attach(pair, nth, link(20, 10))
}

/// A connection with a second path, and where that path is attached.
fn with_two_paths(configure: impl Fn(&mut TransportConfig) + Copy) -> (Pair, Attachment) {
    let builder = paths::builder(link(20, 10)).both_configs(|config| {
        config.multipath = Some(MultipathConfig {
            abandon_after: ABANDON_AFTER,
            ..MultipathConfig::default()
        });
    });
    paths::with_two_paths(builder.both_configs(configure), link(20, 10))
}

fn has_abandoned_second(pair: &Pair, side: Side) -> bool {
    has_abandoned(pair, side, SECOND)
}

fn cut(pair: &mut Pair, link: LinkId) {
    pair.network().tap(link, |_| Verdict::Drop);
}

/// Packets that a link delivered.
fn delivered(pair: &mut Pair, link: LinkId) -> u64 {
    pair.network().counters(link).delivered.packets.get()
}

fn received_on_second(pair: &Pair, side: Side) -> u64 {
    let stats = pair.stats(side);
    let path = stats.paths.iter().find(|path| path.id == SECOND);
    path.map_or(0, |path| path.received_bytes.get())
}

#[test]
fn a_path_that_only_receives_is_abandoned_in_time() {
    let (mut pair, second) = with_two_paths(|_| {});
    let up = pair.start_transfer(40_000_000, Direction::ToServer);
    let down = pair.start_transfer(40_000_000, Direction::ToClient);
    pair.advance(secs(1));
    cut(&mut pair, second.uplink);
    let (cut_at, received) = (pair.now(), received_on_second(&pair, Side::Client));
    assert!(pair.run_until(|pair| has_abandoned_second(pair, Side::Client)));
    let after = pair.now() - cut_at;
    assert!(after < ABANDON_AFTER + secs(1), "{after:?}");
    // It did receive all the while.
    assert!(received_on_second(&pair, Side::Client) > received);
    for transfer in [up, down] {
        assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
    }
}

#[test]
fn keep_alive_finds_a_backup_path_that_has_failed_beside_a_busy_one() {
    let (mut pair, second) = with_two_paths(|config| {
        config.keep_alive_interval = Some(secs(1));
        config.policies =
            Arc::new(Policies::default().with_scheduler(Arc::new(BackupConfig::default())));
    });
    pair.client().set_path_preference(
        SECOND,
        swiftwater_quic::policy::PathPreference {
            status: swiftwater_quic::policy::PathStatus::Backup,
            ..Default::default()
        },
    );
    let transfer = pair.start_transfer(200_000_000, Direction::ToServer);
    pair.advance(secs(1));
    let before = received_on_second(&pair, Side::Server);
    pair.advance(secs(10));
    // Nine or more PINGs, none of which ends the transfer's use of the first path.
    let pings = received_on_second(&pair, Side::Server) - before;
    assert!((9 * 30..5_000).contains(&pings), "{pings} bytes");
    for link in [second.uplink, second.downlink] {
        cut(&mut pair, link);
    }
    let cut_at = pair.now();
    assert!(pair.run_until(|pair| has_abandoned_second(pair, Side::Client)));
    let after = pair.now() - cut_at;
    assert!(after < secs(1) + ABANDON_AFTER + secs(1), "{after:?}");
    assert!(
        !pair.transfer_report(transfer).verified,
        "it was to last longer"
    );
}

#[test]
fn idle_paths_are_all_kept_alive() {
    let (mut pair, _) = with_two_paths(|config| {
        config.keep_alive_interval = Some(secs(1));
        config.max_idle_timeout = Some(secs(5));
    });
    let counts = |pair: &Pair| {
        let stats = pair.stats(Side::Server);
        let counts = stats.paths.iter().map(|path| path.received_bytes.get());
        counts.collect::<Vec<_>>()
    };
    let before = counts(&pair);
    pair.advance(secs(20));
    for (before, after) in before.into_iter().zip(counts(&pair)) {
        let bytes = after - before;
        assert!((15 * 30..10_000).contains(&bytes), "{bytes} bytes");
    }
}

#[test]
fn another_path_than_the_first_moves_after_its_new_address_is_validated() {
    let (mut pair, _) = with_two_paths(|_| {});
    let third = attach(&mut pair, 201);
    let transfer = pair.start_transfer(20_000_000, Direction::ToClient);
    pair.advance(millis(500));
    let now = pair.now();
    let asked = pair.client().migrate_path(now, SECOND, third.local);
    assert_eq!(asked, Ok(()));
    assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
    let migrated = |event: &Event| matches!(event, Event::Migrated { path: SECOND, address } if address.local == third.local);
    assert!(pair.events(Side::Client).iter().any(migrated));
    let moved = Event::PeerMoved {
        path: SECOND,
        remote: address(201),
    };
    assert!(pair.events(Side::Server).contains(&moved));
    let first = pair.server().address_of(PathId::ZERO).unwrap();
    assert_ne!(first.remote, address(201));
    assert!(delivered(&mut pair, third.downlink) > 100);
}

#[test]
fn a_path_that_is_opened_after_an_idle_time_moves_like_any_other() {
    let (mut pair, _) = with_two_paths(|config| config.max_idle_timeout = None);
    pair.advance(secs(60));
    let third = attach(&mut pair, 201);
    let id = open(&mut pair, third).unwrap();
    pair.advance(secs(1));
    let fourth = attach(&mut pair, 202);
    let now = pair.now();
    let asked = pair.client().migrate_path(now, id, fourth.local);
    assert_eq!(asked, Ok(()));
    pair.advance(secs(1));
    let at = pair.server().address_of(id).unwrap();
    assert_eq!(at.remote, address(202));
}

#[test]
fn another_path_than_the_first_leaves_an_address_that_fails() {
    let (mut pair, second) = with_two_paths(|_| {});
    let third = attach(&mut pair, 201);
    let transfer = pair.start_transfer(20_000_000, Direction::ToClient);
    pair.advance(millis(500));
    for link in [second.uplink, second.downlink] {
        cut(&mut pair, link);
    }
    let now = pair.now();
    let asked = pair.client().rebind_path(now, SECOND, third.local);
    assert_eq!(asked, Ok(()));
    assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
    assert!(!has_abandoned_second(&pair, Side::Client));
    let at = pair.server().address_of(SECOND).unwrap();
    assert_eq!(at.remote, address(201));
    assert!(delivered(&mut pair, third.downlink) > 100);
}

#[test]
fn a_path_that_is_not_open_does_not_move() {
    let (mut pair, second) = with_two_paths(|_| {});
    let (now, none) = (pair.now(), PathId::new(9));
    let asked = pair.client().migrate_path(now, none, second.local);
    assert_eq!(asked, Err(MigrateError::NotOpen(none)));
    let asked = pair.client().rebind_path(now, none, second.local);
    assert_eq!(asked, Err(MigrateError::NotOpen(none)));
    assert!(!pair.client().ping_path(none));
}

/// On links without delay every sample of the round-trip time may be 0, which is no less than any share of itself.
#[test]
fn paths_without_delay_are_not_probed_without_an_end() {
    let instant = LinkConfig::default();
    let (mut pair, _) = paths::with_two_paths(paths::builder(instant.clone()), instant);
    let transfer = pair.start_transfer(100_000, Direction::ToClient);
    assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
    pair.advance(secs(10));
    for side in [Side::Client, Side::Server] {
        let sent = pair.stats(side).packets_sent.get();
        assert!(sent < 1_000, "{side:?} sent {sent} packets");
    }
}

/// A retired connection ID is still in packets that are on their way on a slower path than the one that brings its
/// retirement.
#[test]
fn packets_of_a_slow_path_arrive_after_its_connection_ids_were_replaced() {
    for direction in [Direction::ToServer, Direction::ToClient] {
        let builder = paths::builder(link(20, 5));
        let (mut pair, _) = paths::with_two_paths(builder, link(20, 100));
        let transfer = pair.start_transfer(20_000_000, direction);
        pair.advance(secs(1));
        for _ in 0..4 {
            for side in [Side::Client, Side::Server] {
                pair.connection(side).unwrap().rotate_connection_ids();
            }
            pair.advance(secs(1));
        }
        assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
        for side in [Side::Client, Side::Server] {
            let host = pair.host(side);
            let stats = pair.network().endpoint(host).stats();
            assert_eq!(stats.dropped_unknown, 0, "{direction:?}: {side:?}");
            assert_eq!(pair.stats(side).packets_dropped.get(), 0);
        }
    }
}

/// The system says that nothing can be sent on a path: data leave on the other one from then on, not only after a
/// probe timeout. What is said many times counts once.
#[test]
fn a_path_that_the_system_cannot_send_on_is_avoided_at_once() {
    let run = |reports: u32| {
        let builder = paths::builder(link(20, 40));
        let (mut pair, second) = paths::with_two_paths(builder, link(20, 5));
        // A path that was idle for long isn't preferred.
        let recent = pair.start_transfer(100_000, Direction::ToServer);
        assert!(pair.run_until(|pair| pair.transfer_report(recent).verified));
        paths::kill(&mut pair, second);
        let (start, before) = (pair.now(), sent_on(&pair, Side::Client, SECOND));
        for _ in 0..reports {
            pair.client().on_path_unreachable(start, SECOND);
        }
        let timeouts = pair.client().path_stats(SECOND).unwrap().pto_count;
        let transfer = pair.start_transfer(10_000, Direction::ToServer);
        assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
        let sent = sent_on(&pair, Side::Client, SECOND) - before;
        (timeouts, pair.now() - start, sent)
    };
    let (timeouts, late, lost) = run(0);
    assert_eq!(timeouts, 0);
    assert!(lost >= 10_000, "{lost} bytes on the path that is preferred");
    let (timeouts, soon, sent) = run(100);
    assert_eq!(timeouts, 1);
    assert!(soon < late, "{soon:?} and {late:?}");
    assert!(sent < 1_000, "{sent} bytes beside probes");
}

/// A single path is not suspected for it: there is nothing to do but wait for the probe timeout.
#[test]
fn the_only_path_is_not_suspected_for_what_the_system_says() {
    let mut pair = paths::connected(paths::builder(link(20, 10)));
    let now = pair.now();
    pair.client().on_path_unreachable(now, PathId::ZERO);
    pair.client().on_path_unreachable(now, PathId::new(9));
    let stats = pair.client().path_stats(PathId::ZERO).unwrap();
    assert_eq!(stats.pto_count, 0);
}
