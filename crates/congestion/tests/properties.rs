//! What holds for every controller for any input: window within bounds, numbers finite, no
//! panic; and for every flow that the driver can play.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Fate, Supply, Transport, env};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, CubicConfig, EcnBatch, EcnCounts, EpisodeId,
    FixedWindow, HyStartConfig, LossBasedConfig, LossBatch, LossCause, LostPacket, MAX_WINDOW,
    NewRenoConfig, RateSample, Round, RttView, SentInfo, SlowStartExit, by_name, names,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

/// Every algorithm by name, and settings that reach code the defaults don't.
fn factories() -> Vec<Arc<dyn ControllerFactory>> {
    let step_back = LossBasedConfig {
        hystart: SlowStartExit::HyStartPlusPlus(HyStartConfig {
            step_back: true,
            growth_limit: Some(8),
            ..Default::default()
        }),
        prr: true,
        ..Default::default()
    };
    let mut all: Vec<_> = names()
        .iter()
        .map(|name| by_name(name).expect("a specification"))
        .collect();
    for specification in [
        "cubic-plus:rtt_mode=literal,filter=algo,drain=bdp,k_high=0.1,drain_backoff=64,drain_restore=on,drain_relief=0.7,prr=on",
        "bbr1-xquic:expected_bandwidth=5mbit,max_expected_bandwidth=8mbit",
        "copa:turn_at_once=off,delta=0.04",
        "prague:rtt_transition=0,gain=1,hystart=off",
        "cubic:hystart=ns3,reno_friendly=off,early_growth=on",
        "cubic-plus:filter=off,drain=text,k_high=0,base_window=1s,full_queue=on,hold_growth=on,period_rtts=0.25",
    ] {
        all.push(by_name(specification).expect("a specification"));
    }
    all.push(Arc::new(CubicConfig {
        base: step_back,
        fast_convergence: false,
        ..Default::default()
    }));
    all.push(Arc::new(NewRenoConfig {
        base: step_back,
        ..Default::default()
    }));
    all
}

/// A call of a controller; numbers are as wild as a broken transport could make them.
#[derive(Clone, Debug)]
enum Call {
    Sent {
        bytes: u64,
        idle: Option<u64>,
    },
    Ack {
        bytes: u64,
        prior: u64,
        rtt: u64,
        sampled: bool,
        round: u64,
        flags: [bool; 3],
    },
    Loss {
        new: bool,
        episode: u64,
        inflight: u64,
    },
    Ce {
        new: bool,
        episode: u64,
    },
    Spurious {
        episode: u64,
    },
    Persistent,
    Pto,
    Idle,
    DatagramSize(u64),
    Discard(u64),
    Timer,
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..100_000_u64, 1 => 0..(1_u64 << 40), 1 => Just(u64::MAX)]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        2 => (bytes(), prop::option::of(any::<u64>())).prop_map(|(bytes, idle)| Call::Sent { bytes, idle }),
        12 => (bytes(), bytes(), any::<u64>(), any::<bool>(), 0..40_u64, any::<[bool; 3]>()).prop_map(
            |(bytes, prior, rtt, sampled, round, flags)| Call::Ack { bytes, prior, rtt, sampled, round, flags }
        ),
        2 => (any::<bool>(), 0..4_u64, bytes()).prop_map(|(new, episode, inflight)| Call::Loss { new, episode, inflight }),
        1 => (any::<bool>(), 0..4_u64).prop_map(|(new, episode)| Call::Ce { new, episode }),
        1 => (0..4_u64).prop_map(|episode| Call::Spurious { episode }),
        1 => Just(Call::Persistent),
        1 => Just(Call::Pto),
        1 => Just(Call::Idle),
        1 => (1_200..65_528_u64).prop_map(Call::DatagramSize),
        1 => bytes().prop_map(Call::Discard),
        1 => Just(Call::Timer),
    ]
}

/// One controller with the values it has been shown so far.
struct Subject {
    cc: Box<dyn Controller>,
    rng: ChaCha8Rng,
    now: Instant,
    rtt: RttView,
    mds: u64,
}

