//! Key updates (RFC 9001, section 6) by both ends, again and again, while datagrams are lost, arrive several
//! probe timeouts late, or wait for an end that is stopped and are then received at once: data arrive, and no
//! end takes the other's updates for an error.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use swiftwater_sim::{Cipher, Direction, Pair, TapDatagram, Verdict};
use swiftwater_units::{Instant, Side};

use crate::support::{BOTH, SIDES, link, millis, reason, secs};

/// Time in which keys are updated.
const UPDATING: u64 = 8_000;

/// What waits while an end is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Held {
    /// Datagrams to the server.
    ToServer,
    /// Datagrams to the client.
    ToClient,
    All,
}

impl Held {
    fn includes(self, direction: Direction) -> bool {
        match self {
            Self::ToServer => direction == Direction::ToServer,
            Self::ToClient => direction == Direction::ToClient,
            Self::All => true,
        }
    }
}

/// Datagrams of a time wait until its end.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: u64,
    length: u64,
    held: Held,
}

/// What the network does to the datagrams of a direction.
#[derive(Clone, Copy, Debug)]
struct Faults {
    seed: u64,
    loss_percent: u64,
    late_percent: u64,
    late_ms: u64,
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    cipher: Cipher,
    rate_mbps: u64,
    delay_ms: u64,
    faults: [Faults; 2],
    pauses: Vec<Pause>,
    /// When either side is asked for an update, in milliseconds after the handshake.
    requests: Vec<(u64, Side)>,
    /// Packets after which either side updates by itself.
    intervals: [u64; 2],
    bytes: [u64; 2],
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn faults() -> impl Strategy<Value = Faults> {
    (any::<u64>(), 0..20_u64, 0..15_u64, 0..5_000_u64).prop_map(
        |(seed, loss_percent, late_percent, late_ms)| Faults {
            seed,
            loss_percent,
            late_percent,
            late_ms,
        },
    )
}

/// Also right after the handshake, when the first packets after an update are not acknowledged then.
fn pause() -> impl Strategy<Value = Pause> {
    let held = prop_oneof![Just(Held::ToServer), Just(Held::ToClient), Just(Held::All)];
    let from = prop_oneof![Just(0), 0..UPDATING];
    (from, 20..4_000_u64, held).prop_map(|(from, length, held)| Pause { from, length, held })
}

fn interval() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), 2..60_u64, Just(u64::MAX)]
}

/// Many at once, right after the handshake, or over all the time.
fn requests() -> impl Strategy<Value = Vec<(u64, Side)>> {
    let at = prop_oneof![Just(0), 0..300_u64, 0..UPDATING];
    prop::collection::vec((at, side()), 0..80)
}

fn cases() -> impl Strategy<Value = Case> {
    let network = (1..50_u64, 1..150_u64, [faults(), faults()]);
    let cipher = prop_oneof![7 => Just(Cipher::Null), 1 => Just(Cipher::Tls)];
    let pauses = prop::collection::vec(pause(), 0..4);
    let bytes = [0..300_000_u64, 0..300_000_u64];
    let updates = (requests(), [interval(), interval()]);
    (any::<u64>(), cipher, network, pauses, updates, bytes).prop_map(
        |(seed, cipher, network, pauses, (mut requests, intervals), bytes)| {
            requests.sort_unstable_by_key(|(at, _)| *at);
            let (rate_mbps, delay_ms, faults) = network;
            Case {
                seed,
                cipher,
                rate_mbps,
                delay_ms,
                faults,
                pauses,
                requests,
                intervals,
                bytes,
            }
        },
    )
}

