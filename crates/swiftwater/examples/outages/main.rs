//! Time until each profile resumes after an outage, and the packets that it sends during one.
//!
//! `cargo run --release -p swiftwater --example outages`

#![allow(clippy::print_stdout, reason = "an example prints")]

mod measure;

use std::error::Error;
use std::time::Duration;

use swiftwater::Profile;
use swiftwater_sim::Direction;

use measure::{Lost, Outage};

const SEEDS: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "Median / worst time to resume in ms over {SEEDS} seeds, (median of the datagrams sent in the outage).\n"
    );
    println!("| outage | RTT | live | interactive | web | bulk |");
    println!("|---|---|---|---|---|---|");
    for length in [100, 300, 1_000, 3_000, 10_000, 20_000].map(Duration::from_millis) {
        for rtt in [20, 100, 300].map(Duration::from_millis) {
            print!("| {} s | {} ms |", length.as_secs_f64(), rtt.as_millis());
            for profile in [
                Profile::Live,
                Profile::Interactive,
                Profile::Web,
                Profile::Bulk,
            ] {
                print!(" {} |", cell(profile, rtt, length)?);
            }
            println!();
        }
    }
    Ok(())
}

/// One profile's figures.
fn cell(profile: Profile, rtt: Duration, length: Duration) -> Result<String, Box<dyn Error>> {
    let mut times = Vec::new();
    let mut datagrams = Vec::new();
    for seed in 1..=SEEDS {
        let outage = Outage {
            profile,
            direction: Direction::ToClient,
            lost: Lost::Both,
            rtt,
            length,
            seed,
        };
        let resumption = outage.run()?;
        times.push(resumption.time.map_or(u128::MAX, |time| time.as_millis()));
        datagrams.push(resumption.datagrams);
    }
    times.sort_unstable();
    datagrams.sort_unstable();
    let time = |at: usize| match times[at] {
        u128::MAX => "ended".to_owned(),
        millis => millis.to_string(),
    };
    Ok(format!(
        "{} / {} ({})",
        time(times.len() / 2),
        time(times.len() - 1),
        datagrams[datagrams.len() / 2]
    ))
}