impl Subject {
    fn new(factory: &dyn ControllerFactory) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let cc = factory.build(Instant::ZERO, &mut env(1_200, 12_000, 2_400, &mut rng));
        let rtt = RttView {
            latest: Duration::ZERO,
            smoothed: Duration::from_millis(333),
            var: Duration::ZERO,
            min: Duration::ZERO,
            min_at: Instant::ZERO,
            has_sample: false,
        };
        Self {
            cc,
            rng,
            now: Instant::ZERO,
            rtt,
            mds: 1_200,
        }
    }

    fn call(&mut self, at: Instant, call: &Call) {
        self.now = at;
        if let Call::DatagramSize(mds) = *call {
            self.mds = mds;
        }
        if let Call::Ack { rtt, sampled, .. } = *call {
            self.rtt.latest = Duration::from_nanos(rtt);
            self.rtt.smoothed = self.rtt.latest;
            self.rtt.has_sample |= sampled;
        }
        let (now, rtt) = (self.now, self.rtt);
        let mut env = env(self.mds, 10 * self.mds, 2 * self.mds, &mut self.rng);
        let cc = &mut self.cc;
        match *call {
            Call::Sent { bytes, idle } => cc.on_sent(
                &SentInfo {
                    now,
                    bytes: ByteCount::new(bytes),
                    inflight_before: ByteCount::ZERO,
                    is_probe: false,
                    is_mtu_probe: false,
                    ack_eliciting: true,
                    was_idle: idle.map(Duration::from_nanos),
                },
                &mut env,
            ),
            Call::Ack {
                bytes,
                prior,
                round,
                flags,
                sampled,
                ..
            } => {
                let mut batch = ack(now, rtt, bytes, prior, round, flags);
                batch.rate = sampled.then(|| sample(bytes, prior, rtt.latest, flags[0]));
                batch.round.start = sampled && flags[1];
                batch.ecn.ce = PacketCount::new(u64::from(flags[2]));
                cc.on_ack(&batch, &mut env);
            }
            Call::Loss {
                new,
                episode,
                inflight,
            } => {
                let packets = [lost(now, inflight); 3];
                cc.on_loss(&loss(now, rtt, new, episode, &packets), &mut env);
            }
            Call::Ce { new, episode } => cc.on_ce(&ce(now, rtt, new, episode), &mut env),
            Call::Spurious { episode } => cc.on_spurious(EpisodeId(episode), now, &mut env),
            Call::Persistent => cc.on_persistent_congestion(now, &mut env),
            Call::Pto => cc.on_pto(now, 1, &mut env),
            Call::Idle => cc.on_idle_restart(now, Duration::from_secs(1), &mut env),
            Call::DatagramSize(_) => cc.on_max_datagram_size_change(&mut env),
            Call::Discard(bytes) => cc.on_discard(ByteCount::new(bytes)),
            Call::Timer => cc.on_timer(now, &mut env),
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let cwnd = self.cc.cwnd();
        prop_assert!(
            cwnd >= ByteCount::new(2 * self.mds),
            "{cwnd} below the minimum"
        );
        prop_assert!(cwnd <= MAX_WINDOW, "{cwnd} above the maximum");
        let pacing = self.cc.pacing(&self.rtt);
        prop_assert!(pacing.gain > 0.0 && pacing.gain.is_finite());
        prop_assert!(pacing.rate.is_none_or(|rate| !rate.is_zero()));
        prop_assert!(pacing.quantum.is_none_or(|quantum| !quantum.is_zero()));
        let snapshot = self.cc.snapshot();
        prop_assert_eq!(snapshot.cwnd, cwnd);
        prop_assert!(
            snapshot.details.iter().all(|(_, value)| value.is_finite()),
            "{:?}",
            snapshot
        );
        Ok(())
    }
}

fn ack(
    now: Instant,
    rtt: RttView,
    bytes: u64,
    prior: u64,
    round: u64,
    flags: [bool; 3],
) -> AckBatch {
    let [
        app_limited,
        cwnd_limited_in_round,
        sent_after_recovery_start,
    ] = flags;
    AckBatch {
        now,
        acked_bytes: ByteCount::new(bytes),
        acked_packets: PacketCount::new(1),
        prior_inflight: ByteCount::new(prior),
        inflight: ByteCount::new(prior) - ByteCount::new(bytes),
        largest_acked_sent_at: now,
        rtt,
        round: Round {
            count: round,
            start: false,
        },
        rate: None,
        delivered: ByteCount::new(bytes),
        ecn: EcnCounts::default(),
        app_limited,
        cwnd_limited_in_round,
        newly_lost_bytes: ByteCount::ZERO,
        in_recovery: false,
        recovery_ended: false,
        sent_after_recovery_start,
    }
}

