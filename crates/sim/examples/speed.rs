//! How fast the simulator is: simulated seconds per second of real time, for one 100 Mbit/s
//! bottleneck at a round-trip time of 30 ms, by cipher and number of flows.
//!
//! `cargo run --release -p swiftwater-sim --example speed [SECONDS] [CONTROLLER]`

use std::error::Error;
use std::time::{Duration, Instant};

use swiftwater_sim::{Cipher, Dumbbell, FlowSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let controller = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    println!("cipher  flows  x real time  packets/s   tasks/s  goodput Mbit/s  queue kB  lost");
    for cipher in [Cipher::Null, Cipher::Tls] {
        for flows in [1, 2, 4, 8, 16] {
            run(cipher, flows, Duration::from_secs(seconds), &controller)?;
        }
    }
    Ok(())
}

fn run(
    cipher: Cipher,
    flows: usize,
    duration: Duration,
    controller: &str,
) -> Result<(), Box<dyn Error>> {
    let dumbbell = Dumbbell {
        flows: vec![FlowSpec::new(controller)?; flows],
        duration,
        cipher,
        ..Dumbbell::default()
    };
    let started = Instant::now();
    let mut run = dumbbell.build()?;
    run.advance_to(run.end());
    let wall = started.elapsed().as_secs_f64();
    let report = run.report();
    let bottleneck = run.bottleneck();
    let packets = run.network().counters(bottleneck).enqueued.packets.get();
    let goodput: f64 = report.flows.iter().map(|flow| flow.goodput_bps).sum();
    assert!(report.flows.iter().all(|flow| flow.intact));
    println!(
        "{:<6}  {flows:>5}  {:>11.1}  {:>9.0}  {:>8.0}  {:>14.2}  {:>8.1}  {:>4}",
        format!("{cipher:?}"),
        report.simulated_s / wall,
        packets as f64 / wall,
        report.tasks as f64 / wall,
        goodput / 1e6,
        report.queue.mean_bytes / 1e3,
        report.queue.dropped_packets,
    );
    Ok(())
}
