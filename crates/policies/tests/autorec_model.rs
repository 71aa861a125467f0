//! The model of AutoRec: its formulas, the levels that follow, and the corner cases.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_policies::autorec::{LevelChoice, LossModel, Tolerances};

/// The paper's testbed has 5 % loss; its results at a round-trip time of 60 ms fit this.
const T_UNIT: Duration = Duration::from_millis(95);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn testbed() -> LossModel {
    LossModel::new(0.05, T_UNIT)
}

fn tolerances(alpha_ms: u64, beta: f64, gamma: f64) -> Tolerances {
    Tolerances {
        alpha: millis(alpha_ms),
        beta,
        gamma,
    }
}

/// The level on a path, with at most 10.
fn level(model: LossModel, alpha_ms: u64, beta: f64, gamma: f64) -> u32 {
    model.choose(&tolerances(alpha_ms, beta, gamma), 10).level
}

#[track_caller]
fn close(here: f64, expected: f64) {
    assert!((here - expected).abs() < 5.1e-5, "{here}, not {expected}");
}

#[test]
fn latency_cost_and_goodput_at_five_percent_are_the_tabulated_ones() {
    let latency = [
        1.0526, 0.5526, 0.3526, 0.2633, 0.2105, 0.1754, 0.1504, 0.1316, 0.1170, 0.1053, 0.0957,
    ];
    let goodput = [
        0.0, 0.0432, 0.0847, 0.1228, 0.1579, 0.1903, 0.2203, 0.2481, 0.2740, 0.2982, 0.3209,
    ];
    let model = testbed();
    for level in 0..=10 {
        close(model.latency_ratio(level), latency[level as usize]);
        close(model.redundancy_cost(level), f64::from(level) * 0.05);
        close(model.goodput_reduction(level), goodput[level as usize]);
        close(
            model.deterioration_rate(level),
            0.05_f64.powf(f64::from(level) + 1.0),
        );
    }
    let base = model.recovery_latency(3).as_secs_f64();
    close(base, latency[3] * T_UNIT.as_secs_f64());
}

/// Plays the model behind the formulas event by event: latency in detection times of data that need
/// two retransmissions, transmissions per data range, and replicas per data range.
fn play(rate: f64, level: u32, data: u32) -> (f64, f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut lost = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let draw = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64;
        draw < rate
    };
    let spacing = 1.0 / f64::from(level + 1);
    let (mut waited, mut repeated, mut sent, mut replicas) = (0.0, 0_u32, 0_u32, 0_u32);
    for _ in 0..data {
        sent += 1;
        if !lost() {
            continue;
        }
        sent += 1 + level;
        replicas += level;
        let mut arrived_at = (!lost()).then_some(0.0);
        for nth in 1..=level {
            let through = !lost();
            if through && arrived_at.is_none() {
                arrived_at = Some(f64::from(nth) * spacing);
            }
        }
        let mut at = f64::from(level) * spacing;
        while arrived_at.is_none() {
            at += 1.0;
            sent += 1;
            arrived_at = (!lost()).then_some(at);
        }
        if let Some(latency) = arrived_at.filter(|&latency| latency > 0.0) {
            waited += latency;
            repeated += 1;
        }
    }
    let of = |sum: f64, count: u32| sum / f64::from(count);
    (
        of(waited, repeated),
        of(f64::from(sent), data),
        of(f64::from(replicas), data),
    )
}

#[test]
fn the_formulas_are_what_the_model_does() {
    for rate in [0.05, 0.2, 0.5] {
        let (_, plain, _) = play(rate, 0, 200_000);
        for level in [0, 1, 3, 10] {
            let model = LossModel::new(rate, millis(1_000));
            let (latency, sent, replicas) = play(rate, level, 200_000);
            let near = |here: f64, expected: f64| (here - expected).abs() < 0.03 * expected + 0.005;
            let case = format!("R {rate}, K {level}");
            assert!(near(latency, model.latency_ratio(level)), "F at {case}");
            assert!(near(replicas, model.redundancy_cost(level)), "G at {case}");
            let reduction = 1.0 - plain / sent;
            assert!(
                near(reduction, model.goodput_reduction(level)),
                "H at {case}"
            );
        }
    }
}

#[test]
fn levels_follow_the_latency_tolerance() {
    let expected = [
        (0, 10),
        (10, 9),
        (20, 5),
        (30, 3),
        (40, 2),
        (50, 2),
        (60, 1),
        (80, 1),
        (100, 0),
    ];
    for (alpha, wanted) in expected {
        assert_eq!(
            level(testbed(), alpha, 1.0, 1.0),
            wanted,
            "alpha {alpha} ms"
        );
    }
}

#[test]
fn levels_follow_the_cost_tolerance() {
    for percent in 0..=60_u32 {
        let beta = f64::from(percent) / 100.0;
        let wanted = (percent / 5).min(10);
        assert_eq!(level(testbed(), 0, beta, 1.0), wanted, "beta {beta}");
    }
}

#[test]
fn levels_follow_the_goodput_tolerance() {
    for (percent, wanted) in [
        (5, 1),
        (10, 2),
        (15, 3),
        (20, 5),
        (25, 7),
        (30, 9),
        (35, 10),
    ] {
        let gamma = f64::from(percent) / 100.0;
        assert_eq!(level(testbed(), 0, 1.0, gamma), wanted, "gamma {gamma}");
    }
}

