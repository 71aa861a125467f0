//! Key updates (RFC 9001, section 6), by either side or both, on good and bad links.

use crate::support;

use swiftwater_link::{Jitter, LinkConfig, LossModel, Reorder, ReorderBy};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder};
use swiftwater_units::Side;

use support::{BOTH, SIDES, Watch, black_out, link, millis, secs};

const CIPHERS: [Cipher; 2] = [Cipher::Null, Cipher::Tls];

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair
}

fn updates(pair: &Pair) -> [u64; 2] {
    SIDES.map(|side| pair.stats(side).key_updates)
}

fn update(pair: &mut Pair, side: Side) {
    pair.connection(side).unwrap().update_keys();
}

/// Nothing was thrown away as undecryptable.
fn assert_all_opened(pair: &Pair, what: &str) {
    for side in SIDES {
        assert_eq!(
            pair.stats(side).packets_dropped.get(),
            0,
            "{what}, {side:?}"
        );
    }
}

#[test]
fn either_side_can_update_in_the_middle_of_a_transfer() {
    for cipher in CIPHERS {
        for side in SIDES {
            for direction in BOTH {
                let mut pair = connected(Pair::builder().cipher(cipher).link(link(10, 20)));
                let what = format!("{cipher:?} {side:?} {direction:?}");
                pair.start_transfer(1_000_000, direction);
                pair.advance(millis(300));
                update(&mut pair, side);
                pair.advance(millis(300));
                assert_eq!(updates(&pair), [1, 1], "{what}: the peer follows");
                assert!(pair.finish_transfers(), "{what}");
                assert_all_opened(&pair, &what);
            }
        }
    }
}

#[test]
fn keys_that_were_released_are_derived_again_as_they_were() {
    for cipher in CIPHERS {
        let mut pair = connected(Pair::builder().cipher(cipher).link(link(10, 20)));
        pair.advance(secs(1));
        for round in 0..6 {
            let what = format!("{cipher:?}, round {round}");
            // One of them, the other, or both.
            for (nth, side) in SIDES.into_iter().enumerate() {
                if round % 3 != nth {
                    pair.connection(side).unwrap().release_idle_memory();
                }
            }
            if round >= 2 {
                // Requested by an idle end, or by one whose peer is idle.
                update(&mut pair, SIDES[round % 2]);
            }
            for direction in BOTH {
                pair.start_transfer(200_000, direction);
            }
            assert!(pair.finish_transfers(), "{what}");
            // Long enough for the keys before an update to be discarded.
            pair.advance(secs(3));
            assert_all_opened(&pair, &what);
        }
        assert_eq!(updates(&pair), [4, 4], "{cipher:?}");
    }
}

#[test]
fn both_at_once_is_one_update() {
    for cipher in CIPHERS {
        let mut pair = connected(Pair::builder().cipher(cipher).link(link(10, 20)));
        for direction in BOTH {
            pair.start_transfer(1_000_000, direction);
        }
        pair.advance(millis(300));
        for side in SIDES {
            update(&mut pair, side);
        }
        pair.advance(millis(500));
        assert_eq!(updates(&pair), [1, 1], "{cipher:?}");
        assert!(pair.finish_transfers(), "{cipher:?}");
        assert_all_opened(&pair, "both");
    }
}

#[test]
fn an_update_asked_for_while_one_runs_comes_after_it() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    pair.start_transfer(3_000_000, Direction::ToServer);
    pair.advance(millis(100));
    update(&mut pair, Side::Client);
    pair.advance(millis(1));
    update(&mut pair, Side::Client);
    pair.advance(millis(15));
    // The first one isn't acknowledged yet (RFC 9001, section 6.1).
    assert_eq!(pair.stats(Side::Client).key_updates, 1);
    pair.advance(secs(2));
    assert_eq!(updates(&pair), [2, 2]);
    assert!(pair.finish_transfers());
    assert_all_opened(&pair, "two");
}

