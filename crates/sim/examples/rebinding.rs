//! Downloads through a NAT that rebinds in the middle, over paths with 10, 20 and 30 % loss each way, without
//! keep-alive: how many complete, and how long they take after the rebinding.
//!
//!     cargo run --example rebinding [seeds]

#![allow(clippy::unwrap_used, reason = "an experiment may fail")]

#[allow(unreachable_pub, reason = "the tests share it")]
#[path = "../tests/support/rebinding.rs"]
mod rebinding;

fn main() {
    let seeds = std::env::args().nth(1);
    let seeds = seeds.map_or(1_000, |seeds| seeds.parse().unwrap());
    println!("loss | complete | median s | 99 % s | longest s | longest stall s");
    for percent in [10, 20, 30] {
        let run = |seed| rebinding::download(seed, f64::from(percent) / 100.0);
        let outcomes: Vec<_> = (0..seeds).map(run).collect();
        let complete = outcomes.iter().filter(|outcome| outcome.complete).count();
        let mut times: Vec<_> = outcomes.iter().map(|it| it.took.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let stalls = outcomes.iter().map(|it| it.longest_stall);
        let stall = stalls.max().unwrap();
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        println!(
            "{percent} % | {complete} of {seeds} | {:.2} | {:.2} | {:.2} | {:.2}",
            at(50),
            at(99),
            at(100),
            stall.as_secs_f64()
        );
    }
}