#[test]
fn the_testbed_and_the_deployment_get_their_levels() {
    // Base parameters of the testbed, then of real-time communication, then a live stream.
    assert_eq!(level(testbed(), 30, 0.3, 0.2), 3);
    assert_eq!(level(testbed(), 0, 0.2, 0.2), 4);
    assert_eq!(level(testbed(), 0, 0.05, 0.05), 1);
    assert_eq!(level(LossModel::new(0.10, T_UNIT), 0, 0.05, 0.05), 0);
    assert_eq!(level(testbed(), 0, 0.5, 0.5), 10);
    assert_eq!(level(LossModel::new(0.04, millis(150)), 200, 0.5, 0.5), 0);
}

#[test]
fn each_bound_is_reported_separately() {
    let choice = testbed().choose(&tolerances(30, 0.3, 0.2), 10);
    let wanted = LevelChoice {
        for_latency: 3,
        for_cost: 6,
        for_goodput: 5,
        level: 3,
    };
    assert_eq!(choice, wanted);
}

#[test]
fn without_loss_the_level_is_zero() {
    let model = LossModel::new(0.0, T_UNIT);
    assert_eq!(level(model, 0, 1.0, 1.0), 0);
    close(model.latency_ratio(4), 0.2);
    close(model.redundancy_cost(4), 0.0);
    close(model.goodput_reduction(4), 0.0);
}

#[test]
fn at_tiny_loss_latency_alone_decides() {
    let model = LossModel::new(1e-6, T_UNIT);
    assert_eq!(level(model, 0, 0.3, 0.2), 10);
    assert_eq!(level(model, 30, 0.3, 0.2), 3);
}

#[test]
fn at_extreme_loss_cost_alone_decides() {
    let model = LossModel::new(0.98, T_UNIT);
    assert!(model.goodput_reduction(10) < 0.2);
    assert_eq!(level(model, 30, 0.3, 0.2), 0);
    assert_eq!(level(model, 0, 3.0, 0.2), 3);
}

#[test]
fn total_loss_counts_as_ninety_nine_percent() {
    let model = LossModel::new(1.0, T_UNIT);
    close(model.loss_rate(), 0.99);
    assert!(model.recovery_latency(0) < T_UNIT * 101);
    close(LossModel::new(f64::NAN, T_UNIT).loss_rate(), 0.0);
    close(LossModel::new(-1.0, T_UNIT).loss_rate(), 0.0);
}

#[test]
fn an_infeasible_latency_leaves_the_choice_to_the_others() {
    let choice = testbed().choose(&tolerances(0, 0.3, 0.2), 10);
    assert_eq!((choice.for_latency, choice.level), (10, 5));
}

#[test]
fn loss_above_the_cost_tolerance_switches_off() {
    assert_eq!(level(LossModel::new(0.31, T_UNIT), 0, 0.3, 1.0), 0);
    assert_eq!(level(LossModel::new(0.30, T_UNIT), 0, 0.3, 1.0), 1);
}

#[test]
fn bounds_that_binary_fractions_miss_are_kept() {
    // 6 x 0.05 and 3 x 0.1 are a little more than 0.3 in binary.
    assert_eq!(level(LossModel::new(0.05, T_UNIT), 0, 0.3, 1.0), 6);
    assert_eq!(level(LossModel::new(0.1, T_UNIT), 0, 0.3, 1.0), 3);
}

#[test]
fn the_highest_level_bounds_all() {
    let choice = testbed().choose(&tolerances(0, 1.0, 1.0), 4);
    assert_eq!(choice.level, 4);
    assert_eq!(testbed().choose(&tolerances(0, 1.0, 1.0), 0).level, 0);
}

proptest! {
    #[test]
    fn latency_falls_and_costs_rise_with_the_level(rate in 1e-4_f64..0.99, k in 0_u32..20) {
        let model = LossModel::new(rate, T_UNIT);
        prop_assert!(model.latency_ratio(k + 1) < model.latency_ratio(k));
        prop_assert!(model.redundancy_cost(k + 1) > model.redundancy_cost(k));
        // Beyond some level the rise is lost in rounding.
        prop_assert!(model.goodput_reduction(k + 1) >= model.goodput_reduction(k) - 1e-12);
        prop_assert!(model.deterioration_rate(k + 1) < model.deterioration_rate(k));
        prop_assert!((0.0..1.0).contains(&model.goodput_reduction(k)));
    }

    #[test]
    fn the_choice_keeps_the_strict_bounds_and_is_no_higher_than_it_must(
        rate in 0.0_f64..1.0,
        detection_ms in 1_u64..2_000,
        alpha in 0_u64..500,
        beta in 0.0_f64..1.0,
        gamma in 0.0_f64..1.0,
        max in 0_u32..12,
    ) {
        let model = LossModel::new(rate, millis(detection_ms));
        let wanted = tolerances(alpha, beta, gamma);
        let choice = model.choose(&wanted, max);
        let k = choice.level;
        prop_assert!(k <= max);
        prop_assert!(model.redundancy_cost(k) <= beta + 1e-9);
        prop_assert!(model.goodput_reduction(k) <= gamma + 1e-9);
        if k > 0 {
            prop_assert!(model.recovery_latency(k - 1) > wanted.alpha, "one less would do");
        }
        let one_more = k < max
            && model.redundancy_cost(k + 1) <= beta
            && model.goodput_reduction(k + 1) <= gamma;
        if one_more {
            let slack = Duration::from_nanos(2);
            prop_assert!(rate == 0.0 || model.recovery_latency(k) <= wanted.alpha + slack);
        }
    }
}
