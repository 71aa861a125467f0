//! CPU time of recovery policies: a bulk transfer over 50 Mbit/s and 60 ms with the null cipher and
//! BBRv1, both ends and the simulator in one thread, without loss and with 5 %.
//!
//! `cargo run --release -p swiftwater-sim --example policy_cost [POLICY LOSS MEGABYTES]`
//!
//! Without arguments, all policies of the table in turn, for several rounds, and the least time of
//! each per packet that the server sent. Times depend on the load of the machine. Instructions don't:
//! run one policy with two sizes under a counter, such as `valgrind --tool=callgrind`, and divide the
//! difference of instructions by the difference of packets; that leaves out the start.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::{Duration, Instant};

use swiftwater_link::{Buffer, LinkConfig, LossModel};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, PacketCount, Side};

const POLICIES: [&str; 5] = ["arq", "art", "autorec-paper", "autorec", "autorec+"];
const LOSSES: [f64; 2] = [0.0, 0.05];
/// Bytes of a run of the table.
const BYTES: u64 = 20_000_000;
const ROUNDS: usize = 7;

type Failure = Box<dyn Error>;

/// Result of a run.
struct Cost {
    packets: u64,
    replicas: u64,
    time: Duration,
}

impl Cost {
    fn per_packet(&self) -> f64 {
        self.time.as_nanos() as f64 / self.packets as f64
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => table(),
        [policy, loss, megabytes] => {
            let cost = run(policy, loss.parse()?, megabytes.parse::<u64>()? * 1_000_000)?;
            println!(
                "{policy} at loss {loss}: {} packets, {} replicas, {:.0} ns per packet",
                cost.packets,
                cost.replicas,
                cost.per_packet()
            );
            Ok(())
        }
        _ => Err("give a policy, a loss rate (0 to 1) and megabytes, or nothing".into()),
    }
}

fn table() -> Result<(), Failure> {
    println!("policy         loss   packets  replicas  ns/packet  against arq");
    let known = swiftwater_policies::names();
    for loss in LOSSES {
        let policies = POLICIES.map(|name| (name, known.iter().any(|known| known == name)));
        let mut best: [Option<Cost>; POLICIES.len()] = Default::default();
        // In turn, so that what slows the machine for a while slows all of them.
        for _ in 0..ROUNDS {
            for ((policy, is_known), best) in policies.iter().zip(&mut best) {
                if !is_known {
                    continue;
                }
                let cost = run(policy, loss, BYTES)?;
                if best.as_ref().is_none_or(|best| cost.time < best.time) {
                    *best = Some(cost);
                }
            }
        }
        let plain = best[0].as_ref().map_or(0.0, Cost::per_packet);
        for (policy, cost) in POLICIES.iter().zip(&best) {
            let Some(cost) = cost else { continue };
            println!(
                "{policy:<13}  {loss:<4}  {:>8}  {:>8}  {:>9.0}  {:>+11.0}",
                cost.packets,
                cost.replicas,
                cost.per_packet(),
                cost.per_packet() - plain
            );
        }
    }
    Ok(())
}

fn run(policy: &str, loss: f64, bytes: u64) -> Result<Cost, Failure> {
    let policies = swiftwater_policies::by_name(policy)?;
    let controller = swiftwater_congestion::by_name("bbr1")?;
    let way = || {
        LinkConfig::default()
            .rate(Bandwidth::from_mbps(50))
            .delay(Duration::from_millis(30))
            .buffer(Buffer::Packets(PacketCount::new(600)))
    };
    let mut pair = Pair::builder()
        .links(way(), way().loss(LossModel::Bernoulli(loss)))
        .time_limit(Duration::from_secs(600))
        .server_config(|config| {
            config.policies = policies;
            config.controller = controller;
        })
        .build()?;
    if !pair.connect() {
        return Err("no connection".into());
    }
    let started = Instant::now();
    let report = pair.transfer(bytes, Direction::ToClient);
    let time = started.elapsed();
    if !report.verified {
        return Err(format!("the transfer failed: {report:?}").into());
    }
    let stats = pair.stats(Side::Server);
    Ok(Cost {
        packets: stats.packets_sent.get(),
        replicas: stats.repair.replicas_sent,
        time,
    })
}
