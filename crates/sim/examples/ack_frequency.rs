//! Savings and cost of fewer acknowledgements: a download of 20 MB, as RFC 9000 acknowledges and as
//! `ACK_FREQUENCY` asks.
//!
//! `cargo run --release -p swiftwater-sim --example ack_frequency`

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::AckFrequencyConfig;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::Bandwidth;

const BYTES: u64 = 20_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    println!("  rtt   rate  loss   datagrams of the client per 100 of the server    seconds");
    println!("                             plain                    asked         plain   asked");
    for rtt in [10, 50, 200] {
        for mbps in [20, 200] {
            for loss in [0.0, 0.01] {
                let (plain, asked) = (run(rtt, mbps, loss, false)?, run(rtt, mbps, loss, true)?);
                println!(
                    "{rtt:4} ms {mbps:4} M {:4.0} % {:24.1} {:24.1} {:13.2} {:7.2}",
                    loss * 100.0,
                    plain.0,
                    asked.0,
                    plain.1,
                    asked.1
                );
            }
        }
    }
    Ok(())
}

/// Packets of the client per 100 of the server, and seconds.
fn run(rtt: u64, mbps: u64, loss: f64, asks: bool) -> Result<(f64, f64), Box<dyn Error>> {
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(mbps))
        .delay(Duration::from_millis(rtt / 2))
        .loss(LossModel::Bernoulli(loss));
    let mut pair = Pair::builder()
        .link(link)
        .time_limit(Duration::from_secs(600))
        .server_config(|config| {
            config.ack_frequency = asks.then(AckFrequencyConfig::default);
        })
        .build()?;
    pair.connect();
    let report = pair.transfer(BYTES, Direction::ToClient);
    let sent = |direction| pair.offered(direction) as f64;
    let share = 100.0 * sent(Direction::ToServer) / sent(Direction::ToClient);
    Ok((share, (report.finish - report.start).as_secs_f64()))
}
