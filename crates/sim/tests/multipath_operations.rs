//! Random operations on several paths: opened, abandoned, cut, restored, rebound, made lossy, while data flow
//! in both directions and a player reports what it has, under each scheduler and each policy for video. Invariants:
//! all data arrive and are correct, neither end closes with an error, no decision of a policy is invalid, and no copy
//! leaves on the path of its origin.
//!
//! `SWIFTWATER_RANDOM_OPS_CASES` is the number of cases, `SWIFTWATER_RANDOM_OPS_SEED` chooses others.

mod copies;
use crate::support;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_policies::Policies;
use swiftwater_policies::{ReinjectorCatalogue, SchedulerCatalogue};
use swiftwater_quic::policy::{
    ChunkExpectation, PathPreference, PathStatus, PlayerSignal, ResponseStart,
};
use swiftwater_quic::{MultipathConfig, MultipathVersions, PathAddress, TransportConfig};
use swiftwater_sim::{Attachment, Direction, OldAddress, Pair, TransferId, Verdict};
use swiftwater_units::{Bandwidth, ByteCount, Dir, PathId, Side, StreamId};

use copies::SentCopies;
use support::{BOTH, SIDES, link, millis, secs};

/// Cases of a default run.
const CASES: u32 = 300;
/// Further addresses of the client.
const ADDRESSES: usize = 4;

/// Something that happens.
#[derive(Clone, Debug)]
enum Operation {
    /// The client opens a path from one of its addresses.
    Open(usize),
    /// A side abandons one of its open paths, if it has two.
    Abandon(Side, usize),
    /// A side announces a status of one of its open paths.
    Status(Side, usize, bool),
    /// The links of an address carry nothing for a time, ms.
    Cut(usize, u64),
    /// The client's NAT gives an address another port.
    Rebind(usize, u16),
    UpdateKeys(Side),
    RotateConnectionIds(Side),
    Transfer(bool, u64),
    /// The player has so much, ms, and expects its next chunk after a time, ms.
    Player(u64, u64),
    Wait(u64),
}

/// A network and what happens on it.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    /// Rate in Mbit/s, delay in ms, loss in percent of each address's links; that of the first path first.
    links: Vec<(u64, u64, u32)>,
    policy: usize,
    max_paths: u8,
    /// The version of draft 10 instead of that of the RFC.
    draft: bool,
    operations: Vec<Operation>,
}

const POLICIES: [&str; 8] = [
    "min-rtt",
    "round-robin",
    "weighted",
    "failover",
    "xlink",
    "xlink-paper",
    "chorus",
    "chorus+",
];

