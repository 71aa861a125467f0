//! What holds for every strategy, whatever happens: safety of repetition, one experiment at a time, blocked
//! UDP, bounded memory, determinism.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_select::{
    Arm, Boundary, Config, Decision, EventKind, Failure, Measured, Model, Models, NetworkId,
    OriginHash, Outcome, Parameters, Reason, RequestDescription, Selector, Strategy as Choice,
    Traffic,
};
use swiftwater_units::Instant;

const NETWORKS: u64 = 4;
const ORIGINS: u64 = 6;

/// Something that happens to a selector.
#[derive(Clone, Debug)]
enum Step {
    Decide {
        network: u64,
        origin: u64,
        replay_safe: bool,
        available: u32,
    },
    /// The outcome of one of the requests in flight.
    Finish {
        which: prop::sample::Index,
        millis: u64,
        bytes: u64,
        how: u8,
    },
    Wait(u64),
    Timeout,
    NetworkChange(u64),
    Connected {
        network: u64,
        origin: u64,
        arm: usize,
    },
    Blocked {
        network: u64,
        origin: u64,
    },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..NETWORKS, 0..ORIGINS);
    let decide = (place(), any::<bool>(), 0_u32..9);
    let decide = decide.prop_map(|((network, origin), replay_safe, available)| Step::Decide {
        network,
        origin,
        replay_safe,
        available,
    });
    let finish = (
        any::<prop::sample::Index>(),
        1_u64..4000,
        0_u64..200_000,
        0_u8..8,
    );
    let finish = finish.prop_map(|(which, millis, bytes, how)| Step::Finish {
        which,
        millis,
        bytes,
        how,
    });
    let connected = (place(), 0..3_usize);
    let connected = connected.prop_map(|((network, origin), arm)| Step::Connected {
        network,
        origin,
        arm,
    });
    let step = prop_oneof![
        8 => decide,
        8 => finish,
        3 => (0_u64..3_000).prop_map(Step::Wait),
        1 => (0_u64..2_000_000).prop_map(Step::Wait),
        2 => Just(Step::Timeout),
        1 => (0..NETWORKS).prop_map(Step::NetworkChange),
        1 => connected,
        1 => place().prop_map(|(network, origin)| Step::Blocked { network, origin }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..300)
}

fn strategies() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::wise()),
        Just(Choice::wise_v1()),
        Just(Choice::Plus),
        Just(Choice::Race),
        Just(Choice::Strawman(Boundary {
            bias: -1.0,
            rtt: 0.01,
            ..Boundary::default()
        })),
        Just(Choice::Fixed(Arm::h3())),
    ]
}

fn arms() -> Vec<Arm> {
    vec![Arm::h2(), Arm::h3(), "h3:bbr1".parse().unwrap()]
}

fn origin(number: u64) -> OriginHash {
    OriginHash(number)
}

/// A selector under test, with what is known of it from outside.
struct Checked {
    selector: Selector,
    strategy: Choice,
    now: Instant,
    flying: Vec<Decision>,
    decisions: Vec<(Arm, Reason)>,
    /// Requests over each position of the running experiment.
    experiments: BTreeMap<(NetworkId, OriginHash), BTreeSet<u32>>,
}

fn fresh(strategy: &Choice) -> Selector {
    let mut config = Config::new(arms(), strategy.clone());
    config.parameters = Parameters {
        max_networks: 3,
        max_origins: 4,
        max_pending: 16,
        ..Parameters::default()
    };
    let model = Model::read(include_bytes!("data/tcp.json")).unwrap();
    let model = Some(std::sync::Arc::new(model));
    let models = Models {
        tcp: model.clone(),
        quic: model,
    };
    Selector::new(config, models, 9).unwrap()
}

impl Checked {
    fn new(strategy: Choice) -> Self {
        Self {
            selector: fresh(&strategy),
            strategy,
            now: Instant::ZERO,
            flying: Vec::new(),
            decisions: Vec::new(),
            experiments: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Decide {
                network,
                origin: number,
                replay_safe,
                available,
            } => {
                let request = RequestDescription {
                    network: NetworkId(*network),
                    origin: origin(*number),
                    replay_safe: *replay_safe,
                    available: *available,
                };
                self.decide(&request);
            }
            Step::Finish {
                which,
                millis,
                bytes,
                how,
            } => self.finish(*which, *millis, *bytes, *how),
            Step::Wait(millis) => self.now += Duration::from_millis(*millis),
            Step::Timeout => {
                self.selector.on_timeout(self.now);
                let next = self.selector.next_timeout();
                assert!(next.is_none_or(|next| next > self.now), "{next:?}");
            }
            Step::NetworkChange(network) => {
                self.selector
                    .on_network_change(self.now, NetworkId(*network));
                self.experiments.clear();
            }
            Step::Connected {
                network,
                origin: number,
                arm,
            } => {
                let arm = &arms()[*arm];
                let network = NetworkId(*network);
                self.selector
                    .on_connection(self.now, network, origin(*number), arm);
            }
            Step::Blocked {
                network,
                origin: number,
            } => {
                let network = NetworkId(*network);
                self.selector
                    .on_quic_blocked(self.now, network, origin(*number));
            }
            Step::Restart => self.restart(),
        }
        self.look_at_events();
        let (networks, origins, pending) = self.selector.remembered();
        assert!(networks <= 3 && origins <= 12 && pending <= 16);
    }

