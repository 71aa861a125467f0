//! Connection IDs: how many are given, how they change in the middle of things.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_core::Rng;
use swiftwater_link::{Jitter, LossModel};
use swiftwater_policies::Policies;
use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_quic::wire::ConnectionId;
use swiftwater_quic::{
    ConnectionError, ConnectionIdGenerator, MultipathConfig, PathAddress, RandomCids,
    TransportConfig,
};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder, Recording};
use swiftwater_units::{Dir, PathId, Side};

use crate::support::{BOTH, CID_LEN, SIDES, link, millis, reason, secs};

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair
}

/// The destination IDs of short headers, in order, each run once.
fn used(recording: &Recording) -> Vec<Vec<u8>> {
    let all = recording.datagrams();
    let short = all.iter().filter(|each| each.data[0] < 0x80);
    let mut ids: Vec<_> = short.map(|each| each.data[1..=CID_LEN].to_vec()).collect();
    ids.dedup();
    ids
}

#[test]
fn rotation_changes_the_ids_of_both_directions() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for side in SIDES {
            let mut pair = connected(Pair::builder().cipher(cipher).link(link(10, 20)));
            let recordings = BOTH.map(|direction| pair.record(direction));
            for direction in BOTH {
                pair.start_transfer(1_000_000, direction);
            }
            pair.advance(millis(300));
            pair.connection(side).unwrap().rotate_connection_ids();
            assert!(pair.finish_transfers(), "{cipher:?} {side:?}");
            for (recording, direction) in recordings.iter().zip(BOTH) {
                let ids = used(recording);
                assert!(ids.len() >= 2, "{side:?} {direction:?}: {ids:?}");
            }
        }
    }
}

#[test]
fn rotation_changes_the_ids_of_every_path() {
    for side in SIDES {
        let several = |config: &mut TransportConfig| {
            config.multipath = Some(MultipathConfig::default());
            let scheduler = Arc::new(MinRttConfig::default());
            config.policies = Arc::new(Policies::default().with_scheduler(scheduler));
        };
        let builder = Pair::builder().link(link(10, 20)).both_configs(several);
        let mut pair = connected(builder);
        pair.advance(millis(300));
        let address = "192.0.2.200:4433".parse().unwrap();
        let second = pair.attach_path(Side::Client, address, link(10, 20));
        let second = second.unwrap();
        let address = PathAddress {
            remote: pair.address(Side::Server),
            local: second.local,
        };
        let now = pair.now();
        pair.client().open_path(now, address).unwrap();
        pair.advance(millis(300));
        let recording = pair.network().record(second.downlink);
        pair.start_transfer(2_000_000, Direction::ToClient);
        pair.advance(millis(300));
        pair.connection(side).unwrap().rotate_connection_ids();
        assert!(pair.finish_transfers(), "{side:?}");
        let ids = used(&recording);
        assert!(ids.len() >= 2, "{side:?}: {ids:?}");
    }
}

#[test]
fn no_id_comes_back_once_it_was_left() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    let recordings = BOTH.map(|direction| pair.record(direction));
    for direction in BOTH {
        pair.start_transfer(4_000_000, direction);
    }
    for nth in 0..40 {
        pair.advance(millis(90));
        let side = SIDES[nth % 2];
        pair.connection(side).unwrap().rotate_connection_ids();
    }
    assert!(pair.finish_transfers());
    for (recording, direction) in recordings.iter().zip(BOTH) {
        let ids = used(recording);
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{direction:?}");
        assert!(ids.len() > 10, "{direction:?}: {}", ids.len());
    }
}

#[test]
fn rotation_survives_loss_and_disorder() {
    for seed in 0..20 {
        let mut rough = link(10, 20)
            .loss(LossModel::Bernoulli(0.1))
            .jitter(Jitter::Uniform(millis(30)));
        rough.jitter_reorders = seed % 2 == 0;
        let mut pair = connected(
            Pair::builder()
                .seed(seed)
                .cipher([Cipher::Null, Cipher::Tls][usize::from(seed % 4 == 0)])
                .link(rough),
        );
        let start = pair.now();
        for direction in BOTH {
            pair.start_transfer(300_000, direction);
        }
        for nth in 0..10 {
            pair.advance(millis(200));
            for side in &SIDES[..=nth % 2] {
                pair.connection(*side).unwrap().rotate_connection_ids();
            }
        }
        assert!(
            pair.finish_transfers(),
            "seed {seed}: {:?}",
            SIDES.map(|side| reason(&pair, side))
        );
        assert!(
            pair.now() - start < secs(15),
            "seed {seed}: {:?}",
            pair.now() - start
        );
    }
}

#[test]
fn rotation_in_rapid_succession_is_bounded() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    for direction in BOTH {
        pair.start_transfer(2_000_000, direction);
    }
    for _ in 0..300 {
        pair.advance(millis(5));
        for side in SIDES {
            pair.connection(side).unwrap().rotate_connection_ids();
        }
    }
    assert!(
        pair.finish_transfers(),
        "{:?}",
        SIDES.map(|side| reason(&pair, side))
    );
}

