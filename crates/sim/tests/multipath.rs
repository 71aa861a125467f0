//! Several paths in one connection (draft-ietf-quic-multipath-21): opening, sharing load, failing over,
//! abandoning.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_policies::Policies;
use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_quic::policy::{PathPreference, PathStatus};
use swiftwater_quic::{
    AbandonPathError, Event, MultipathConfig, OpenPathError, ReadOutcome, TransportConfig,
};
use swiftwater_sim::{Cipher, Direction, Pair, Verdict};
use swiftwater_units::{Dir, PathId, Side, StreamId};

use crate::support::paths::{
    SECOND, attach, builder, connected, enable, has_abandoned, has_opened, kill, open, opened,
    sent_on,
};
use crate::support::{BOTH, SIDES, link, millis, secs};

/// Mean rate of a transfer, Mbit/s.
fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / 1e6
}

#[test]
fn two_paths_carry_data_in_both_directions() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for direction in BOTH {
            let mut pair = connected(builder(link(20, 10)).cipher(cipher));
            let second = attach(&mut pair, 200, link(20, 10));
            assert_eq!(opened(&mut pair, second), SECOND);
            let report = pair.transfer(5_000_000, direction);
            assert!(report.verified);
            let sender = direction.sender();
            for id in [PathId::ZERO, SECOND] {
                assert!(sent_on(&pair, sender, id) > 1_500_000, "{id}");
            }
        }
    }
}

#[test]
fn two_equal_paths_are_nearly_twice_as_fast_as_one() {
    let single = {
        let mut pair = connected(builder(link(50, 15)));
        let report = pair.transfer(30_000_000, Direction::ToClient);
        rate(30_000_000, report.finish - report.start)
    };
    let mut pair = connected(builder(link(50, 15)));
    let second = attach(&mut pair, 200, link(50, 15));
    opened(&mut pair, second);
    let report = pair.transfer(60_000_000, Direction::ToClient);
    assert!(report.verified);
    let both = rate(60_000_000, report.finish - report.start);
    assert!(both >= 1.9 * single, "{both:.1} against {single:.1} Mbit/s");
}

#[test]
fn a_path_that_is_cut_leaves_no_gap_above_three_probe_timeouts() {
    for direction in BOTH {
        let mut pair = connected(builder(link(20, 20)));
        let second = attach(&mut pair, 200, link(20, 10));
        opened(&mut pair, second);
        let id = pair.start_transfer(20_000_000, direction);
        pair.advance(secs(2));
        kill(&mut pair, second);
        let mut before = pair.transfer_report(id).received;
        let (mut last, mut longest) = (pair.now(), Duration::ZERO);
        while !pair.transfer_report(id).verified {
            pair.advance(millis(5));
            let received = pair.transfer_report(id).received;
            if received > before {
                longest = longest.max(pair.now() - last);
                (before, last) = (received, pair.now());
            }
            assert!(pair.now() - last < secs(5), "stopped at {received} bytes");
        }
        assert!(longest <= millis(250), "{direction:?}: {longest:?}");
    }
}

#[test]
fn a_path_that_stays_silent_is_abandoned_and_another_one_takes_its_place() {
    let mut pair = connected(builder(link(20, 20)));
    let second = attach(&mut pair, 200, link(20, 10));
    opened(&mut pair, second);
    let transfer = pair.start_transfer(100_000_000, Direction::ToClient);
    pair.advance(secs(1));
    kill(&mut pair, second);
    assert!(pair.run_until(|pair| {
        SIDES
            .into_iter()
            .all(|side| has_abandoned(pair, side, SECOND))
    }));
    let third = attach(&mut pair, 201, link(20, 10));
    let id = opened(&mut pair, third);
    assert_eq!(id, PathId::new(2));
    assert!(pair.finish_transfers() && pair.transfer_report(transfer).verified);
    assert!(sent_on(&pair, Side::Server, id) > 1_000_000);
}

