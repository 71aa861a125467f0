//! Hairpin's decision problem compared with brute force, and properties of its solutions.

#![allow(clippy::cast_possible_wrap, reason = "a few dozen packets")]

use proptest::prelude::*;
use swiftwater_media::protection::hairpin::{HairpinTable, candidates, solve};

/// The best value of a state by trying every action and every pattern of losses.
fn brute_force(loss: f64, price: f64, rounds: usize, missing: usize) -> f64 {
    if missing == 0 {
        return 0.0;
    }
    if rounds == 0 {
        return -1.0;
    }
    let mut best = f64::NEG_INFINITY;
    for repairs in candidates(missing) {
        let all = missing + repairs;
        let mut value = -price * repairs as f64;
        // Bit i set: packet i is lost; the first `missing` are data.
        for pattern in 0_u32..1 << all {
            let lost = pattern.count_ones() as usize;
            let data_lost = (pattern & ((1 << missing) - 1)).count_ones() as usize;
            let left = if lost <= repairs { 0 } else { data_lost };
            let chance = loss.powi(lost as i32) * (1.0 - loss).powi((all - lost) as i32);
            value += chance * brute_force(loss, price, rounds - 1, left);
        }
        best = best.max(value);
    }
    best
}

#[test]
fn values_equal_those_of_trying_everything() {
    for (loss, lambda) in [(0.05, 1e-1), (0.2, 1e-4), (0.5, 1e-1), (0.5, 1e-7)] {
        let size = 3;
        let solution = solve(loss, size, lambda, 3, 2);
        for rounds in 1..=3 {
            for missing in 1..=2 {
                let value = solution.values[rounds - 1][missing - 1];
                let tried = brute_force(loss, lambda / size as f64, rounds, missing);
                assert!(
                    (value - tried).abs() < 1e-12,
                    "loss {loss}, lambda {lambda}, {rounds} rounds, {missing} missing: {value} {tried}"
                );
            }
        }
    }
}

#[test]
fn larger_states_of_one_round_equal_brute_force_too() {
    let solution = solve(0.3, 5, 1e-2, 1, 3);
    for missing in 1..=3 {
        let tried = brute_force(0.3, 1e-2 / 5.0, 1, missing);
        assert!((solution.values[0][missing - 1] - tried).abs() < 1e-12);
    }
}

#[test]
fn nothing_is_added_where_nothing_is_lost() {
    let table = HairpinTable::new(1e-7).unwrap();
    for rounds in 1..=15 {
        assert_eq!(table.repairs(0.0, 6, rounds, 6), 0);
        assert_eq!(table.repairs(0.004, 6, rounds, 6), 0);
    }
}

#[test]
fn with_certain_failure_cost_decides() {
    // One round, a weight so large that no repair packet is worth it.
    let solution = solve(0.1, 5, 100.0, 1, 5);
    assert!(solution.repairs[0].iter().all(|&repairs| repairs == 0));
}

#[test]
fn invalid_weights_are_refused() {
    for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(HairpinTable::new(lambda).is_err());
    }
}

#[test]
fn candidates_are_the_published_ones() {
    assert_eq!(candidates(1), [0, 1, 2, 3, 4, 5]);
    assert_eq!(candidates(4), [0, 1, 2, 3, 4, 8, 12, 16, 20]);
    assert_eq!(candidates(55).last(), Some(&275));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cheaper_repair_is_used_more_and_helps_more(
        percent in 1_u32..50,
        size in 1_usize..56,
        rounds in 1_usize..16,
        share in 0.0_f64..1.0,
    ) {
        let loss = f64::from(percent) / 100.0;
        let missing = ((size as f64 * share) as usize).max(1);
        let by_weight = |lambda| solve(loss, size, lambda, rounds, missing);
        let (low, standard, high) = (by_weight(1e-1), by_weight(1e-4), by_weight(1e-7));
        let last = |solution: &swiftwater_media::protection::hairpin::Solution| {
            solution.values[rounds - 1][missing - 1]
        };
        prop_assert!(last(&low) <= last(&standard) && last(&standard) <= last(&high));
        // In the last round nothing but the weight differs.
        prop_assert!(low.repairs[0] <= standard.repairs[0]);
        prop_assert!(standard.repairs[0] <= high.repairs[0]);
    }

    #[test]
    fn more_rounds_never_hurt(percent in 1_u32..50, size in 1_usize..20) {
        let solution = solve(f64::from(percent) / 100.0, size, 1e-4, 6, size);
        for pair in solution.values.windows(2) {
            for (fewer, more) in pair[0].iter().zip(&pair[1]) {
                prop_assert!(more >= fewer);
            }
        }
    }

    #[test]
    fn every_question_has_an_answer(
        loss in any::<f64>(),
        size in 0_usize..5000,
        rounds in 0_usize..100,
        missing in 0_usize..5000,
    ) {
        let table = HairpinTable::new(1e-4).unwrap();
        let repairs = table.repairs(loss, size, rounds, missing);
        prop_assert!(repairs <= 5 * missing);
    }
}
