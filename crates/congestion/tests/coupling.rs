//! Coupling of the windows of several paths: the formulas' numbers, what controllers make of them, and
//! what flows get at a shared bottleneck.

use std::time::Duration;

use crate::direct::{Direct, MDS};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use swiftwater_congestion::{CoupledAck, Coupling, CouplingRule, by_name};
use swiftwater_units::{ByteCount, Instant, PathId};

const START: Instant = Instant::from_millis(1_000);

/// A path with a window in packets and a round-trip time in milliseconds.
#[derive(Clone, Copy)]
struct Path(u64, u64);

fn ack(coupling: &mut Coupling, id: u32, path: Path, acked: u64, now: Instant) -> f64 {
    coupling.on_ack(&CoupledAck {
        path: PathId::new(id),
        now,
        acked: ByteCount::new(acked * MDS),
        window: ByteCount::new(path.0 * MDS),
        smoothed_rtt: Duration::from_millis(path.1),
    })
}

/// The scale of each path when all have reported an ACK of one packet.
fn scales(rule: CouplingRule, paths: &[Path]) -> Vec<f64> {
    let mut coupling = Coupling::new(rule);
    for (id, path) in (0..).zip(paths) {
        ack(&mut coupling, id, *path, 1, START);
    }
    (0..)
        .zip(paths)
        .map(|(id, path)| ack(&mut coupling, id, *path, 0, START))
        .collect()
}

fn assert_near(got: &[f64], wanted: &[f64]) {
    let close = |(got, wanted): (&f64, &f64)| (got - wanted).abs() < 1e-9;
    assert!(
        got.len() == wanted.len() && got.iter().zip(wanted).all(close),
        "{got:?} instead of {wanted:?}"
    );
}

#[test]
fn rules_have_names() {
    for name in CouplingRule::NAMES {
        assert_eq!(CouplingRule::by_name(name).unwrap().name(), name);
    }
    assert_eq!(CouplingRule::by_name(" OLIA ").unwrap(), CouplingRule::Olia);
    assert_eq!(CouplingRule::default(), CouplingRule::Uncoupled);
    let error = CouplingRule::by_name("balia").unwrap_err().to_string();
    assert!(error.contains("balia") && error.contains("olia"), "{error}");
}

#[test]
fn one_path_grows_as_without_coupling() {
    for rule in [
        CouplingRule::Uncoupled,
        CouplingRule::Lia,
        CouplingRule::Olia,
    ] {
        assert_near(&scales(rule, &[Path(40, 30)]), &[1.0]);
    }
    let two = [Path(10, 20), Path(10, 20)];
    assert_near(&scales(CouplingRule::Uncoupled, &two), &[1.0, 1.0]);
}

#[test]
fn lia_yields_the_increase_of_its_rfc() {
    let of = |paths: &[Path]| scales(CouplingRule::Lia, paths);
    // alpha = 20 * (10 / r^2) / (20 / r)^2 = 1/2; the increase alpha / 20 is a quarter of 1 / 10.
    assert_near(&of(&[Path(10, 20), Path(10, 20)]), &[0.25, 0.25]);
    assert_near(&of(&[Path(10, 20); 4]), &[1.0 / 16.0; 4]);
    // Rates of 10/10 and 20/40 packets per millisecond: alpha = 30 * 0.1 / 1.5^2 = 4/3, increases per ACK of
    // 4/90 packets, over 1/10 and 1/20.
    assert_near(&of(&[Path(10, 10), Path(20, 40)]), &[4.0 / 9.0, 8.0 / 9.0]);
    // alpha = 101 * (1 / 1^2) / (1 / 1 + 100 / 100)^2 = 25.25; 25.25 / 101 exceeds 1 / 100.
    assert_near(&of(&[Path(1, 1), Path(100, 100)]), &[0.25, 1.0]);
}

#[test]
fn olia_yields_the_increase_of_its_draft() {
    let of = |paths: &[Path]| scales(CouplingRule::Olia, paths);
    // The first term alone: both windows are the largest.
    assert_near(&of(&[Path(10, 20), Path(10, 20)]), &[0.25, 0.25]);
    // Rates 1 and 1/2; the near path is best and the far one has the largest window, so that 1/2 moves.
    let (near, far) = (4.0 / 9.0 + 0.5, 1.0 / 9.0 - 0.5);
    assert_near(&of(&[Path(10, 10), Path(20, 40)]), &[near, far]);
    // Of three equal paths two have the largest window: 1/3 moves to the third, from each of them half.
    let (big, small) = ((2.0_f64 / 5.0).powi(2), (1.0_f64 / 5.0).powi(2));
    let all = of(&[Path(20, 20), Path(10, 20), Path(20, 20)]);
    let sixth = 1.0 / 6.0;
    assert_near(&all, &[big - sixth, small + 2.0 * sixth, big - sixth]);
}