#[test]
fn either_path_can_be_abandoned_and_identifiers_go_on() {
    for abandoned in [PathId::ZERO, SECOND] {
        for side in SIDES {
            let mut pair = connected(builder(link(20, 20)));
            let second = attach(&mut pair, 200, link(20, 10));
            opened(&mut pair, second);
            let transfer = pair.start_transfer(10_000_000, Direction::ToClient);
            pair.advance(millis(500));
            let now = pair.now();
            let connection = pair.connection(side).unwrap();
            connection.abandon_path(now, abandoned).unwrap();
            assert!(pair.run_until(|pair| {
                SIDES
                    .into_iter()
                    .all(|side| has_abandoned(pair, side, abandoned))
            }));
            assert!(pair.finish_transfers() && pair.transfer_report(transfer).verified);
            pair.advance(secs(3));
            let left: Vec<_> = pair.client().open_paths().collect();
            assert_eq!(left.len(), 1);
            assert!(!left.contains(&abandoned));
            // Another path may be opened for each that is over.
            for nth in 0..6 {
                let from = attach(&mut pair, 210 + nth, link(20, 10));
                let id = opened(&mut pair, from);
                assert_eq!(id.get(), 2 + u32::from(nth));
                let now = pair.now();
                pair.client().abandon_path(now, id).unwrap();
                pair.advance(secs(3));
            }
            assert!(pair.transfer(100_000, Direction::ToServer).verified);
        }
    }
}

#[test]
fn the_last_path_cannot_be_abandoned() {
    let mut pair = connected(builder(link(20, 20)));
    let now = pair.now();
    let outcome = pair.client().abandon_path(now, PathId::ZERO);
    assert_eq!(outcome, Err(AbandonPathError::Last(PathId::ZERO)));
    let outcome = pair.client().abandon_path(now, SECOND);
    assert_eq!(outcome, Err(AbandonPathError::NotOpen(SECOND)));
}

#[test]
fn no_more_paths_are_opened_than_both_ends_accept() {
    let mut pair = connected(builder(link(20, 20)).server_config(|config| {
        config.multipath = Some(MultipathConfig {
            max_paths: 3,
            ..MultipathConfig::default()
        });
    }));
    for nth in 1..3 {
        let from = attach(&mut pair, 200 + nth, link(20, 10));
        assert_eq!(opened(&mut pair, from).get(), u32::from(nth));
    }
    let from = attach(&mut pair, 205, link(20, 10));
    assert_eq!(open(&mut pair, from), Err(OpenPathError::Limit));
    let now = pair.now();
    pair.server().abandon_path(now, SECOND).unwrap();
    pair.take_events(Side::Client);
    assert!(pair.run_until(|pair| pair.events(Side::Client).contains(&Event::PathsAvailable)));
    assert_eq!(opened(&mut pair, from), PathId::new(3));
}

#[test]
fn a_client_is_blocked_by_the_limit_of_its_server_but_not_by_its_own() {
    for (limited, is_reported) in [(Side::Server, true), (Side::Client, false)] {
        let limit = |config: &mut TransportConfig| {
            config.multipath = Some(MultipathConfig {
                max_paths: 2,
                ..MultipathConfig::default()
            });
        };
        let builder = builder(link(10, 10));
        let builder = match limited {
            Side::Client => builder.client_config(limit),
            Side::Server => builder.server_config(limit),
        };
        let mut pair = connected(builder);
        let second = attach(&mut pair, 200, link(10, 10));
        opened(&mut pair, second);
        pair.advance(millis(300));
        // Frames of the extension.
        let sent = |pair: &Pair| pair.stats(Side::Client).frames_sent.of("other");
        let before = sent(&pair);
        let third = attach(&mut pair, 201, link(10, 10));
        assert_eq!(open(&mut pair, third), Err(OpenPathError::Limit));
        pair.advance(millis(300));
        assert_eq!(sent(&pair) > before, is_reported, "{limited:?}");
    }
}

