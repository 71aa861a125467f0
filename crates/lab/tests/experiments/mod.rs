//! Experiments made by hand, and a simulator that costs nothing.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use swiftwater_congestion::by_name;
use swiftwater_lab::record::{FlowPoint, FlowSeries, LinkPoint, LinkSeries, Sample, Series};
use swiftwater_lab::run::{ExecuteOptions, Simulate, Summary, execute_with};
use swiftwater_lab::scenario::{
    App, Axis, Case, Experiment, FlowSpec, LinkSpec, Setup, TransportSpec,
};
use swiftwater_lab::store::Results;
use swiftwater_lab::world::{self, RunError, RunOutcome};
use swiftwater_link::{LinkConfig, Rate};
use swiftwater_sim::Cipher;
use swiftwater_units::Bandwidth;

/// One experiment with an axis of these labels, that records and has samples.
pub(crate) fn experiment(labels: &[&str], repeats: u32) -> Experiment {
    let cases = labels.iter().zip(1_u32..).map(|(label, number)| Case {
        labels: vec![(*label).to_owned(), "x,\"y\"".to_owned()],
        setup: setup(number),
    });
    Experiment {
        name: "tests/one".to_owned(),
        title: "One".to_owned(),
        source: String::new(),
        about: String::new(),
        quick: false,
        axes: vec![
            Axis {
                name: "kind".to_owned(),
                labels: labels.iter().map(|label| (*label).to_owned()).collect(),
                fields: Vec::new(),
            },
            Axis {
                name: "odd, name".to_owned(),
                labels: vec!["x,\"y\"".to_owned()],
                fields: Vec::new(),
            },
        ],
        cases: cases.collect(),
        repeats,
        seed: 7,
        claims: Vec::new(),
        figures: Vec::new(),
        tables: Vec::new(),
        traces: Vec::new(),
        planned_repeats: 3,
        digest: "d1".to_owned(),
    }
}

/// The same without time series and samples, so that runs have no files.
pub(crate) fn bare(mut experiment: Experiment) -> Experiment {
    for case in &mut experiment.cases {
        case.setup.record = None;
        case.setup.flows[0].app = App::Bulk;
    }
    experiment
}

/// A setup that can be told from others by its duration, `number` seconds.
pub(crate) fn setup(number: u32) -> Setup {
    let link = LinkConfig {
        rate: Rate::Constant(Bandwidth::from_mbps(10)),
        ..LinkConfig::default()
    };
    let flow = FlowSpec {
        name: "subject".to_owned(),
        count: 1,
        enter: 0,
        exit: 1,
        start: Duration::ZERO,
        stagger: Duration::ZERO,
        start_jitter: Duration::ZERO,
        stop: None,
        access_rate: Bandwidth::from_mbps(1000),
        extra_rtt: Duration::ZERO,
        controller: by_name("cubic").expect("it is known"),
        controller_text: "cubic".to_owned(),
        recovery: std::sync::Arc::new(swiftwater_quic::policy::DefaultPolicies),
        recovery_text: "arq".to_owned(),
        feedback: None,
        transport: TransportSpec::default(),
        app: App::Transfer { bytes: 10_000 },
        paths: None,
        tunnel: None,
    };
    Setup {
        duration: Duration::from_secs(u64::from(number)),
        warmup: Duration::ZERO,
        rtt: Duration::from_millis(20),
        datagram_size: 1472,
        cipher: Cipher::Null,
        record: Some(Duration::from_millis(100)),
        bin: Duration::from_millis(100),
        links: vec![LinkSpec {
            name: "bottleneck".to_owned(),
            forward: link.clone(),
            backward: link,
        }],
        flows: vec![flow],
        parallel: None,
    }
}

/// An outcome that depends on setup and seed, with awkward numbers and with gaps.
pub(crate) fn outcome(setup: &Setup, seed: u64) -> RunOutcome {
    let number = setup.duration.as_secs();
    let value = |place: usize| {
        let value = (number as f64 + 0.1) / (seed as f64 + place as f64 + 3.0);
        match place % 4 {
            0 => Some(value),
            1 => None,
            2 => Some(value * 1e-12),
            _ => Some(value * 1e12),
        }
    };
    let recorded = setup.record.is_some();
    RunOutcome {
        measures: (0..world::measures(setup).len()).map(value).collect(),
        series: if recorded {
            series(number, seed)
        } else {
            Series::default()
        },
        samples: match setup.flows[0].app {
            App::Transfer { .. } => {
                vec![sample(number, Some(seed as f64 / 3.0)), sample(seed, None)]
            }
            _ => Vec::new(),
        },
        simulated_s: number as f64,
        tasks: seed,
    }
}

fn sample(size_bytes: u64, duration_ms: Option<f64>) -> Sample {
    Sample {
        group: "subject".to_owned(),
        start_s: 0.1,
        size_bytes,
        duration_ms,
    }
}

fn series(number: u64, seed: u64) -> Series {
    let flow = |member| FlowSeries {
        group: "subject".to_owned(),
        member,
        points: (0..3)
            .map(|place| FlowPoint {
                t_s: f64::from(place) * 0.1,
                cwnd_bytes: number * 1000,
                ssthresh_bytes: (place > 1).then_some(seed),
                pacing_mbps: (place > 0).then_some(seed as f64 / 7.0),
                state: "slow, start".to_owned(),
                ..FlowPoint::default()
            })
            .collect(),
    };
    Series {
        flows: vec![flow(0), flow(1)],
        links: vec![LinkSeries {
            link: "bottleneck".to_owned(),
            points: vec![
                LinkPoint {
                    t_s: 0.1,
                    queue_bytes: seed,
                    dropped_packets: 1,
                    marked_packets: 2,
                    delivered_bytes: 3,
                };
                2
            ],
        }],
    }
}

/// [`outcome`] as a simulator.
#[allow(clippy::unnecessary_wraps, reason = "a simulator's signature")]
pub(crate) fn simulate(setup: &Setup, seed: u64) -> Result<RunOutcome, RunError> {
    Ok(outcome(setup, seed))
}

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

pub(crate) fn options(jobs: usize) -> ExecuteOptions<'static> {
    ExecuteOptions {
        jobs: NonZeroUsize::new(jobs).expect("some"),
        shard: None,
        only: None,
        stop: &GO_ON,
    }
}

/// Runs what is missing in `folder`.
pub(crate) fn run_in(
    folder: &Path,
    experiment: &Experiment,
    options: &ExecuteOptions<'_>,
    simulate: &Simulate<'_>,
) -> Summary {
    let mut results = Results::open(folder, experiment).expect("it opens");
    execute_with(experiment, &mut results, options, &mut (), simulate).expect("it runs")
}

pub(crate) fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn write(folder: &Path, name: &str, content: &[u8]) {
    std::fs::write(folder.join(name), content).expect("it is writable");
}