    fn decide(&mut self, request: &RequestDescription) {
        let (network, origin) = (request.network, request.origin);
        let blocked = self.selector.is_quic_blocked(self.now, network, origin);
        let decision = self.selector.decide(self.now, request);
        self.look_at_events();
        let arms = arms();
        let place = arms.iter().position(|arm| *arm == decision.arm).unwrap();
        let is_fixed = matches!(self.strategy, Choice::Fixed(_));
        let available = request.available & 7;
        if available != 0 && !is_fixed {
            assert!(available >> place & 1 == 1, "{decision} is not available");
        }
        let tcp_may = available == 0 || available & 1 == 1;
        if blocked && tcp_may && !is_fixed {
            assert_eq!(decision.arm, Arm::h2(), "{decision} while QUIC is blocked");
        }
        if !request.replay_safe {
            assert!(decision.hedge.is_none());
            assert!(!decision.reason.is_probe(), "{decision}");
        }
        if let Reason::Experiment { position, .. } = decision.reason {
            let sent = self.experiments.get_mut(&(network, origin));
            let sent = sent.expect("an experiment that was started");
            sent.insert(position);
            assert!(sent.len() <= 9);
        }
        self.decisions.push((decision.arm.clone(), decision.reason));
        self.flying.push(decision);
        if self.flying.len() > 40 {
            self.flying.remove(0);
        }
    }

    fn finish(&mut self, which: prop::sample::Index, millis: u64, bytes: u64, how: u8) {
        if self.flying.is_empty() {
            return;
        }
        let decision = self.flying.swap_remove(which.index(self.flying.len()));
        let measured = Measured {
            first_byte: Duration::from_millis(millis / 2),
            completion: Duration::from_millis(millis),
            waited: Duration::from_millis(u64::from(how)),
            bytes,
            rtt: Some(Duration::from_millis(millis / 3)),
            traffic: Some(Traffic {
                sent: bytes,
                retransmitted: bytes / 50,
            }),
        };
        let (arm, result) = match (how, &decision.hedge) {
            (0, _) => (decision.arm, Err(Failure::TooSlow)),
            (1, _) => (decision.arm, Err(Failure::Connect)),
            (2, _) => (decision.arm, Err(Failure::Cancelled)),
            (3, Some(hedge)) => (hedge.arm.clone(), Ok(measured)),
            _ => (decision.arm, Ok(measured)),
        };
        let outcome = Outcome {
            arm,
            result,
            silent: bytes.is_multiple_of(2),
            hedged: bytes.is_multiple_of(3),
        };
        self.selector.on_outcome(self.now, decision.id, &outcome);
        let stats = self.selector.stats();
        self.selector.on_outcome(self.now, decision.id, &outcome);
        assert_eq!(stats, self.selector.stats(), "a second outcome counts");
    }

    /// Experiments of an origin begin and end alternately.
    fn look_at_events(&mut self) {
        while let Some(event) = self.selector.poll_event() {
            let key = (event.network, event.origin);
            match event.kind {
                EventKind::ExperimentStarted { .. } => {
                    // An origin that was forgotten has lost its experiment.
                    let before = self.experiments.insert(key, BTreeSet::new());
                    let all = self.selector.remembered();
                    assert!(
                        before.is_none() || all.1 >= 4 || all.0 >= 3,
                        "two at a time"
                    );
                }
                EventKind::ExperimentEnded { .. } => {
                    assert!(self.experiments.remove(&key).is_some());
                }
                _ => {}
            }
        }
    }

    fn restart(&mut self) {
        let clock = Duration::from_secs(1_000_000_000);
        let text = self.selector.snapshot(self.now, clock);
        let mut selector = fresh(&self.strategy);
        selector.restore(self.now, clock, &text).unwrap();
        for network in 0..NETWORKS {
            for number in 0..ORIGINS {
                let place = (NetworkId(network), origin(number));
                let before = self.selector.is_quic_blocked(self.now, place.0, place.1);
                assert_eq!(before, selector.is_quic_blocked(self.now, place.0, place.1));
                let before = self.selector.current(place.0, place.1);
                assert_eq!(before, selector.current(place.0, place.1));
            }
        }
        self.selector = selector;
        self.flying.clear();
        self.experiments.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn hold_whatever_happens(strategy in strategies(), steps in steps()) {
        let (mut one, mut other) = (Checked::new(strategy.clone()), Checked::new(strategy));
        for step in &steps {
            one.take(step);
            other.take(step);
        }
        prop_assert_eq!(one.decisions, other.decisions);
        prop_assert_eq!(one.selector.stats(), other.selector.stats());
    }

    /// Any text gives an error or a selector within its bounds.
    #[test]
    fn stored_states_are_safe(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut checked = Checked::new(Choice::Plus);
        for number in 0..12 {
            let request = RequestDescription::new(NetworkId(number % 3), origin(number));
            checked.decide(&request);
        }
        checked.selector.on_quic_blocked(Instant::ZERO, NetworkId(1), origin(1));
        let clock = Duration::from_secs(1_000_000_000);
        let mut text = checked.selector.snapshot(Instant::ZERO, clock).into_bytes();
        for (index, byte) in changes {
            let place = index.index(text.len());
            text[place] = byte;
        }
        let text = String::from_utf8_lossy(&text);
        let mut selector = fresh(&Choice::Plus);
        let restored = selector.restore(Instant::ZERO, clock, &text);
        let (networks, origins, _) = selector.remembered();
        prop_assert!(networks <= 3 && origins <= 12);
        prop_assert!(restored.is_ok() || networks == 0);
        selector.decide(Instant::ZERO, &RequestDescription::new(NetworkId(0), origin(0)));
    }
}
