//! A library user's own controller: the unmodified example.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "an example is a program of its own"
)]
#[path = "../examples/own_controller.rs"]
mod example;

use swiftwater_lab::report::Means;
use tempfile::TempDir;

#[test]
fn it_runs_in_the_laboratory_beside_the_others() {
    let folder = TempDir::new().unwrap();
    let (experiment, results) = example::run(folder.path(), true).unwrap();
    let table = results.table().unwrap();
    let means = Means::new(&experiment, &table);
    let mean = |cc: &str, measure: &str| {
        let labels = ["2bdp", cc];
        let case = experiment
            .cases
            .iter()
            .position(|case| case.labels == labels)
            .unwrap();
        let column = means.column(measure).unwrap();
        means.point(&[case], column).mean.unwrap()
    };
    let tighter = "own:gain=2,cap=5ms";
    for cc in ["own", tighter] {
        // 1 or 0.
        assert!(mean(cc, "intact") > 0.5);
        assert!(mean(cc, "bottleneck.utilisation") > 0.5);
    }
    // What it is for, and that its parameters arrive.
    let delay = |cc| mean(cc, "bottleneck.queue_delay_mean_ms");
    assert!(delay("own") < delay("newreno"));
    assert!(delay(tighter) < delay("own"));

    let text = example::conclude(&experiment, &results).unwrap();
    assert!(text.contains("| F1 |"), "{text}");
    assert!(text.contains(tighter), "{text}");
    assert!(folder.path().join("report.html").is_file());
}

#[test]
fn its_parameters_are_checked_like_those_of_the_others() {
    let catalogue = example::catalogue();
    assert!(catalogue.get("own:beta=0.5,cap=20ms").is_ok());
    let error = catalogue.get("own:gain=11").unwrap_err().to_string();
    assert!(error.contains("a number from 0.1 to 10"), "{error}");
    assert!(catalogue.get("own:speed=1").is_err());
}
