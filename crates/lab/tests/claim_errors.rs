//! How often verdicts over many noisy points are wrong, on random data.

use crate::texts::{dumbbell, load};
use swiftwater_lab::claim::{Outcome, evaluate};
use swiftwater_lab::scenario::Experiment;
use swiftwater_lab::store::{Row, Table};

const POINTS: usize = 20;
const TRIALS: u32 = 1000;

/// Twenty points with five repeats each, and one claim over all of them.
fn experiment(claim: &str) -> Experiment {
    let labels: Vec<String> = (0..POINTS)
        .map(|point| format!("\"{}p\"", point + 10))
        .collect();
    let axes = format!("repeats = 5\n[sweep]\nbuffer = [{}]\n", labels.join(", "));
    let test =
        "[[claim]]\nid = \"A\"\nsays = \"s\"\nmeasure = \"goodput_mbps\"\neach = [\"buffer\"]\n";
    load(&(dumbbell(&axes, "buffer = \"${buffer}\"") + test + claim))
}

/// Normal deviates, by SplitMix64 and the method of Box and Muller.
struct Normal(u64);

impl Normal {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The shares of trials that pass and fail, if the points have these means and deviate by 1.
fn shares(claim: &str, mean: impl Fn(usize) -> f64) -> (f64, f64) {
    let experiment = experiment(claim);
    let mut noise = Normal(42);
    let (mut passed, mut failed) = (0.0, 0.0);
    for _ in 0..TRIALS {
        let rows = experiment.runs().map(|run| Row {
            run,
            labels: experiment.cases[run.case].labels.clone(),
            values: vec![Some(mean(run.case) + noise.next())],
        });
        let table = Table {
            axes: vec!["buffer".to_owned()],
            measures: vec!["goodput_mbps".to_owned()],
            rows: rows.collect(),
        };
        match evaluate(&experiment, &table)[0].outcome {
            Outcome::Pass => passed += 1.0,
            Outcome::Fail => failed += 1.0,
            Outcome::Open => {}
            other => panic!("{other:?}"),
        }
    }
    (passed / f64::from(TRIALS), failed / f64::from(TRIALS))
}

#[track_caller]
fn between(share: f64, low: f64, high: f64) {
    assert!(
        (low..=high).contains(&share),
        "{share} is not from {low} to {high}"
    );
}

#[test]
fn the_error_of_all_points_together_is_five_per_cent() {
    // Any interval that does not contain the mean is outside of this band.
    let (_, failed) = shares("take = \"all\"\npass = { min = 0, max = 0 }\n", |_| 0.0);
    between(failed, 0.03, 0.07);
}

#[test]
fn twenty_points_at_the_bound_seldom_fail() {
    // On this side half of the error.
    let (_, failed) = shares("take = \"all\"\npass = { max = 0 }\n", |_| 0.0);
    between(failed, 0.01, 0.04);
    let (_, failed) = shares("take = \"max\"\npass = { max = 0 }\n", |_| 0.0);
    between(failed, 0.01, 0.04);
    let (_, failed) = shares("take = \"min\"\npass = { min = 0 }\n", |_| 0.0);
    between(failed, 0.01, 0.04);
}

#[test]
fn the_largest_of_equal_points_seldom_passes_for_more() {
    let (passed, _) = shares("take = \"max\"\npass = { min = 0.000001 }\n", |_| 0.0);
    between(passed, 0.01, 0.04);
    let (passed, _) = shares("take = \"min\"\npass = { max = -0.000001 }\n", |_| 0.0);
    between(passed, 0.01, 0.04);
}

#[test]
fn one_point_that_stands_out_is_judged_by_its_own_interval() {
    // No correction for the others, which are far away: it would be wrong in one of 800 trials.
    let out = |point: usize| if point == 7 { 0.0 } else { -100.0 };
    let (passed, _) = shares("take = \"max\"\npass = { max = -0.000001 }\n", out);
    between(passed, 0.01, 0.04);
}