/// A number that depends on nothing but its arguments (splitmix64).
fn mixed(seed: u64, nth: u64) -> u64 {
    let z = seed.wrapping_add(nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Case {
    fn pair(&self) -> Pair {
        let [client, server] = self.intervals;
        Pair::builder()
            .seed(self.seed)
            .cipher(self.cipher)
            .link(link(self.rate_mbps, self.delay_ms))
            .both_configs(|config| {
                config.handshake_timeout = secs(120);
                config.max_idle_timeout = Some(secs(300));
            })
            .client_config(|config| config.key_update_interval = client)
            .server_config(|config| config.key_update_interval = server)
            .time_limit(secs(600))
            .build()
            .unwrap()
    }

    /// What happens to a datagram in `direction`, `start` being the end of the handshake.
    fn verdict(&self, direction: Direction, datagram: &TapDatagram<'_>, start: Instant) -> Verdict {
        let faults = self.faults[usize::from(direction == Direction::ToClient)];
        let chance = mixed(faults.seed, datagram.index);
        if chance % 100 < faults.loss_percent {
            return Verdict::Drop;
        }
        let now = datagram.now.saturating_since(start);
        let end = |pause: &Pause| {
            let (from, end) = (millis(pause.from), millis(pause.from + pause.length));
            (pause.held.includes(direction) && from <= now && now < end).then_some(end)
        };
        let held = (self.pauses.iter().filter_map(end).max())
            .map_or(Duration::ZERO, |end| end.saturating_sub(now));
        let is_late = (chance / 100) % 100 < faults.late_percent;
        let late = if is_late {
            millis(faults.late_ms)
        } else {
            Duration::ZERO
        };
        match held + late {
            Duration::ZERO => Verdict::Pass,
            delay => Verdict::Delay(delay),
        }
    }

    /// Transfers data in both directions while keys are updated; the time that it took.
    fn run(&self, pair: &mut Pair) -> Result<Duration, TestCaseError> {
        prop_assert!(pair.connect());
        let start = pair.now();
        for direction in BOTH {
            let case = self.clone();
            pair.tap(direction, move |datagram| {
                case.verdict(direction, datagram, start)
            });
        }
        for (bytes, direction) in self.bytes.into_iter().zip(BOTH) {
            pair.start_transfer(bytes, direction);
        }
        for &(at, side) in &self.requests {
            let elapsed = pair.now() - start;
            pair.advance(millis(at).saturating_sub(elapsed));
            if let Some(connection) = pair.connection(side) {
                connection.update_keys();
            }
        }
        let is_complete = pair.finish_transfers();
        let reasons = SIDES.map(|side| reason(pair, side));
        prop_assert!(is_complete, "{reasons:?}");
        Ok(pair.now() - start)
    }

    /// Further updates by `side` are followed, over a network that does nothing to datagrams any more.
    fn update_again(pair: &mut Pair, side: Side) -> Result<(), TestCaseError> {
        for direction in BOTH {
            pair.tap(direction, |_| Verdict::Pass);
        }
        let before = SIDES.map(|side| pair.stats(side).key_updates);
        for _ in 0..3 {
            // Until nothing is under way and all keys of previous phases are discarded. The first request may
            // be met by an update of the other side that is still to be followed.
            pair.advance(secs(60));
            pair.connection(side).unwrap().update_keys();
            for direction in BOTH {
                prop_assert!(pair.transfer(5_000, direction).verified);
            }
        }
        let after = SIDES.map(|side| pair.stats(side).key_updates);
        let (before, after) = (before.into_iter().max(), after.into_iter().min());
        prop_assert!(after > before, "{side:?}: {before:?}, {after:?}");
        prop_assert_eq!(SIDES.map(|side| reason(pair, side)), [None, None]);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn updates_at_any_time_neither_stall_nor_end_a_connection(case in cases(), side in side()) {
        let mut pair = case.pair();
        let took = case.run(&mut pair)?;
        prop_assert!(took < secs(300), "{took:?}");
        let [client, server] = SIDES.map(|side| pair.stats(side).key_updates);
        prop_assert!(client.abs_diff(server) <= 1, "{client} and {server} updates");
        Case::update_again(&mut pair, side)?;
    }
}
