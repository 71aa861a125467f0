//! Random operations on a client and a server over a random network. Invariants: bytes arrive correct
//! and in order, no endpoint loops or stalls, and neither closes the connection with an error.
//!
//! Cases are the same in every run unless `SWIFTWATER_RANDOM_OPS_SEED` (a number) is set;
//! `SWIFTWATER_RANDOM_OPS_CASES` is their number. A failure is shrunk and printed; add it to
//! `regressions.rs` under a name that describes the fault.

mod check;
mod draw;
mod faults;
mod finale;
mod model;
mod plan;
mod regressions;
mod run;
mod setup;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use plan::Plan;

/// Cases of a default run.
const CASES: u32 = 10_000;

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
    )
}

/// Runs `test` on `cases` plans, and shrinks the first that fails.
fn explore(cases: u32, stream: u8, test: impl Fn(&Plan)) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 3_000,
        max_shrink_time: 120_000,
        ..Config::default()
    };
    let mut seed = [stream; 32];
    let chosen = variable("SWIFTWATER_RANDOM_OPS_SEED").unwrap_or(1);
    seed[..8].copy_from_slice(&chosen.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&draw::plan(), |plan| {
        test(&plan);
        Ok::<(), TestCaseError>(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn cases() -> u32 {
    let chosen = variable("SWIFTWATER_RANDOM_OPS_CASES");
    chosen.map_or(CASES, |cases| cases.try_into().expect("fewer cases"))
}

#[test]
fn nothing_breaks_whatever_happens() {
    explore(cases(), 0, |plan| {
        run::run(plan);
    });
}

#[test]
fn the_same_plan_runs_the_same_way() {
    explore(cases() / 10, 1, |plan| {
        assert_eq!(run::run(plan), run::run(plan));
    });
}