fn sample(bytes: u64, prior: u64, interval: Duration, is_app_limited: bool) -> RateSample {
    RateSample {
        delivered: ByteCount::new(bytes),
        interval,
        rate: Bandwidth::from_transfer(bytes, interval),
        is_app_limited,
        prior_delivered: ByteCount::new(prior),
        tx_in_flight: ByteCount::new(prior),
        lost_since_sent: ByteCount::new(bytes / 50),
        ce_since_sent: PacketCount::new(bytes % 3),
        send_elapsed: interval,
        ack_elapsed: interval,
    }
}

fn lost(now: Instant, tx_in_flight: u64) -> LostPacket {
    LostPacket {
        size: ByteCount::new(400),
        sent_at: now,
        tx_in_flight: ByteCount::new(tx_in_flight),
        lost_prior: ByteCount::new(tx_in_flight / 70),
        delivered_prior: ByteCount::ZERO,
        is_app_limited: false,
    }
}

fn loss(
    now: Instant,
    rtt: RttView,
    new_episode: bool,
    episode: u64,
    packets: &[LostPacket],
) -> LossBatch<'_> {
    LossBatch {
        now,
        lost_bytes: ByteCount::new(1_200),
        lost_packets: PacketCount::new(1),
        lost_ranges: 1,
        largest_lost_sent_at: now,
        new_episode,
        episode: EpisodeId(episode),
        packets,
        prior_inflight: ByteCount::ZERO,
        inflight: ByteCount::ZERO,
        round_lost: ByteCount::ZERO,
        round_sent: ByteCount::ZERO,
        cause: LossCause::Reorder,
        rtt,
        cwnd_limited_in_round: true,
    }
}

fn ce(now: Instant, rtt: RttView, new_episode: bool, episode: u64) -> EcnBatch {
    EcnBatch {
        now,
        counts: EcnCounts {
            ce: PacketCount::new(1),
            ..EcnCounts::default()
        },
        largest_acked_sent_at: now,
        new_episode,
        episode: EpisodeId(episode),
        inflight: ByteCount::ZERO,
        rtt,
        cwnd_limited_in_round: true,
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        40 => Just(Fate::Arrive),
        2 => Just(Fate::Lose),
        1 => (1..12_usize).prop_map(Fate::Behind),
        1 => Just(Fate::Mark),
    ]
}