#[test]
fn limits_from_two_to_eight_work() {
    for limit in [2, 3, 8] {
        let mut pair = connected(
            Pair::builder()
                .link(link(10, 20))
                .both_configs(|config| config.active_connection_id_limit = limit),
        );
        let recordings = BOTH.map(|direction| pair.record(direction));
        for direction in BOTH {
            pair.start_transfer(1_000_000, direction);
        }
        for _ in 0..5 {
            pair.advance(millis(150));
            for side in SIDES {
                pair.connection(side).unwrap().rotate_connection_ids();
            }
        }
        assert!(pair.finish_transfers(), "{limit}");
        for recording in &recordings {
            assert!(
                used(recording).len() >= 4,
                "{limit}: {:?}",
                used(recording).len()
            );
        }
    }
}

#[test]
fn a_client_without_ids_works_and_rotates_the_servers() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = connected(Pair::builder().cipher(cipher).link(link(10, 20)).endpoint(
            Side::Client,
            |config| {
                config.cids = Some(Arc::new(RandomCids::new(0)));
            },
        ));
        let up = pair.record(Direction::ToServer);
        for direction in BOTH {
            pair.start_transfer(500_000, direction);
        }
        pair.advance(millis(200));
        pair.server().rotate_connection_ids();
        pair.advance(millis(200));
        pair.client().rotate_connection_ids();
        assert!(pair.finish_transfers(), "{cipher:?}");
        assert!(used(&up).len() >= 2, "{cipher:?}: {:?}", used(&up));
    }
}

#[test]
fn every_length_of_id_works() {
    for len in [1, 4, 8, 16, 20] {
        let mut pair = connected(
            Pair::builder()
                .link(link(10, 20))
                .endpoint(Side::Client, move |config| {
                    config.cids = Some(Arc::new(RandomCids::new(len)));
                })
                .endpoint(Side::Server, move |config| {
                    config.cids = Some(Arc::new(RandomCids::new(len)));
                }),
        );
        for direction in BOTH {
            assert!(pair.transfer(50_000, direction).verified, "{len}");
        }
        for side in SIDES {
            pair.connection(side).unwrap().rotate_connection_ids();
        }
        assert!(pair.transfer(50_000, Direction::ToServer).verified, "{len}");
    }
}

#[test]
fn a_reset_is_recognised_after_a_rotation() {
    for side in SIDES {
        let mut pair = connected(Pair::builder().link(link(10, 20)));
        pair.connection(side).unwrap().rotate_connection_ids();
        pair.advance(millis(500));
        pair.restart(Side::Server);
        pair.client().ping();
        assert!(pair.run_until(|pair| pair.client().is_closed()));
        assert_eq!(
            reason(&pair, Side::Client),
            Some(ConnectionError::Reset),
            "{side:?}"
        );
    }
}

/// IDs of the usual length, of which there are few.
#[derive(Debug)]
struct FewIds(u32);

impl ConnectionIdGenerator for FewIds {
    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn generate(&self, _: u8, rng: &mut dyn Rng) -> ConnectionId {
        let mut bytes = [0x55; CID_LEN];
        bytes[0] = (rng.next_u32() % self.0) as u8;
        ConnectionId::new(&bytes).unwrap()
    }
}

/// Connections of a server that has hardly more IDs than it needs: each ID leads to one connection, so that
/// every client can use all that it was given.
#[test]
fn ids_that_other_connections_have_are_issued_anew() {
    const CLIENTS: usize = 6;
    let mut collisions = 0;
    for seed in 0..10 {
        let mut pair = Pair::builder()
            .seed(seed)
            .link(link(10, 20))
            .endpoint(Side::Server, |endpoint| {
                endpoint.cids = Some(Arc::new(FewIds(40)));
            })
            .build()
            .unwrap();
        for _ in 0..CLIENTS {
            pair.start().unwrap();
            pair.advance(secs(1));
        }
        let host = pair.host(Side::Client);
        // Each client takes up four IDs after the first, one after another.
        for round in 0..4 {
            for at in 0..CLIENTS {
                let handle = pair.handles(Side::Client)[at];
                let connection = pair.network().connection(host, handle).unwrap();
                connection.rotate_connection_ids();
                let stream = connection.open(Dir::Uni).unwrap();
                assert_eq!(connection.send_stream(stream).write(b"hello"), Ok(5));
                pair.advance(millis(500));
                let connection = pair.network().view(host, handle).unwrap();
                let unacked = connection
                    .path_stats(PathId::ZERO)
                    .unwrap()
                    .bytes_in_flight
                    .get();
                assert_eq!(unacked, 0, "client {at} of seed {seed}, round {round}");
            }
        }
        let server = pair.host(Side::Server);
        let stats = pair.network().endpoint_stats(server);
        assert_eq!(stats.accepted as usize, CLIENTS);
        collisions += stats.cid_collisions;
    }
    assert!(collisions > 100, "{collisions}");
}