#[test]
fn olia_measures_the_distance_of_losses() {
    let mut coupling = Coupling::new(CouplingRule::Olia);
    let (lossy, clean) = (Path(20, 20), Path(10, 20));
    ack(&mut coupling, 0, lossy, 100, START);
    ack(&mut coupling, 1, clean, 100, START);
    // Both equally far: the clean path is among the best, and gains what the larger one yields.
    let share = (10.0_f64 / 30.0).powi(2);
    assert_near(&[ack(&mut coupling, 1, clean, 0, START)], &[share + 0.5]);
    // 120 packets between two losses, and 10 since: the larger counts.
    ack(&mut coupling, 0, lossy, 20, START);
    coupling.on_congestion_event(PathId::ZERO);
    ack(&mut coupling, 0, lossy, 10, START);
    assert_near(&[ack(&mut coupling, 1, clean, 0, START)], &[share]);
    // Another loss: 10 between the last two.
    coupling.on_congestion_event(PathId::ZERO);
    assert_near(&[ack(&mut coupling, 1, clean, 0, START)], &[share + 0.5]);
    assert_near(
        &[ack(&mut coupling, 0, lossy, 0, START)],
        &[4.0 / 9.0 - 0.5],
    );
}

#[test]
fn closed_and_quiet_paths_are_left_out() {
    for rule in [CouplingRule::Lia, CouplingRule::Olia] {
        let path = Path(10, 50);
        let mut coupling = Coupling::new(rule);
        ack(&mut coupling, 0, path, 1, START);
        assert_near(&[ack(&mut coupling, 1, path, 1, START)], &[0.25]);
        let later = START + Duration::from_millis(1_001);
        assert_near(&[ack(&mut coupling, 1, path, 1, later)], &[1.0]);
        assert_near(&[ack(&mut coupling, 0, path, 1, later)], &[0.25]);
        coupling.on_path_closed(PathId::new(1));
        assert_near(&[ack(&mut coupling, 0, path, 1, later)], &[1.0]);
        // Four round-trip times, if those are longer.
        let far = Path(10, 600);
        let mut coupling = Coupling::new(rule);
        ack(&mut coupling, 0, far, 1, START);
        let later = START + Duration::from_millis(2_400);
        assert_near(&[ack(&mut coupling, 1, far, 1, later)], &[0.25]);
    }
}

#[test]
fn the_order_of_the_paths_does_not_matter() {
    let paths = [Path(10, 10), Path(20, 40), Path(7, 25)];
    for rule in [CouplingRule::Lia, CouplingRule::Olia] {
        let mut back = scales(rule, &[paths[2], paths[1], paths[0]]);
        back.reverse();
        assert_near(&scales(rule, &paths), &back);
    }
}

/// A flow of `cc` in congestion avoidance with a window of 100 packets or so.
fn avoidance(cc: &str) -> Direct {
    let mut flow = Direct::new(&*by_name(cc).expect("a name"), 150);
    flow.set_rtt(50.0);
    flow.lose(true);
    flow
}

/// The growth of `flow` in `rounds` round trips, packets.
fn growth(flow: &mut Direct, rounds: u64) -> f64 {
    let before = flow.cwnd();
    for _ in 0..rounds {
        flow.wait(50.0);
        flow.ack_of_new_round();
        for _ in 1..flow.cwnd() / MDS {
            flow.ack();
        }
    }
    (flow.cwnd() as f64 - before as f64) / MDS as f64
}

#[test]
fn reno_grows_by_the_scale() {
    let grown = |scale| {
        let mut flow = avoidance("newreno");
        flow.cc.set_growth_scale(scale);
        growth(&mut flow, 20)
    };
    assert!((grown(1.0) - 20.0).abs() < 0.5, "{}", grown(1.0));
    assert!((grown(0.25) - 5.0).abs() < 0.2, "{}", grown(0.25));
    assert!(grown(0.0).abs() < 1e-9);
    let shrunk = grown(-0.5);
    assert!((-11.0..-9.0).contains(&shrunk), "{shrunk}");
    // Not a number is no scale.
    assert!((grown(f64::NAN) - 20.0).abs() < 0.5);
}

#[test]
fn who_grows_by_acks_can_be_coupled() {
    let of = |cc: &str| {
        Direct::new(&*by_name(cc).expect("a name"), 10)
            .cc
            .can_be_coupled()
    };
    for cc in [
        "newreno",
        "cubic",
        "cubic-plus",
        "prague",
        "follow-external",
    ] {
        assert!(of(cc), "{cc}");
    }
    for cc in ["bbr1", "bbr3", "copa"] {
        assert!(!of(cc), "{cc}");
    }
}