fn supply() -> impl Strategy<Value = Supply> {
    prop_oneof![
        2 => Just(Supply::Unlimited),
        1 => (1..60_u64).prop_map(Supply::App),
        1 => (1..60_u64).prop_map(Supply::Blocked),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_window_stays_within_its_bounds_whatever_is_reported(
        calls in prop::collection::vec((0..u64::MAX / 64, call()), 1..120),
        backwards in any::<bool>(),
    ) {
        for factory in factories() {
            let mut subject = Subject::new(factory.as_ref());
            let mut now = Instant::ZERO;
            for (step, call) in &calls {
                let step = Duration::from_nanos(step >> (step % 40));
                now = if backwards && step.subsec_nanos().is_multiple_of(3) { now - step } else { now + step };
                subject.call(now, call);
                subject.check()?;
            }
        }
    }

    #[test]
    fn flows_keep_the_rules_of_growth(
        fates in prop::collection::vec(fate(), 60),
        plan in prop::collection::vec((supply(), 1..400_u64, 0..3_000_u64), 1..8),
    ) {
        for factory in [by_name("cubic").unwrap(), by_name("newreno").unwrap()] {
            let mut t = Transport::new(factory.as_ref());
            let fates = fates.clone();
            t.fate = Box::new(move |n| fates[n as usize % fates.len()]);
            for (supply, rtt, idle) in &plan {
                (t.supply, t.rtt) = (*supply, Duration::from_millis(*rtt));
                for _ in 0..60 {
                    let (before, episodes) = (t.cwnd(), t.events);
                    let in_slow_start = t.snapshot().state.ends_with("slow_start");
                    t.step();
                    let after = t.cwnd();
                    prop_assert!(after >= t.minimum_window);
                    // A rise of the delay ends slow start with the window that the round began with.
                    let least = if in_slow_start { before / 2 } else { before };
                    // An ACK of one packet adds that packet at most, unless it undoes a reduction.
                    if t.events > episodes && t.undone == 0 {
                        prop_assert!(after < before || after == t.minimum_window);
                    } else if t.undone == 0 {
                        prop_assert!(after >= least && after <= before + t.mds);
                    }
                    t.undone = 0;
                }
                t.idle(Duration::from_millis(*idle));
            }
        }
    }

    #[test]
    fn cubic_plus_never_grows_on_a_congestion_event(
        fates in prop::collection::vec(fate(), 60),
        plan in prop::collection::vec((supply(), 1..400_u64, 0..3_000_u64), 1..8),
    ) {
        let mut t = Transport::new(by_name("cubic-plus-paper").unwrap().as_ref());
        t.fate = Box::new(move |n| fates[n as usize % fates.len()]);
        for (supply, rtt, idle) in &plan {
            (t.supply, t.rtt) = (*supply, Duration::from_millis(*rtt));
            for _ in 0..60 {
                let (before, episodes) = (t.cwnd(), t.events);
                t.step();
                let after = t.cwnd();
                let most = if t.events > episodes { before } else { before + t.mds };
                prop_assert!(after >= t.minimum_window);
                prop_assert!(after <= most || t.undone > 0);
                t.undone = 0;
            }
            t.idle(Duration::from_millis(*idle));
        }
    }

    /// Without a threshold that anything can cross, nothing is left of Cubic+ but CUBIC.
    #[test]
    fn t13_cubic_plus_without_thresholds_is_cubic_to_the_bit(
        calls in prop::collection::vec((0..1_u64 << 32, call()), 1..200),
        hystart in any::<bool>(),
        prr in any::<bool>(),
    ) {
        let parameters = format!(
            "hystart={},prr={}",
            if hystart { "on" } else { "off" },
            if prr { "on" } else { "off" },
        );
        let [cubic, plus] = [
            format!("cubic:{parameters}"),
            format!("cubic-plus-paper:k_high=inf,l_ratio=0,k_low=0,t_low_min=0ms,{parameters}"),
        ];
        let mut cubic = Subject::new(by_name(&cubic).unwrap().as_ref());
        let mut plus = Subject::new(by_name(&plus).unwrap().as_ref());
        let mut now = Instant::ZERO;
        for (step, call) in &calls {
            now += Duration::from_nanos(*step);
            cubic.call(now, call);
            plus.call(now, call);
            let (one, mut other) = (cubic.cc.snapshot(), plus.cc.snapshot());
            other.details.truncate(one.details.len());
            prop_assert_eq!(one, other);
            prop_assert_eq!(cubic.cc.pacing(&cubic.rtt), plus.cc.pacing(&plus.rtt));
        }
    }

    /// The same for flows that a transport plays.
    #[test]
    fn t13_also_over_whole_flows(
        fates in prop::collection::vec(fate(), 60),
        plan in prop::collection::vec((supply(), 1..400_u64, 0..3_000_u64), 1..8),
    ) {
        let run = |specification: &str| {
            let mut t = Transport::new(by_name(specification).unwrap().as_ref());
            let fates = fates.clone();
            t.fate = Box::new(move |n| fates[n as usize % fates.len()]);
            let mut windows = Vec::new();
            for (supply, rtt, idle) in &plan {
                (t.supply, t.rtt) = (*supply, Duration::from_millis(*rtt));
                for _ in 0..100 {
                    t.step();
                    windows.push((t.cwnd(), t.snapshot().ssthresh));
                }
                t.idle(Duration::from_millis(*idle));
            }
            windows
        };
        let plus = run("cubic-plus-paper:k_high=inf,l_ratio=0,k_low=0,t_low_min=0ms");
        prop_assert_eq!(run("cubic"), plus);
    }

    #[test]
    fn the_same_calls_give_the_same_windows(
        calls in prop::collection::vec((0..1_u64 << 32, call()), 1..60),
    ) {
        for factory in factories() {
            let mut first = Subject::new(factory.as_ref());
            let mut now = Instant::ZERO;
            let (before, after) = calls.split_at(calls.len() / 2);
            for (step, call) in before {
                now += Duration::from_nanos(*step);
                first.call(now, call);
            }
            // A copy made half way goes on exactly as the original.
            let mut second = Subject { cc: first.cc.clone_box(), rng: first.rng.clone(), ..first };
            for (step, call) in after {
                now += Duration::from_nanos(*step);
                first.call(now, call);
                second.call(now, call);
                prop_assert_eq!(first.cc.snapshot(), second.cc.snapshot());
            }
        }
    }
}

#[test]
fn a_fixed_window_never_moves() {
    let window = ByteCount::new(50_000);
    let mut t = Transport::new(&FixedWindow::new(window));
    t.lose_every(7);
    t.run_rounds(20);
    t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
    assert_eq!(t.cwnd(), 50_000);
    assert!(t.gain() > 0.0);
}