/// The server's policies of this name.
fn policies(name: &str) -> Policies {
    let copying = |name| {
        let reinjector = ReinjectorCatalogue::standard().get(name).unwrap();
        Policies::xlink().with_reinjector(reinjector)
    };
    match name {
        "chorus" => Policies::chorus(),
        "chorus+" => Policies::chorus_plus(),
        "failover" | "xlink" | "xlink-paper" => copying(name),
        scheduler => {
            let scheduler = SchedulerCatalogue::standard().get(scheduler).unwrap();
            Policies::default().with_scheduler(scheduler)
        }
    }
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let address = 0..=ADDRESSES;
    prop_oneof![
        4 => address.clone().prop_map(Operation::Open),
        2 => (Just(Side::Client), 0..4_usize).prop_map(|(side, nth)| Operation::Abandon(side, nth)),
        1 => (side(), 0..4_usize, any::<bool>())
            .prop_map(|(side, nth, backup)| Operation::Status(side, nth, backup)),
        2 => (address.clone(), 50..4_000_u64).prop_map(|(nth, time)| Operation::Cut(nth, time)),
        1 => (address, 1_024..60_000_u16).prop_map(|(nth, port)| Operation::Rebind(nth, port)),
        1 => side().prop_map(Operation::UpdateKeys),
        1 => side().prop_map(Operation::RotateConnectionIds),
        3 => (any::<bool>(), 1_000..3_000_000_u64)
            .prop_map(|(up, bytes)| Operation::Transfer(up, bytes)),
        2 => (0..3_000_u64, 0..4_000_u64)
            .prop_map(|(buffered, expected)| Operation::Player(buffered, expected)),
        6 => (1..800_u64).prop_map(Operation::Wait),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let link = (1..60_u64, 1..120_u64, prop_oneof![Just(0), 0..15_u32]);
    (
        any::<u64>(),
        prop::collection::vec(link, ADDRESSES + 1),
        0..POLICIES.len(),
        2..=5_u8,
        any::<bool>(),
        prop::collection::vec(operation(), 1..40),
    )
        .prop_map(|(seed, links, policy, max_paths, draft, operations)| Plan {
            seed,
            links,
            policy,
            max_paths,
            draft,
            operations,
        })
}

/// The pair, and what is recorded of it.
struct Run {
    pair: Pair,
    attachments: Vec<Attachment>,
    /// By address, the first one included: nothing passes.
    cuts: Vec<Rc<Cell<bool>>>,
    /// When a cut ends.
    restores: Vec<(u64, usize)>,
    transfers: Vec<TransferId>,
    /// Streams that the server opened.
    responses: u64,
    /// Chunks that the player expected.
    chunks: u64,
    copies: SentCopies,
}

fn config_of((mbps, delay, loss): (u64, u64, u32)) -> LinkConfig {
    link(mbps, delay).loss(LossModel::Bernoulli(f64::from(loss) / 100.0))
}

impl Run {
    fn new(plan: &Plan) -> Self {
        let policies = Arc::new(policies(POLICIES[plan.policy]));
        let copies = SentCopies::default();
        let observer = copies.clone();
        let max_paths = plan.max_paths;
        let versions = if plan.draft {
            MultipathVersions::Draft10
        } else {
            MultipathVersions::Rfc10069
        };
        let enable = move |config: &mut TransportConfig| {
            config.multipath = Some(MultipathConfig {
                max_paths,
                versions,
                ..MultipathConfig::default()
            });
            config.max_idle_timeout = Some(secs(120));
            config.max_feedback_size = 64;
            config.observer = Some(Arc::new(observer.clone()));
        };
        let mut pair = Pair::builder()
            .seed(plan.seed)
            .link(config_of(plan.links[0]))
            .both_configs(enable)
            .client_config(|config| config.policies = Arc::new(Policies::player()))
            .server_config(move |config| config.policies = policies)
            .time_limit(secs(3_600))
            .build()
            .unwrap();
        assert!(pair.connect());
        let mut run = Self {
            attachments: Vec::new(),
            cuts: (0..=ADDRESSES).map(|_| Rc::default()).collect(),
            restores: Vec::new(),
            transfers: Vec::new(),
            responses: 0,
            chunks: 0,
            copies,
            pair,
        };
        for direction in BOTH {
            let link = run.pair.link(direction);
            run.add_cut(0, link);
        }
        for nth in 1..=ADDRESSES {
            let address: SocketAddr = ([192, 0, 2, 200 + nth as u8], 50_000).into();
            let config = config_of(plan.links[nth]);
            let attachment = run.pair.attach_path(Side::Client, address, config).unwrap();
            run.add_cut(nth, attachment.uplink);
            run.add_cut(nth, attachment.downlink);
            run.attachments.push(attachment);
        }
        run
    }

    fn add_cut(&mut self, nth: usize, link: swiftwater_sim::LinkId) {
        let is_cut = Rc::clone(&self.cuts[nth]);
        self.pair.network().tap(link, move |_| {
            if is_cut.get() {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
    }

    fn open_path(&mut self, side: Side, nth: usize) -> Option<PathId> {
        let paths: Vec<_> = self.pair.connection(side)?.open_paths().collect();
        paths.get(nth % paths.len().max(1)).copied()
    }

    fn advance(&mut self, time: u64) {
        for _ in 0..time.div_ceil(50) {
            self.pair.advance(millis(time.min(50)));
            let now = self.pair.now();
            self.restores.retain(|&(at, nth)| {
                let is_over = at <= now.as_nanos() / 1_000_000;
                if is_over {
                    self.cuts[nth].set(false);
                }
                !is_over
            });
        }
    }

    fn act(&mut self, operation: &Operation) {
        let now = self.pair.now();
        match *operation {
            Operation::Open(nth) => {
                let remote = self.pair.address(Side::Server);
                let local = match nth {
                    0 => self.pair.client().path_address().local,
                    nth => self.attachments[nth - 1].local,
                };
                let address = PathAddress { remote, local };
                let _ = self.pair.client().open_path(now, address);
            }
            Operation::Abandon(side, nth) => {
                if let Some(path) = self.open_path(side, nth) {
                    let _ = self.pair.connection(side).unwrap().abandon_path(now, path);
                }
            }
            Operation::Status(side, nth, is_backup) => {
                if let Some(path) = self.open_path(side, nth) {
                    let status = if is_backup {
                        PathStatus::Backup
                    } else {
                        PathStatus::Available
                    };
                    let preference = PathPreference {
                        status,
                        ..PathPreference::default()
                    };
                    let connection = self.pair.connection(side).unwrap();
                    connection.set_path_preference(path, preference);
                }
            }
            Operation::Cut(nth, time) => {
                self.cuts[nth].set(true);
                self.restores.push((now.as_nanos() / 1_000_000 + time, nth));
            }
            Operation::Rebind(nth, port) => {
                let address: SocketAddr = ([192, 0, 2, 220 + nth as u8], port).into();
                match nth {
                    0 => drop(self.pair.rebind(Side::Client, address)),
                    nth => {
                        let interface = self.attachments[nth - 1].interface;
                        let network = self.pair.network();
                        drop(network.rebind(interface, address, OldAddress::Lost));
                    }
                }
            }
            Operation::UpdateKeys(side) => self.pair.connection(side).unwrap().update_keys(),
            Operation::RotateConnectionIds(side) => {
                self.pair.connection(side).unwrap().rotate_connection_ids();
            }
            Operation::Transfer(up, bytes) => {
                let direction = if up {
                    Direction::ToServer
                } else {
                    Direction::ToClient
                };
                if !up {
                    self.announce(bytes);
                }
                self.transfers
                    .push(self.pair.start_transfer(bytes, direction));
            }
            Operation::Player(buffered, expected) => {
                self.chunks += 1;
                let expectation = ChunkExpectation {
                    chunk: self.chunks,
                    expected_time: millis(expected),
                };
                let rate = Bandwidth::from_mbps(4);
                let player = PlayerSignal::buffering(millis(buffered), rate, 25.0);
                self.pair.client().update_hints(now, |hints| {
                    hints.player = Some(player);
                    hints.expectation = Some(expectation);
                });
            }
            Operation::Wait(time) => self.advance(time),
        }
    }

    /// The server's next stream carries a response of so many bytes.
    fn announce(&mut self, bytes: u64) {
        let stream = StreamId::new(Side::Server, Dir::Uni, self.responses);
        self.responses += 1;
        let now = self.pair.now();
        let response = ResponseStart {
            stream,
            bytes: ByteCount::new(bytes),
            requested_at: now,
        };
        let server = self.pair.server();
        server.update_hints(now, |hints| hints.response = Some(response));
    }

    /// Everything works again: all data arrive. Returns the bytes of copies that the server sent.
    fn finish(mut self) -> u64 {
        for cut in &self.cuts {
            cut.set(false);
        }
        self.transfers
            .push(self.pair.start_transfer(100_000, Direction::ToClient));
        self.transfers
            .push(self.pair.start_transfer(100_000, Direction::ToServer));
        let finished = self.pair.finish_transfers();
        for side in SIDES {
            assert_eq!(support::reason(&self.pair, side), None, "{side:?}");
        }
        for &transfer in &self.transfers {
            let report = self.pair.transfer_report(transfer);
            assert!(report.intact, "wrong data");
            assert!(report.verified, "{} bytes came", report.received);
        }
        assert!(finished);
        for side in SIDES {
            assert_eq!(self.pair.stats(side).invalid_decisions, 0);
        }
        self.copies.check()
    }
}

fn run(plan: &Plan) -> u64 {
    let mut run = Run::new(plan);
    for operation in &plan.operations {
        run.act(operation);
    }
    run.finish()
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

#[test]
fn nothing_breaks_whatever_happens_to_paths() {
    let cases = variable("SWIFTWATER_RANDOM_OPS_CASES").map_or(CASES, |cases| cases as u32);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        max_shrink_time: 120_000,
        ..Config::default()
    };
    let mut seed = [9; 32];
    let chosen = variable("SWIFTWATER_RANDOM_OPS_SEED").unwrap_or(1);
    seed[..8].copy_from_slice(&chosen.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    // Bytes of copies by policy.
    let copied = std::cell::RefCell::new([0; POLICIES.len()]);
    let outcome = runner.run(&plan(), |plan| {
        copied.borrow_mut()[plan.policy] += run(&plan);
        Ok::<(), TestCaseError>(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    for (name, bytes) in POLICIES.iter().zip(copied.into_inner()) {
        let copies = !["min-rtt", "round-robin", "weighted"].contains(name);
        assert_eq!(bytes > 0, copies, "{name}: {bytes} bytes of copies");
    }
}

#[test]
fn the_only_working_path_is_abandoned_while_others_are_validated_over_a_link_that_is_down() {
    run(&Plan {
        seed: 0,
        links: vec![(1, 1, 0); ADDRESSES + 1],
        policy: 0,
        max_paths: 4,
        draft: false,
        operations: vec![
            Operation::Open(0),
            Operation::Open(0),
            Operation::Open(0),
            Operation::Cut(0, 2_451),
            Operation::Wait(301),
            Operation::Abandon(Side::Client, 0),
            Operation::Wait(1_700),
            Operation::Transfer(true, 14_007),
            Operation::Wait(701),
        ],
    });
}

#[test]
fn acknowledgements_leave_on_the_path_that_is_left() {
    use Operation::{Abandon, Cut, Open, Status, Transfer, UpdateKeys, Wait};
    use Side::{Client, Server};
    run(&Plan {
        seed: 101_979_017_763_751_413,
        links: vec![
            (34, 40, 0),
            (27, 75, 0),
            (55, 8, 5),
            (12, 91, 13),
            (3, 52, 0),
        ],
        policy: 1,
        max_paths: 4,
        draft: false,
        operations: vec![
            Transfer(true, 2_858_447),
            Cut(3, 951),
            Wait(412),
            Status(Client, 0, true),
            Wait(580),
            Abandon(Client, 3),
            Wait(669),
            Wait(445),
            Wait(54),
            Transfer(true, 409_443),
            Transfer(true, 1_029_865),
            Status(Server, 1, false),
            Wait(775),
            Transfer(true, 1_138_392),
            UpdateKeys(Client),
            Wait(37),
            Transfer(true, 977_297),
            Abandon(Client, 2),
            Status(Server, 3, false),
            Wait(257),
            Cut(0, 2_531),
            Open(1),
            Transfer(true, 234_194),
            Abandon(Client, 0),
            Transfer(false, 1_202_411),
        ],
    });
}