#[test]
fn a_window_that_shrinks_stays_in_congestion_avoidance() {
    for cc in ["newreno", "cubic", "cubic-plus", "prague"] {
        let mut flow = avoidance(cc);
        flow.cc.set_growth_scale(-1.0);
        growth(&mut flow, 500);
        assert_eq!(flow.state(), "congestion_avoidance", "{cc}");
        assert!(flow.cwnd() >= 2 * MDS, "{cc} {}", flow.cwnd());
        flow.cc.set_growth_scale(1.0);
        assert!(growth(&mut flow, 5) < 20.0, "{cc}");
    }
}

#[test]
fn cubic_grows_by_the_scale_in_both_regions() {
    let grown = |cc: &str, scale| {
        let mut flow = avoidance(cc);
        flow.cc.set_growth_scale(scale);
        growth(&mut flow, 20)
    };
    // One second after the reduction from 150 to 105 packets, the cubic function of 1/16 of the constant is at
    // 150 - 0.025 * (12.16 - 1)^3 = 115.2, and the Reno estimate a quarter of 20 * 0.53 above 105.
    let quarter = grown("cubic:reno_friendly=off", 0.25);
    assert!((quarter - 10.2).abs() < 1.5, "{quarter}");
    let whole = grown("cubic:reno_friendly=off", 1.0);
    assert!(whole > 1.8 * quarter, "{whole} {quarter}");
    for cc in ["cubic", "cubic-plus", "follow-external"] {
        assert!(grown(cc, 0.25) < 0.75 * grown(cc, 1.0), "{cc}");
    }
    // A change in the middle neither moves the window nor the plateau.
    let mut flow = avoidance("cubic");
    growth(&mut flow, 10);
    flow.cc.set_growth_scale(0.1);
    let step = growth(&mut flow, 1);
    assert!((0.0..2.0).contains(&step), "{step}");
}

/// Controllers that share one bottleneck, in rounds of one round-trip time: once the windows exceed what
/// the bottleneck holds, each packet is lost with the probability that brings them back.
struct Bottleneck {
    flows: Vec<Direct>,
    coupling: Coupling,
    coupled: usize,
    sums: Vec<f64>,
    rng: ChaCha8Rng,
}

impl Bottleneck {
    /// The first `coupled` of `all` flows of `cc` belong to one connection with this rule.
    fn new(cc: &str, rule: CouplingRule, coupled: usize, all: usize) -> Self {
        Self {
            flows: (0..all).map(|_| avoidance(cc)).collect(),
            coupling: Coupling::new(rule),
            coupled,
            sums: vec![0.0; all],
            rng: ChaCha8Rng::seed_from_u64(3),
        }
    }

    fn round(&mut self, capacity: f64) {
        let total: u64 = self.flows.iter().map(Direct::cwnd).sum();
        let packets = total as f64 / MDS as f64;
        let excess: f64 = ((packets - capacity) / packets).max(0.0);
        for (at, flow) in self.flows.iter_mut().enumerate() {
            flow.wait(50.0);
            let window = flow.cwnd();
            self.sums[at] += window as f64;
            let survives = (1.0 - excess).powf(window as f64 / MDS as f64);
            let chance = f64::from(self.rng.next_u32()) / f64::from(u32::MAX);
            if chance > survives {
                flow.lose(true);
                self.coupling.on_congestion_event(PathId::new(at as u32));
                continue;
            }
            if at < self.coupled {
                let scale = self.coupling.on_ack(&CoupledAck {
                    path: PathId::new(at as u32),
                    now: flow.now,
                    acked: ByteCount::new(window),
                    window: ByteCount::new(window),
                    smoothed_rtt: Duration::from_millis(50),
                });
                flow.cc.set_growth_scale(scale);
            }
            flow.ack_of_new_round();
            for _ in 1..window / MDS {
                flow.ack();
            }
        }
    }

    /// Jain's index of what the connection and each other flow got.
    fn fairness(mut self, capacity: f64, rounds: u32) -> f64 {
        for _ in 0..rounds {
            self.round(capacity);
        }
        let (ours, others) = self.sums.split_at(self.coupled);
        let mut got = vec![ours.iter().sum::<f64>()];
        got.extend(others);
        let (sum, squares): (f64, f64) = (got.iter().sum(), got.iter().map(|x| x * x).sum());
        sum * sum / (got.len() as f64 * squares)
    }
}

#[test]
fn coupled_paths_share_a_bottleneck_like_one_flow() {
    for cc in ["newreno", "cubic"] {
        let of = |rule| Bottleneck::new(cc, rule, 2, 3).fairness(200.0, 8_000);
        let (uncoupled, lia, olia) = (
            of(CouplingRule::Uncoupled),
            of(CouplingRule::Lia),
            of(CouplingRule::Olia),
        );
        // Twice as much as the other flow is an index of 9/10.
        assert!(
            (0.85..0.93).contains(&uncoupled),
            "{cc} uncoupled: {uncoupled}"
        );
        assert!(lia > 0.95, "{cc} LIA: {lia}");
        assert!(olia > 0.95, "{cc} OLIA: {olia}");
    }
}
