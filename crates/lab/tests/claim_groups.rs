//! Claims about groups of labels: lists in `where`, and fields of the values of an axis.

use crate::texts::{dumbbell, load, load_with};
use swiftwater_lab::claim::{Outcome, Verdict, evaluate};
use swiftwater_lab::report::figures::Palette;
use swiftwater_lab::scenario::{Experiment, LoadOptions};
use swiftwater_lab::store::{Row, Table};

/// Five networks of two classes and two operators, two controllers, two repeats.
fn text(rest: &str) -> String {
    let axes = "repeats = 2\n[sweep]\nnet = [\n\
         { label = \"a\", rate = \"10mbit\", class = \"lte\", op = 1 },\n\
         { label = \"b\", rate = \"20mbit\", class = \"lte\", op = 2 },\n\
         { label = \"c\", rate = \"30mbit\", class = \"wifi\", op = 1 },\n\
         { label = \"d\", rate = \"40mbit\", class = \"lte\", op = 2 },\n\
         { label = \"e\", rate = \"50mbit\", class = \"wifi\", op = 2, odd = true },\n]\n\
         cc = [\"cubic\", \"newreno\"]\n";
    let scenario = dumbbell(axes, "").replace("rate = \"20mbit\"\n", "rate = \"${net.rate}\"\n");
    scenario.replace("cc = \"cubic\"\n", "cc = \"${cc}\"\n") + rest
}

fn claim(test: &str) -> String {
    text(&format!(
        "[[claim]]\nid = \"A\"\nsays = \"s\"\nmeasure = \"goodput_mbps\"\n{test}\n"
    ))
}

/// The goodput of network a is 1, of b 2, of c 3, and so on; half of that with NewReno.
fn table(experiment: &Experiment) -> Table {
    let rows = experiment.runs().map(|run| {
        let labels = experiment.cases[run.case].labels.clone();
        let place = "abcde".find(&labels[0]).expect("a network") as f64 + 1.0;
        let value = if labels[1] == "cubic" {
            place
        } else {
            place / 2.0
        };
        Row {
            run,
            labels,
            values: vec![Some(value)],
        }
    });
    Table {
        axes: vec!["net".to_owned(), "cc".to_owned()],
        measures: vec!["goodput_mbps".to_owned()],
        rows: rows.collect(),
    }
}

fn verdict(test: &str) -> Verdict {
    let experiment = load(&claim(test));
    evaluate(&experiment, &table(&experiment)).remove(0)
}

#[track_caller]
fn measured(test: &str, expected: f64) -> Verdict {
    let verdict = verdict(test);
    let value = verdict.value.expect("a number");
    assert!((value - expected).abs() < 1e-9, "{value}: {test}");
    verdict
}

const MORE: &str = "pass = { min = 0 }";

#[test]
fn several_labels_are_averaged() {
    let verdict = measured(
        &format!("where = {{ net = [\"e\", \"a\"], cc = \"cubic\" }}\n{MORE}"),
        3.0,
    );
    assert_eq!(
        (verdict.outcome, verdict.runs),
        (Outcome::Pass, Some((4, 4)))
    );
    let named =
        format!("where = {{ net = [\"a\", \"e\"], cc = \"cubic\" }}\naverage = [\"net\"]\n{MORE}");
    measured(&named, 3.0);
}

#[test]
fn several_labels_are_points_if_each_names_their_axis() {
    let verdict = measured(
        &format!(
            "where = {{ net = [\"b\", \"d\"], cc = \"cubic\" }}\neach = [\"net\"]\ntake = \"max\"\n{MORE}"
        ),
        4.0,
    );
    assert_eq!(verdict.detail, "largest of 2 points, at net=d");
}

#[test]
fn a_field_selects_the_labels_that_have_its_value() {
    for written in [
        "\"net.class\" = \"lte\"",
        "net.class = \"lte\"",
        "net = { class = \"lte\" }",
    ] {
        let test = format!("where = {{ {written}, cc = \"cubic\" }}\n{MORE}");
        measured(&test, (1.0 + 2.0 + 4.0) / 3.0);
    }
    measured(
        &format!("where = {{ net.class = \"lte\", net.op = 2, cc = \"cubic\" }}\n{MORE}"),
        3.0,
    );
    measured(
        &format!(
            "where = {{ net.class = [\"lte\", \"wifi\"], net.odd = true, cc = \"cubic\" }}\n{MORE}"
        ),
        5.0,
    );
}

#[test]
fn the_labels_of_a_field_can_be_points() {
    let test =
        "where = { net.class = \"wifi\", cc = \"cubic\" }\neach = [\"net\"]\ntake = \"min\"\n";
    let verdict = measured(&format!("{test}{MORE}"), 3.0);
    assert_eq!(verdict.detail, "smallest of 2 points, at net=c");
}

