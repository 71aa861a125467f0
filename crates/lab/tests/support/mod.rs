//! Setups built by hand, and their outcomes by name.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, reason = "shared by test files")]

use std::time::Duration;

use swiftwater_lab::scenario::{App, FlowSpec, LinkSpec, Setup, TransportSpec};
use swiftwater_lab::world::{self, RunOutcome};
use swiftwater_link::{Buffer, LinkConfig};
use swiftwater_sim::Cipher;
use swiftwater_units::Bandwidth;

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn mbps(mbps: u64) -> Bandwidth {
    Bandwidth::from_mbps(mbps)
}

/// A link of this rate and one-way delay with a buffer of one bandwidth-delay product; the reverse
/// direction is unlimited.
pub fn link(name: &str, rate: Bandwidth, delay: Duration) -> LinkSpec {
    let way = LinkConfig::default().rate(rate).delay(delay);
    LinkSpec {
        name: name.to_owned(),
        forward: way.clone().buffer(Buffer::Bdp(1.0)),
        backward: way,
    }
}

/// One CUBIC flow over the whole chain, which starts at once.
pub fn flow(name: &str, app: App, links: usize) -> FlowSpec {
    FlowSpec {
        name: name.to_owned(),
        count: 1,
        enter: 0,
        exit: links,
        start: Duration::ZERO,
        stagger: Duration::ZERO,
        start_jitter: Duration::ZERO,
        stop: None,
        access_rate: mbps(1_000),
        extra_rtt: Duration::ZERO,
        controller: swiftwater_congestion::by_name("cubic").expect("a controller"),
        controller_text: "cubic".to_owned(),
        recovery: std::sync::Arc::new(swiftwater_quic::policy::DefaultPolicies),
        recovery_text: "arq".to_owned(),
        feedback: None,
        transport: TransportSpec::default(),
        app,
        paths: None,
        tunnel: None,
    }
}

/// So many seconds over `links`.
pub fn setup(seconds: u64, links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> Setup {
    let both = |link: &LinkSpec| link.forward.delay + link.backward.delay;
    Setup {
        duration: secs(seconds),
        warmup: Duration::ZERO,
        rtt: links.iter().map(both).sum(),
        datagram_size: 1_472,
        cipher: Cipher::Null,
        record: None,
        bin: millis(100),
        links,
        flows,
        parallel: None,
    }
}

/// One link of 20 Mbit/s and 15 ms each way.
pub fn dumbbell(seconds: u64, flows: Vec<FlowSpec>) -> Setup {
    setup(seconds, vec![link("link", mbps(20), millis(15))], flows)
}

/// Runs with seed 1.
pub fn run(setup: &Setup) -> Measured {
    Measured::new(setup, 1)
}

/// An outcome with the names of its measures.
pub struct Measured {
    names: Vec<String>,
    pub outcome: RunOutcome,
}

impl Measured {
    pub fn new(setup: &Setup, seed: u64) -> Self {
        let outcome = world::simulate(setup, seed).expect("a valid setup");
        let names = world::measures(setup);
        assert_eq!(names.len(), outcome.measures.len());
        let measured = Self { names, outcome };
        assert_eq!(measured.get("intact"), Some(1.0));
        measured
    }

    /// A measure; `None` if it has no value.
    pub fn get(&self, name: &str) -> Option<f64> {
        let place = self.names.iter().position(|each| each == name);
        self.outcome.measures[place.unwrap_or_else(|| panic!("no measure {name}"))]
    }

    /// A measure that must have a value.
    pub fn value(&self, name: &str) -> f64 {
        self.get(name)
            .unwrap_or_else(|| panic!("{name} has no value"))
    }
}

/// Asserts that `value` is within `tolerance` (relative) of `expected`.
#[track_caller]
pub fn assert_near(value: f64, expected: f64, tolerance: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(
        off <= tolerance,
        "{value} is not within {tolerance} of {expected}"
    );
}