#[test]
fn updates_in_quick_succession_by_both_sides() {
    let watches = SIDES.map(Watch::new);
    let [client, server] = [0, 1].map(|nth| watches[nth].factory());
    let mut pair = connected(
        Pair::builder()
            .link(link(10, 20))
            .client_config(|config| config.observer = Some(client))
            .server_config(|config| config.observer = Some(server)),
    );
    for direction in BOTH {
        pair.start_transfer(4_000_000, direction);
    }
    for nth in 0..200 {
        pair.advance(millis(10));
        update(&mut pair, SIDES[nth % 2]);
    }
    assert!(pair.finish_transfers());
    pair.advance(secs(1));
    let [client, server] = updates(&pair);
    assert!(
        client >= 4 && client.abs_diff(server) <= 1,
        "{client} {server}"
    );
    // No side is ever more than one phase ahead.
    let mut all: Vec<_> = watches
        .iter()
        .enumerate()
        .flat_map(|(side, watch)| {
            watch
                .notes()
                .key_updates
                .into_iter()
                .map(move |at| (at, side))
        })
        .collect();
    all.sort_unstable();
    let mut generations = [0u64; 2];
    for ((_, generation), side) in all {
        generations[side] = generation;
        assert!(
            generations[0].abs_diff(generations[1]) <= 1,
            "{generations:?}"
        );
    }
}

#[test]
fn a_small_interval_updates_all_the_time() {
    for cipher in CIPHERS {
        let clean = {
            let mut pair = connected(Pair::builder().cipher(cipher).link(link(20, 20)));
            let report = pair.transfer(4_000_000, Direction::ToServer);
            report.finish - report.start
        };
        for interval in [1, 50, 300] {
            let mut pair = connected(
                Pair::builder()
                    .cipher(cipher)
                    .link(link(20, 20))
                    .both_configs(|config| config.key_update_interval = interval),
            );
            let report = pair.transfer(4_000_000, Direction::ToServer);
            assert!(report.verified, "{cipher:?} {interval}");
            let took = report.finish - report.start;
            assert!(
                took < clean + millis(100),
                "{cipher:?} {interval}: {took:?} not {clean:?}"
            );
            let [client, server] = updates(&pair);
            assert!(client >= 3, "{cipher:?} {interval}: {client}");
            assert!(client.abs_diff(server) <= 1, "{cipher:?} {interval}");
            assert_all_opened(&pair, "interval");
        }
    }
}

fn rough(kind: usize) -> LinkConfig {
    match kind {
        0 => link(20, 20).loss(LossModel::Bernoulli(0.1)),
        1 => {
            let mut link = link(20, 20)
                .jitter(Jitter::Uniform(millis(30)))
                .duplicate(0.2);
            link.jitter_reorders = true;
            link.reorder = Some(Reorder {
                probability: 0.2,
                by: ReorderBy::Delay(millis(150)),
            });
            link
        }
        _ => link(20, 20)
            .loss(LossModel::Bernoulli(0.05))
            .corrupt(0.05)
            .duplicate(0.05),
    }
}

#[test]
fn updates_survive_loss_disorder_and_damage() {
    for kind in 0..3 {
        for seed in 0..10 {
            let mut pair = connected(
                Pair::builder()
                    .seed(seed)
                    .cipher(CIPHERS[seed as usize % 2])
                    .link(rough(kind))
                    .both_configs(|config| {
                        config.key_update_interval = 40;
                        config.handshake_timeout = secs(60);
                    }),
            );
            let start = pair.now();
            for direction in BOTH {
                pair.start_transfer(300_000, direction);
            }
            assert!(pair.finish_transfers(), "{kind}, seed {seed}");
            let took = pair.now() - start;
            assert!(took < secs(15), "{kind}, seed {seed}: {took:?}");
            let [client, server] = updates(&pair);
            assert!(
                client > 0 && client.abs_diff(server) <= 1,
                "{kind}, seed {seed}"
            );
        }
    }
}