#[test]
fn without_the_extension_there_is_one_path() {
    for sides in [(true, false), (false, true), (false, false)] {
        let mut pair = connected(
            Pair::builder()
                .link(link(20, 20))
                .client_config(|config| {
                    if sides.0 {
                        enable(config);
                    }
                })
                .server_config(|config| {
                    if sides.1 {
                        enable(config);
                    }
                }),
        );
        let from = attach(&mut pair, 200, link(20, 10));
        assert_eq!(open(&mut pair, from), Err(OpenPathError::NotNegotiated));
        assert!(pair.transfer(100_000, Direction::ToClient).verified);
    }
}

#[test]
fn a_path_that_does_not_answer_is_abandoned() {
    let mut pair = connected(builder(link(20, 20)));
    let second = attach(&mut pair, 200, link(20, 10));
    kill(&mut pair, second);
    let id = open(&mut pair, second).unwrap();
    assert!(pair.run_until(|pair| has_abandoned(pair, Side::Client, id)));
    assert!(!has_opened(&pair, Side::Client, id));
    assert!(pair.transfer(100_000, Direction::ToServer).verified);
}

#[test]
fn a_backup_path_carries_data_only_when_the_other_fails() {
    let mut pair = connected(builder(link(20, 20)));
    let second = attach(&mut pair, 200, link(20, 5));
    opened(&mut pair, second);
    pair.client().set_path_preference(
        SECOND,
        PathPreference {
            status: PathStatus::Backup,
            ..PathPreference::default()
        },
    );
    pair.advance(millis(200));
    let told = Event::PathStatusChanged {
        path: SECOND,
        status: PathStatus::Backup,
    };
    assert!(pair.events(Side::Server).contains(&told));
    assert!(pair.transfer(3_000_000, Direction::ToClient).verified);
    assert!(sent_on(&pair, Side::Server, SECOND) < 20_000);
    let transfer = pair.start_transfer(5_000_000, Direction::ToClient);
    pair.advance(millis(500));
    for direction in BOTH {
        let home = pair.link(direction);
        pair.network().tap(home, |_| Verdict::Drop);
    }
    assert!(pair.finish_transfers() && pair.transfer_report(transfer).verified);
    assert!(sent_on(&pair, Side::Server, SECOND) > 2_000_000);
}

/// Time that a request needs after a path failed on which the client had only received.
fn request_after_silent_failure(scheduler: MinRttConfig) -> Duration {
    let configure = |config: &mut TransportConfig| {
        enable(config);
        config.policies = Arc::new(Policies::default().with_scheduler(Arc::new(scheduler)));
    };
    let mut pair = connected(Pair::builder().link(link(20, 30)).both_configs(configure));
    let second = attach(&mut pair, 200, link(20, 10));
    opened(&mut pair, second);
    assert!(pair.transfer(2_000_000, Direction::ToClient).verified);
    pair.advance(millis(300));
    kill(&mut pair, second);
    // The client only receives. Its estimates still show the second path as the nearer one.
    assert!(pair.transfer(20_000, Direction::ToClient).verified);
    let began_at = pair.now();
    assert!(pair.transfer(1_000, Direction::ToServer).verified);
    pair.now().saturating_since(began_at)
}

#[test]
fn a_request_after_a_path_failed_while_idle_waits_for_no_probe_timeout() {
    let mut scheduler = MinRttConfig::default();
    let time = request_after_silent_failure(scheduler);
    assert!(time < millis(50), "{time:?}");
    scheduler.eligibility.silence = None;
    let time = request_after_silent_failure(scheduler);
    assert!(time > millis(70), "{time:?}");
}

