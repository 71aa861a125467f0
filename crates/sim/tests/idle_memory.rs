//! Connections that release memory (`Connection::rest`), at any time, behave as others.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_link::{Jitter, LinkConfig, LossModel, Reorder, ReorderBy};
use swiftwater_quic::Connection;
use swiftwater_sim::{Cipher, Direction, Pair};
use swiftwater_units::Side;

use crate::support::{BOTH, SIDES, link, millis, secs};

/// How often a side is made to release memory.
const STEP: Duration = Duration::from_millis(7);

fn links(seed: u64) -> LinkConfig {
    let link = link(10, 20);
    match seed % 4 {
        0 => link,
        1 => link.loss(LossModel::Bernoulli(0.05)),
        2 => {
            let mut link = link.jitter(Jitter::Uniform(millis(10))).duplicate(0.05);
            link.reorder = Some(Reorder {
                probability: 0.05,
                by: ReorderBy::Delay(millis(40)),
            });
            link
        }
        _ => link.loss(LossModel::Bernoulli(0.02)).duplicate(0.1),
    }
}

/// When a side rests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rests {
    Never,
    /// Whenever it is made to, with data in flight.
    Busy,
    /// Whenever it is made to.
    Always,
}

/// Goes through handshake, transfers, pauses, key updates, new connection IDs and a migration of the client,
/// and returns all actions of the two ends as text. A side releases memory where `asked` states it for a
/// step.
fn life(seed: u64, cipher: Cipher, rests: Rests, asked: fn(u64) -> [bool; 2]) -> String {
    let mut pair = Pair::builder()
        .seed(seed)
        .cipher(cipher)
        .link(links(seed))
        .both_configs(|config| config.handshake_timeout = secs(60))
        .build()
        .unwrap();
    let what = format!("seed {seed}, {cipher:?}, {rests:?}");
    pair.start().unwrap();
    let mut told = String::new();
    let mut rested = 0;
    for step in 0..600 {
        match step {
            60 => drop(BOTH.map(|direction| pair.start_transfer(150_000, direction))),
            250 => pair.connection(Side::Client).unwrap().update_keys(),
            260 => drop(BOTH.map(|direction| pair.start_transfer(20_000, direction))),
            350 => {
                let moved: SocketAddr = "198.51.100.77:7777".parse().unwrap();
                pair.rebind(Side::Client, moved).unwrap();
            }
            355 => drop(BOTH.map(|direction| pair.start_transfer(20_000, direction))),
            400 => {
                let server = pair.connection(Side::Server).unwrap();
                server.rotate_connection_ids();
                server.update_keys();
            }
            405 => drop(pair.start_transfer(50_000, Direction::ToClient)),
            _ => {}
        }
        pair.advance(STEP);
        for (side, asked) in SIDES.into_iter().zip(asked(step)) {
            let in_flight = |connection: &Connection| {
                let stats = connection.stats();
                !stats.paths[0].bytes_in_flight.is_zero()
            };
            if let Some(connection) = pair.connection(side)
                && asked
                && (rests == Rests::Always || rests == Rests::Busy && in_flight(connection))
            {
                connection.release_idle_memory();
                rested += 1;
            }
        }
        if step % 20 == 0 {
            let stats = SIDES.map(|side| pair.stats(side));
            writeln!(told, "step {step}: {stats:?}").unwrap();
        }
    }
    assert!(pair.finish_transfers(), "{what}");
    for side in SIDES {
        let stats = pair.stats(side);
        assert!(stats.key_updates >= 1, "{what}");
        let inauthentic = |(why, _): &(_, _)| *why == "failed authentication";
        assert!(!stats.drops.iter().any(inauthentic), "{what}");
    }
    assert_eq!(rested > 20, rests != Rests::Never, "{what}: {rested}");
    told + &format!("{:?}", pair.now())
}

const ASKED: [fn(u64) -> [bool; 2]; 3] = [
    |_| [true, true],
    |step| [step % 3 == 0, step % 2 == 0],
    |step| [step / 50 % 2 == 0, step / 50 % 2 == 1],
];

#[test]
fn releasing_memory_while_something_is_on_its_way_changes_nothing() {
    for seed in 0..12 {
        let cipher = [Cipher::Null, Cipher::Tls][seed as usize / 4 % 2];
        let restless = life(seed, cipher, Rests::Never, ASKED[0]);
        for (nth, asked) in ASKED.into_iter().enumerate() {
            let rested = life(seed, cipher, Rests::Busy, asked);
            if let Some((a, b)) = (restless.lines().zip(rested.lines())).find(|(a, b)| a != b) {
                let field = a.split(", ").zip(b.split(", ")).find(|(a, b)| a != b);
                let step = a.split(':').next();
                panic!("seed {seed}, {cipher:?}, case {nth}, {step:?}: {field:?}");
            }
        }
    }
}

/// State about acknowledgements of its own ACKs is released then; everything else continues.
#[test]
fn releasing_memory_at_any_moment_loses_nothing() {
    for seed in 0..12 {
        let cipher = [Cipher::Tls, Cipher::Null][seed as usize / 4 % 2];
        for asked in ASKED {
            life(seed, cipher, Rests::Always, asked);
        }
    }
}
