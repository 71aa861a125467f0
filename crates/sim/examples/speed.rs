//! How fast the simulator is: simulated seconds per second of processor time, for one 100 Mbit/s
//! bottleneck at a round-trip time of 30 ms, by cipher and number of flows.
//!
//! `cargo run --release -p swiftwater-sim --example speed [SECONDS] [CONTROLLER] [FLOWS] [CIPHER]`,
//! with FLOWS a single number or several with commas between, and CIPHER `null` or `tls`.

use std::error::Error;
use std::time::{Duration, Instant};

use swiftwater_sim::{Cipher, Dumbbell, FlowSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let controller = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    let flows = arguments.next().unwrap_or_else(|| "1,2,4,8,16".to_owned());
    let flows: Vec<usize> = flows.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let ciphers = match arguments.next().as_deref() {
        None => vec![Cipher::Null, Cipher::Tls],
        Some("null") => vec![Cipher::Null],
        Some("tls") => vec![Cipher::Tls],
        Some(other) => return Err(format!("no cipher {other:?}: null or tls").into()),
    };
    println!(
        "cipher  flows  x real time  ns/packet    packets  tasks/packet  goodput Mbit/s  queue kB  lost"
    );
    for cipher in ciphers {
        for &flows in &flows {
            run(cipher, flows, Duration::from_secs(seconds), &controller)?;
        }
    }
    Ok(())
}

/// CPU time used by the process; the time of day where it isn't available.
fn processor_time(start: Instant) -> Duration {
    // Fields 1 and 2 of the scheduler's line: nanoseconds on a processor, nanoseconds waiting.
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|line| line.split(' ').next()?.parse().ok())
        .map_or_else(|| start.elapsed(), Duration::from_nanos)
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
    let epoch = Instant::now();
    let started = processor_time(epoch);
    let mut run = dumbbell.build()?;
    run.advance_to(run.end());
    let spent = processor_time(epoch).saturating_sub(started).as_secs_f64();
    let report = run.report();
    let bottleneck = run.bottleneck();
    let packets = run.network().counters(bottleneck).enqueued.packets.get();
    let goodput: f64 = report.flows.iter().map(|flow| flow.goodput_bps).sum();
    assert!(report.flows.iter().all(|flow| flow.intact));
    println!(
        "{:<6}  {flows:>5}  {:>11.1}  {:>9.0}  {packets:>9}  {:>12.2}  {:>14.2}  {:>8.1}  {:>4}",
        format!("{cipher:?}"),
        report.simulated_s / spent,
        spent * 1e9 / packets as f64,
        report.tasks as f64 / packets as f64,
        goodput / 1e6,
        report.queue.mean_bytes / 1e3,
        report.queue.dropped_packets,
    );
    Ok(())
}