#[test]
fn keys_are_updated_while_two_paths_carry_data() {
    let mut pair = connected(builder(link(20, 20)).cipher(Cipher::Tls));
    let second = attach(&mut pair, 200, link(20, 80));
    opened(&mut pair, second);
    let transfer = pair.start_transfer(20_000_000, Direction::ToClient);
    for side in SIDES.into_iter().cycle().take(10) {
        pair.advance(millis(400));
        pair.connection(side).unwrap().update_keys();
    }
    assert!(pair.finish_transfers() && pair.transfer_report(transfer).verified);
    assert!(pair.stats(Side::Client).key_updates >= 4);
}

#[test]
fn several_paths_may_have_the_same_addresses() {
    let mut pair = connected(builder(link(20, 20)));
    let here = pair.client().path_address();
    let now = pair.now();
    let id = pair.client().open_path(now, here).unwrap();
    assert!(pair.run_until(|pair| SIDES.into_iter().all(|side| has_opened(pair, side, id))));
    assert!(pair.transfer(3_000_000, Direction::ToClient).verified);
}

#[test]
fn a_server_that_forbids_migration_gets_no_further_path_at_its_first_address() {
    let mut pair = connected(builder(link(20, 20)).server_config(|config| {
        config.migration = false;
    }));
    let from = attach(&mut pair, 200, link(20, 10));
    assert_eq!(open(&mut pair, from), Err(OpenPathError::Disabled));
    assert!(pair.transfer(100_000, Direction::ToServer).verified);
}

/// Reads what has arrived on a stream at the server; true if that was anything.
fn read(pair: &mut Pair, id: StreamId) -> bool {
    let mut buffer = vec![0; 1 << 16];
    let mut any = false;
    while let Ok(ReadOutcome::Data(_)) = pair.server().recv_stream(id).read(&mut buffer) {
        any = true;
    }
    any
}

#[test]
fn a_path_that_is_cut_is_recognised_while_few_packets_are_sent_on_it_now_and_then() {
    let mut pair = connected(builder(link(40, 10)));
    let second = attach(&mut pair, 200, link(30, 25));
    opened(&mut pair, second);
    let id = pair.client().open(Dir::Uni).unwrap();
    let (mut last, mut longest) = (pair.now(), Duration::ZERO);
    for nth in 0..200 {
        if nth == 100 {
            kill(&mut pair, second);
        }
        // More than the pacer of the fast path lets go at once: some leaves on the other one.
        let len = if nth % 60 == 0 { 80_000 } else { 15_000 };
        let frame = vec![7; len];
        pair.client().send_stream(id).write(&frame).unwrap();
        for _ in 0..3 {
            pair.advance(millis(11));
            pair.server().accept(Dir::Uni);
            if read(&mut pair, id) {
                last = pair.now();
            }
            longest = longest.max(pair.now() - last);
        }
    }
    assert!(sent_on(&pair, Side::Client, SECOND) > 20_000);
    assert!(longest <= millis(250), "{longest:?}");
}

#[test]
fn acknowledgements_do_not_return_to_a_path_that_delivers_none() {
    for controller in ["bbr3", "cubic"] {
        let mut pair = connected(builder(link(40, 10)).both_configs(move |config| {
            enable(config);
            config.controller = swiftwater_congestion::by_name(controller).unwrap();
        }));
        let second = attach(&mut pair, 200, link(30, 25));
        opened(&mut pair, second);
        let transfer = pair.start_transfer(200_000_000, Direction::ToServer);
        pair.advance(secs(2));
        // Data of the first path still arrive, what the server sends there does not.
        let home = pair.link(Direction::ToClient);
        pair.network().tap(home, |_| Verdict::Drop);
        pair.advance(millis(500));
        let (mut before, mut least) = (pair.transfer_report(transfer).received, u64::MAX);
        for _ in 0..30 {
            pair.advance(millis(100));
            let received = pair.transfer_report(transfer).received;
            least = least.min(received - before);
            before = received;
        }
        // At least half of what the second path carries, in every tenth of a second.
        assert!(least > 180_000, "{controller}: {least}");
    }
}
