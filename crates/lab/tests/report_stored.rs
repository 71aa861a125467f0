//! Pages of results on disk: only what is needed is read, and what is there is shown.

use std::collections::BTreeMap;

use crate::experiments::{experiment, options, read, run_in, simulate, write};
use swiftwater_lab::report::{needs, render};
use swiftwater_lab::scenario::{Compare, Experiment, Figure, FigureKind, Scale};
use swiftwater_lab::store::{Origin, Results};
use tempfile::TempDir;

fn with_figures() -> Experiment {
    let figure = |id: &str, kind| Figure {
        id: id.to_owned(),
        title: "Over time".to_owned(),
        caption: String::new(),
        kind,
        series: vec!["kind".to_owned()],
        panels: Vec::new(),
        select: BTreeMap::from([("kind".to_owned(), vec!["b".to_owned()])]),
        compare: Compare::Value,
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
    };
    let mut experiment = experiment(&["a", "b"], 2);
    experiment.figures = vec![
        figure(
            "time",
            FigureKind::Series {
                y: vec![
                    "subject.cwnd_bytes".to_owned(),
                    "bottleneck.queue_bytes".to_owned(),
                ],
            },
        ),
        figure(
            "share",
            FigureKind::Cdf {
                group: "subject".to_owned(),
                of: "duration_ms".to_owned(),
            },
        ),
    ];
    experiment
}

#[test]
fn a_page_is_made_of_stored_results() {
    let folder = TempDir::new().unwrap();
    let experiment = with_figures();
    run_in(folder.path(), &experiment, &options(1), &simulate);
    let results = Results::read(folder.path(), &experiment).unwrap();
    let page = render(&experiment, &results, &[]).unwrap();
    assert!(!page.contains("Missing in this figure"));
    assert!(page.contains("id=\"plot-0\"") && page.contains("id=\"plot-1\""));
    // Two flows, whose state is shown on hover, and the link.
    assert_eq!(page.matches("flow 1, slow, start").count(), 3);
    assert!(page.contains("b, subject: 2 of 4 samples did not end and are left out."));
    assert!(page.contains("Time on one core"));
    let path = results.write_report(&page).unwrap();
    assert!(std::fs::read(path).unwrap() == page.as_bytes());
}

#[test]
fn files_of_other_cases_are_not_read() {
    let folder = TempDir::new().unwrap();
    let experiment = with_figures();
    run_in(folder.path(), &experiment, &options(1), &simulate);
    let needed = needs(&experiment);
    assert!(
        needed
            .series
            .iter()
            .chain(&needed.samples)
            .all(|run| run.case == 1)
    );
    let results = Results::read(folder.path(), &experiment).unwrap();
    let before = render(&experiment, &results, &[]).unwrap();
    for name in ["series/0-0.csv", "series/1-1.csv", "samples/0-0.csv"] {
        assert!(!read(folder.path(), name).is_empty());
        write(folder.path(), name, b"kind\nnonsense\n");
    }
    assert!(render(&experiment, &results, &[]).unwrap() == before);

    write(folder.path(), "series/1-0.csv", b"kind\nnonsense\n");
    let error = render(&experiment, &results, &[])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("1-0.csv"), "{error}");
}

#[test]
fn an_unfinished_folder_has_a_page() {
    let folder = TempDir::new().unwrap();
    let experiment = with_figures();
    drop(Results::open(folder.path(), &experiment).unwrap());
    let results = Results::read(folder.path(), &experiment).unwrap();
    let page = render(&experiment, &results, &[]).unwrap();
    assert!(page.contains("<b>Unfinished:</b> 0 of 4 runs"));
    assert_eq!(page.matches("Missing in this figure").count(), 2);
}

#[test]
fn the_command_asks_for_the_same_again() {
    let folder = TempDir::new().unwrap();
    let experiment = with_figures();
    let mut results = Results::open(folder.path(), &experiment).unwrap();
    let origin = Origin {
        scenario: "tests/one".to_owned(),
        set: vec![("kind".to_owned(), "a b,c".to_owned())],
        repeats: Some(2),
        ..Origin::default()
    };
    results.set_origin(origin).unwrap();
    let page = render(&experiment, &results, &[]).unwrap();
    let command = "swiftwater lab run tests/one --set &#39;kind=a b,c&#39; --repeats 2";
    assert!(page.contains(command));
}
