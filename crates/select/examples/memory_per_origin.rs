//! How much memory a selector takes per origin: fills one with origins that have full windows, and compares
//! the process's resident memory.
//!
//! `cargo run --release -p swiftwater-select --example memory_per_origin [STRATEGY]`
//!
//! One strategy a run: freed memory would be used again.

use std::time::Duration;

use swiftwater_select::{
    Arm, Config, Measured, Models, NetworkId, OriginHash, Outcome, RequestDescription, Selector,
};
use swiftwater_units::Instant;

const NETWORKS: u64 = 40;
const ORIGINS: u64 = 250;

/// Resident bytes of this process, where /proc tells them.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn fill(selector: &mut Selector) {
    let mut now = Instant::ZERO;
    for network in 0..NETWORKS {
        for number in 0..ORIGINS {
            let origin = OriginHash(number);
            for round in 0..110_u64 {
                now += Duration::from_millis(10);
                let request = RequestDescription::new(NetworkId(network), origin);
                let decision = selector.decide(now, &request);
                // Both arms get full windows.
                let arm = if round % 2 == 0 { Arm::h2() } else { Arm::h3() };
                let measured = Measured {
                    first_byte: Duration::from_millis(20),
                    completion: Duration::from_millis(40 + round % 5),
                    bytes: 20_000,
                    ..Measured::default()
                };
                let outcome = Outcome::new(arm, Ok(measured));
                selector.on_outcome(now, decision.id, &outcome);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "wise".to_owned());
    let config = Config::new(vec![Arm::h2(), Arm::h3()], name.parse()?);
    let mut selector = Selector::new(config, Models::none(), 1)?;
    let before = resident();
    fill(&mut selector);
    let after = resident();
    let (networks, origins, _) = selector.remembered();
    match before.zip(after) {
        Some((before, after)) => {
            let each = after.saturating_sub(before) / origins as u64;
            println!("{name}: {origins} origins on {networks} networks, {each} bytes each");
        }
        None => println!("{name}: this system does not tell the process's memory"),
    }
    Ok(())
}