#[test]
fn each_value_of_a_field_is_a_point() {
    let test = "where = { cc = \"cubic\" }\neach = [\"net.class\"]\n";
    let smallest = measured(&format!("{test}take = \"min\"\n{MORE}"), 7.0 / 3.0);
    assert_eq!(smallest.detail, "smallest of 2 points, at net.class=lte");
    let largest = measured(&format!("{test}take = \"max\"\n{MORE}"), 4.0);
    assert_eq!(largest.detail, "largest of 2 points, at net.class=wifi");
    // Two fields at once: lte of operator 2.
    let both = "where = { cc = \"cubic\" }\neach = [\"net.class\", \"net.op\"]\ntake = \"min\"\n";
    let both = measured(&format!("{both}{MORE}"), 1.0);
    assert_eq!(
        both.detail,
        "smallest of 4 points, at net.class=lte, net.op=1"
    );
}

#[test]
fn a_threshold_is_found_along_a_field_with_numbers() {
    // Operator 1 has 1 and 3, operator 2 has 2, 4 and 5.
    let test = "where = { cc = \"cubic\" }\neach = [\"net.op\"]\ntake = { first_at_least = 3 }\n";
    measured(&format!("{test}{MORE}"), 1.0 + 1.0 / (11.0 / 3.0 - 2.0));
}

#[test]
fn the_values_of_an_averaged_field_count_alike() {
    let test = format!("where = {{ cc = \"cubic\" }}\naverage = [\"net.class\"]\n{MORE}");
    measured(&test, f64::midpoint(7.0 / 3.0, 4.0));
    let plain = format!("where = {{ cc = \"cubic\" }}\naverage = [\"net\"]\n{MORE}");
    measured(&plain, 3.0);
}

#[test]
fn comparisons_are_paired_label_by_label() {
    let test = "where = { cc = \"cubic\" }\neach = [\"net.class\"]\ncompare = \"difference\"\n\
                against = { cc = \"newreno\" }\ntake = \"max\"\n";
    let verdict = measured(&format!("{test}{MORE}"), 2.0);
    assert_eq!(verdict.runs, Some((10, 10)));
}

#[track_caller]
fn refused(test: &str, expected: &str) {
    let error = load_with(&claim(test), &LoadOptions::default()).expect_err("invalid");
    let error = error.to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn mistakes_are_named() {
    refused(
        "where = { net.clas = \"lte\" }\npass = { min = 0 }",
        "no field `clas` in the values of axis `net`",
    );
    refused(
        "where = { net.class = \"lta\" }\npass = { min = 0 }",
        "did you mean `lte`?",
    );
    refused(
        "where = { net.class = \"wifi\", net.rate = \"10mbit\" }\npass = { min = 0 }",
        "no label of axis `net` has all of this",
    );
    refused(
        "where = { cc = \"cubic\" }\neach = [\"net.odd\"]\npass = { min = 0 }",
        "the value `a` of axis `net` has no `odd`",
    );
    refused(
        "where = { cc = \"cubic\" }\neach = [\"net\"]\naverage = [\"net.class\"]\npass = { min = 0 }",
        "axis `net` is in `each` already",
    );
    refused(
        "where = { cc = [\"cubic\", \"newreno\"] }\neach = [\"net\"]\ncompare = \"ratio\"\n\
         against = { cc = \"newreno\" }\npass = { min = 0 }",
        "axis `cc` is averaged",
    );
    refused(
        "where = { net.class = \"lte\" }\npass = { min = 0 }",
        "axis `cc` is left unmentioned",
    );
}

#[test]
fn classes_are_no_part_of_the_rows() {
    let with = load(&text(""));
    let other = load(&text("").replace("class = \"wifi\"", "class = \"wlan\""));
    assert_eq!(with.digest, other.digest);
    let field = &with.axes[0].fields[1];
    assert_eq!(field.name, "class");
    assert_eq!(field.values[2].as_deref(), Some("wifi"));
    assert_eq!(other.axes[0].fields[1].values[2].as_deref(), Some("wlan"));
}

#[test]
fn figures_group_by_fields() {
    let figure = "[[figure]]\nid = \"f\"\ntitle = \"t\"\nkind = \"bar\"\nx = \"cc\"\n\
                  y = \"goodput_mbps\"\nseries = [\"net.class\"]\nwhere = { net = [\"a\", \"c\", \"e\"] }\n";
    let experiment = load(&text(figure));
    let palette = Palette::of(&experiment);
    assert_ne!(palette.style("lte"), palette.style("wifi"));
    assert_eq!(experiment.figures[0].select["net"], ["a", "c", "e"]);
}

#[test]
fn exclusions_may_be_lists() {
    let experiment = load(&text(
        "[[exclude]]\nnet = [\"a\", \"b\"]\ncc = \"newreno\"\n",
    ));
    assert_eq!(experiment.cases.len(), 8);
    let by_class = load(&text(
        "[[exclude]]\nnet.class = \"lte\"\ncc = \"newreno\"\n",
    ));
    assert_eq!(by_class.cases.len(), 7);
}
