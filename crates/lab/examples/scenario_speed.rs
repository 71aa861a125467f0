//! How fast the laboratory is: simulated seconds per second of real time, over a bottleneck of
//! 100 Mbit/s with a round trip of 30 ms, for bulk flows and for transfers that arrive at random.
//!
//! `cargo run --release -p swiftwater-lab --example scenario_speed [SECONDS] [CONTROLLER] [FLOWS]`, with FLOWS a
//! single number of bulk flows, or 0 for the transfers.

use std::error::Error;
use std::time::{Duration, Instant};

use swiftwater_lab::scenario::{App, FlowSpec, LinkSpec, Setup, SizeDistribution, TransportSpec};
use swiftwater_lab::world;
use swiftwater_link::{Buffer, LinkConfig};
use swiftwater_sim::Cipher;
use swiftwater_units::Bandwidth;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let controller = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    let only: Option<u32> = arguments.next().map(|text| text.parse()).transpose()?;
    println!("what               simulated s  wall s  x real time   tasks/s  goodput Mbit/s");
    for count in [1, 4, 16, 64, 256] {
        if only.is_some_and(|only| only != count) {
            continue;
        }
        let setup = setup(seconds, flow(&controller, App::Bulk, count)?);
        measure(&format!("{count} bulk flows"), &setup)?;
    }
    if only.is_some_and(|only| only != 0) {
        return Ok(());
    }
    // A mean of 150 kB at half the bottleneck's rate.
    let sizes = vec![(10_000.0, 0.5), (100_000.0, 0.8), (1_150_000.0, 1.0)];
    let app = App::Poisson {
        sizes: SizeDistribution::new(sizes)?,
        per_second: 42.0,
        limit: Some(1_000),
        receivers: 4,
    };
    let setup = setup(300, flow(&controller, app, 16)?);
    measure("1000 transfers", &setup)?;
    Ok(())
}

fn flow(controller: &str, app: App, count: u32) -> Result<FlowSpec, Box<dyn Error>> {
    Ok(FlowSpec {
        name: "flow".to_owned(),
        count,
        enter: 0,
        exit: 1,
        start: Duration::ZERO,
        stagger: Duration::ZERO,
        start_jitter: Duration::from_millis(10),
        stop: None,
        access_rate: Bandwidth::from_mbps(1_000),
        extra_rtt: Duration::ZERO,
        controller: swiftwater_congestion::by_name(controller)?,
        controller_text: controller.to_owned(),
        recovery: std::sync::Arc::new(swiftwater_quic::policy::DefaultPolicies),
        recovery_text: "arq".to_owned(),
        feedback: None,
        transport: TransportSpec::default(),
        app,
        paths: None,
        tunnel: None,
    })
}

fn setup(seconds: u64, flow: FlowSpec) -> Setup {
    let way = LinkConfig::default()
        .rate(Bandwidth::from_mbps(100))
        .delay(Duration::from_millis(15));
    Setup {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        rtt: Duration::from_millis(30),
        datagram_size: 1_472,
        cipher: Cipher::Null,
        record: None,
        bin: Duration::from_millis(100),
        links: vec![LinkSpec {
            name: "link".to_owned(),
            forward: way.clone().buffer(Buffer::Bdp(1.0)),
            backward: way,
        }],
        flows: vec![flow],
        parallel: None,
    }
}

fn measure(what: &str, setup: &Setup) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let outcome = world::simulate(setup, 1)?;
    let wall = started.elapsed().as_secs_f64();
    let names = world::measures(setup);
    let place = names.iter().position(|name| name == "goodput_mbps");
    let goodput = place.and_then(|place| outcome.measures[place]);
    println!(
        "{what:<17}  {:>11.1}  {wall:>6.2}  {:>11.1}  {:>8.0}  {:>14.2}",
        outcome.simulated_s,
        outcome.simulated_s / wall,
        outcome.tasks as f64 / wall,
        goodput.unwrap_or(0.0),
    );
    Ok(())
}