#[test]
fn the_first_packets_of_a_phase_may_be_lost() {
    for side in SIDES {
        for lost in [1, 5, 30] {
            let mut pair = connected(Pair::builder().link(link(10, 20)));
            for direction in BOTH {
                pair.start_transfer(1_000_000, direction);
            }
            pair.advance(millis(300));
            let direction = BOTH[side as usize];
            let from = pair.offered(direction);
            support::drop_if(&mut pair, direction, move |datagram| {
                (from..from + lost).contains(&datagram.index)
            });
            update(&mut pair, side);
            assert!(pair.finish_transfers(), "{side:?} {lost}");
            assert_eq!(updates(&pair), [1, 1], "{side:?} {lost}");
        }
    }
}

#[test]
fn an_update_in_an_outage_is_followed_afterwards() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    pair.start_transfer(2_000_000, Direction::ToServer);
    pair.advance(millis(300));
    let now = pair.now();
    black_out(&mut pair, now, secs(3));
    update(&mut pair, Side::Client);
    pair.advance(secs(2));
    assert_eq!(pair.stats(Side::Server).key_updates, 0);
    assert!(pair.finish_transfers());
    pair.advance(secs(1));
    assert_eq!(updates(&pair), [1, 1]);
}

#[test]
fn an_update_during_the_handshake_waits_for_its_confirmation() {
    for cipher in CIPHERS {
        for side in SIDES {
            let mut pair = Pair::builder()
                .cipher(cipher)
                .link(link(10, 20))
                .build()
                .unwrap();
            pair.start().unwrap();
            // The client asks at once; a server exists for the test when its handshake is complete.
            assert!(pair.run_until(|pair| pair.connection(side).is_some()));
            update(&mut pair, side);
            let asked = pair.now();
            assert!(pair.connect(), "{cipher:?} {side:?}");
            for direction in BOTH {
                assert!(pair.transfer(100_000, direction).verified);
            }
            assert_eq!(
                updates(&pair),
                [1, 1],
                "{cipher:?} {side:?}, asked at {asked}"
            );
            assert_all_opened(&pair, "handshake");
        }
    }
}

#[test]
fn an_idle_connection_updates_with_its_next_packets() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    pair.advance(secs(1));
    update(&mut pair, Side::Server);
    for _ in 0..3 {
        for direction in BOTH {
            assert!(pair.transfer(1_000, direction).verified);
            pair.advance(secs(1));
        }
    }
    assert_eq!(updates(&pair), [1, 1]);
}

/// Packets of a side that could not be opened.
fn inauthentic(pair: &Pair, side: Side) -> u64 {
    let drops = pair.stats(side).drops;
    let found = drops.iter().find(|drop| drop.0 == "failed authentication");
    found.map_or(0, |drop| drop.1)
}

/// Keys are kept for as long as packets of the phase before may be under way: also on the slow path that
/// was in use until now.
#[test]
fn an_update_after_a_move_to_a_faster_path_costs_no_packets_of_the_slower() {
    for side in SIDES {
        let mut pair = connected(Pair::builder().link(link(10, 300)));
        let there = pair
            .attach(Side::Client, ([192, 0, 2, 200], 50_000).into(), link(10, 2))
            .unwrap();
        pair.start_transfer(4_000_000, Direction::ToClient);
        pair.advance(secs(4));
        let now = pair.now();
        pair.client().migrate(now, there.local).unwrap();
        assert!(pair.run_until(|pair| {
            let path = support::path(pair, Side::Client);
            path.local == there.local
        }));
        pair.advance(millis(10));
        let before = SIDES.map(|side| inauthentic(&pair, side));
        update(&mut pair, side);
        pair.advance(millis(600));
        assert_eq!(updates(&pair), [1, 1]);
        let after = SIDES.map(|side| inauthentic(&pair, side));
        assert_eq!(after, before, "{side:?}");
        assert!(pair.finish_transfers());
    }
}
