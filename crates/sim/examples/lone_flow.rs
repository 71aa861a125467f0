//! A single flow on a link: goodput and queue over the buffer, and goodput under random loss
//! against the response functions of RFC 9438, section 5.2.
//!
//! ```sh
//! cargo run --release -p swiftwater-sim --example lone_flow
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::time::Duration;

use swiftwater_link::{Buffer, LossModel};
use swiftwater_sim::{Dumbbell, FlowSpec, SimError};

/// RTT of every run.
const RTT: Duration = Duration::from_micros(30_600);
/// Rate of the link, bit/s.
const RATE: f64 = 100e6;
/// Application bytes in a full packet of 1,472 bytes of UDP payload.
const SEGMENT: f64 = 1_440.0;
/// Runs whose mean is reported.
const SEEDS: u64 = 5;

fn lone(controller: &str, seed: u64) -> Result<Dumbbell, SimError> {
    Ok(Dumbbell {
        flows: vec![FlowSpec::new(controller)?],
        rtt: RTT,
        duration: Duration::from_secs(40),
        seed,
        ..Dumbbell::default()
    })
}

/// Mean goodput in Mbit/s, mean and largest queue in bytes, retransmitted share, over the seeds.
fn mean(make: impl Fn(u64) -> Result<Dumbbell, SimError>) -> Result<[f64; 4], SimError> {
    let mut sums = [0.0; 4];
    for seed in 1..=SEEDS {
        let report = make(seed)?.run()?;
        sums[0] += report.flows[0].goodput_bps / 1e6;
        sums[1] += report.queue.mean_bytes;
        sums[2] += report.queue.max_bytes as f64;
        sums[3] += report.flows[0].retransmitted_share;
    }
    Ok(sums.map(|sum| sum / SEEDS as f64))
}

/// Average window in segments under deterministic loss of one packet in `1 / p`.
fn formula(controller: &str, p: f64) -> f64 {
    let reno = 1.22 / p.sqrt();
    let cubic = 1.054 * (RTT.as_secs_f64() / p).powf(0.75);
    match controller {
        "cubic" => cubic.max(reno),
        _ => reno,
    }
}

fn main() -> Result<(), SimError> {
    let bdp = RATE * RTT.as_secs_f64() / 8.0;
    println!("lone CUBIC, 100 Mbit/s, RTT 30.6 ms, 40 s, mean of {SEEDS} seeds");
    println!(
        "buffer_bdp,goodput_mbps,queue_mean_bytes,queue_mean_bdp,queue_max_bytes,retransmitted"
    );
    for buffer in [0.5, 1.0, 5.0, 20.0] {
        let [goodput, queue, most, again] = mean(|seed| {
            let bytes = (bdp * buffer) as u64;
            Ok(Dumbbell {
                buffer: Buffer::Bytes(bytes.into()),
                ..lone("cubic", seed)?
            })
        })?;
        println!(
            "{buffer},{goodput:.2},{queue:.0},{:.3},{most:.0},{again:.5}",
            queue / bdp
        );
    }
    println!("\nrandom loss, 32 BDP of buffer, 40 s, mean of {SEEDS} seeds");
    println!("controller,loss,goodput_mbps,formula_mbps,ratio");
    for controller in ["newreno", "cubic"] {
        for p in [0.0001, 0.001, 0.01] {
            let [goodput, ..] = mean(|seed| {
                let loss = LossModel::Bernoulli(p);
                Ok(Dumbbell {
                    loss,
                    buffer: Buffer::Bdp(32.0),
                    ..lone(controller, seed)?
                })
            })?;
            let window = formula(controller, p);
            let model = (window * SEGMENT * 8.0 / RTT.as_secs_f64() / 1e6).min(RATE / 1e6);
            println!(
                "{controller},{p},{goodput:.2},{model:.2},{:.2}",
                goodput / model
            );
        }
    }
    Ok(())
}
