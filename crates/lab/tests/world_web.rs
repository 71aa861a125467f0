//! A browsing user over QUIC and TCP.

use crate::texts::{load, load_with};
use swiftwater_lab::scenario::{LoadOptions, Setup};
use swiftwater_lab::world::{measures, simulate, web_features};

/// A user on a link of 10 Mbit/s and 60 ms for 40 s.
fn scenario(keys: &str) -> String {
    "title = \"t\"\n[run]\nduration = \"40s\"\nrtt = \"60ms\"\n[[link]]\nrate = \"10mbit\"\n\
     buffer = \"64kB\"\n[[flow]]\nname = \"user\"\napp = \"web\"\ncc = \"cubic\"\n"
        .to_owned()
        + keys
}

/// The measures of a run, by name.
struct Measured {
    names: Vec<String>,
    values: Vec<Option<f64>>,
}

impl Measured {
    fn new(setup: &Setup, seed: u64) -> Self {
        Self {
            names: measures(setup),
            values: simulate(setup, seed).unwrap().measures,
        }
    }

    fn value(&self, name: &str) -> f64 {
        let place = self.names.iter().position(|known| known == name);
        self.values[place.unwrap()].unwrap()
    }
}

fn run(keys: &str) -> Measured {
    Measured::new(&load(&scenario(keys)).cases[0].setup, 1)
}

fn is(measured: &Measured, name: &str, value: f64) -> bool {
    (measured.value(name) - value).abs() < 1e-9
}

#[test]
fn fixed_strategies_use_their_protocol_for_the_same_clicks() {
    let (tcp, quic) = (run("strategy = \"h2\""), run("strategy = \"h3\""));
    assert!(is(&tcp, "user.quic_share", 0.0) && is(&quic, "user.quic_share", 1.0));
    for user in [&tcp, &quic] {
        // Some eight clicks of 13.5 requests.
        assert!((30.0..400.0).contains(&user.value("user.requests")));
        assert!(is(user, "user.failed", 0.0));
        // At least the round trip of the request.
        assert!(user.value("user.rct_p50_ms") > 60.0);
        assert!(user.value("user.rct_p50_ms") <= user.value("user.rct_p99_ms"));
    }
}

#[test]
fn the_ideal_choice_is_no_slower_than_either_protocol() {
    let mean = |strategy: &str| {
        let keys = format!("walk = \"5s\"\nstrategy = \"{strategy}\"");
        run(&keys).value("user.rct_mean_ms")
    };
    let ideal = mean("ideal");
    assert!(ideal > 0.0 && ideal <= mean("h2").max(mean("h3")));
}

#[test]
fn a_blocked_quic_costs_a_selector_little_and_quic_alone_much() {
    let blocked = |strategy: &str| {
        run(&format!(
            "policer = \"block:5s\"\nstrategy = \"{strategy}\""
        ))
    };
    let (wise, quic) = (blocked("wise"), blocked("h3"));
    assert!(is(&wise, "user.failed", 0.0));
    assert!(quic.value("user.failed") > 0.0);
    assert!(wise.value("user.rct_mean_ms") < quic.value("user.rct_mean_ms") / 2.0);
}

#[test]
fn a_selector_experiments_and_the_same_seed_gives_the_same_run() {
    let keys = "walk = \"5s\"\nstrategy = \"wise\"\nexperiment_size = 2";
    let user = run(keys);
    assert!(user.value("user.experiment_share") > 0.0);
    assert!(user.value("user.probe_share") >= user.value("user.experiment_share"));
    let setup = &load(&scenario(keys)).cases[0].setup;
    let values = |seed| simulate(setup, seed).unwrap().measures;
    assert_eq!(values(3), values(3));
    assert_ne!(values(3), values(4));
}

#[test]
fn slow_ends_of_tcp_do_not_slow_quic() {
    let late = "tcp_delay = \"20ms\"\nstrategy = ";
    let times = |strategy: &str| {
        [
            format!("strategy = {strategy}"),
            format!("{late}{strategy}"),
        ]
        .map(|keys| run(&keys).value("user.rct_p50_ms"))
    };
    let [usual, slow] = times("\"h2\"");
    assert!(slow > usual + 30.0, "{usual}, {slow}");
    let [usual, slow] = times("\"h3\"");
    assert!((usual - slow).abs() < 1e-9, "{usual}, {slow}");
}

#[test]
fn features_are_of_fixed_protocols() {
    let setup = |keys| load(&scenario(keys)).cases[0].setup.clone();
    let (rows, mean_ms) = web_features(&setup("strategy = \"h3\""), 1).unwrap();
    assert!(rows.len() > 20 && mean_ms > 60.0);
    let last = rows.last().unwrap();
    assert!(last.features.values().iter().all(|value| value.is_finite()));
    assert!(last.bandwidth_mbps > 0.0);
    assert!(web_features(&setup("strategy = \"wise\""), 1).is_err());
}

#[test]
fn wrong_keys_are_one_clear_error() {
    for (keys, part) in [
        ("", "strategy"),
        ("strategy = \"fastest\"", "strategy"),
        ("strategy = \"wise\"\npolicer = \"loss:2\"", "policer"),
        ("strategy = \"wise\"\npolicer = \"rate\"", "policer"),
        (
            "strategy = \"wise\"\nexperiment_size = 9",
            "experiment_size",
        ),
        ("strategy = \"wise\"\nbytes = 0", "bytes"),
        ("strategy = \"wise\"\ncount = 2", "browsing user"),
    ] {
        let error = load_with(&scenario(keys), &LoadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(part), "{keys}: {error}");
    }
}
