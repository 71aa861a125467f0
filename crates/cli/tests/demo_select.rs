//! `demo select`: what it reports, its page, and what there is without network namespaces.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::Output;
use std::time::Duration;

use crate::support::{failed, keys, names, run, succeeded, swiftwater};
use serde_json::Value;
use swiftwater_cli::demo::select::content::Browsing;
use tempfile::TempDir;

/// True where there can be no network namespaces, which the program says in one line.
fn is_impossible(output: &Output) -> bool {
    let error = String::from_utf8_lossy(&output.stderr);
    let is_impossible = error.contains("emulated between network namespaces");
    if is_impossible {
        println!("skipped: {}", failed(output, 1));
    }
    is_impossible
}

#[test]
fn no_request_fails_where_there_is_tcp_while_udp_is_blocked() {
    let courses = ["clean", "udp-blocked", "udp-cut"];
    let strategies = ["tcp", "quic", "race", "wise1", "wise", "plus"];
    let mut demo = swiftwater();
    demo.args(["demo", "select", "--quick", "--json"]);
    for course in courses {
        demo.args(["--course", course]);
    }
    let output = demo.output().unwrap();
    if is_impossible(&output) {
        return;
    }
    let output = succeeded(&output);
    let rows: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), courses.len() * strategies.len());
    let mut rows = rows.iter();
    for course in courses {
        for strategy in strategies {
            let row = rows.next().unwrap();
            check(row, course, strategy);
        }
    }
}

fn check(row: &Value, course: &str, strategy: &str) {
    let expected = [
        "course",
        "failed",
        "mean_ms",
        "p50_ms",
        "p99_ms",
        "probes_share",
        "quic_controller",
        "quic_share",
        "repeated",
        "requests",
        "sha256_ok",
        "strategy",
        "switches",
        "tcp_controller",
    ];
    let found: Vec<_> = keys(row)
        .into_iter()
        .filter(|key| *key != "error")
        .collect();
    assert_eq!(found, expected);
    assert_eq!(
        (&row["course"], &row["strategy"]),
        (&course.into(), &strategy.into())
    );
    assert_eq!(row["sha256_ok"], true, "{row}");
    let requests = row["requests"].as_u64().unwrap();
    assert!(requests >= 30, "{row}");
    let is_alone = strategy == "quic" && course != "clean";
    assert_eq!(row["failed"] != 0, is_alone, "{row}");
    assert_eq!(row["error"].is_string(), is_alone, "{row}");
    let number = |key: &str| row[key].as_f64().unwrap();
    if (strategy, course) == ("quic", "udp-blocked") {
        assert_eq!(row["failed"], requests, "{row}");
        assert!(
            row["mean_ms"].is_null() && row["quic_share"].is_null(),
            "{row}"
        );
        return;
    }
    // A round trip of the request at least.
    assert!(
        number("p50_ms") >= 40.0 && number("p50_ms") <= number("p99_ms"),
        "{row}"
    );
    let quic = number("quic_share");
    match (strategy, course) {
        ("tcp", _) | (_, "udp-blocked") => assert_eq!(row["quic_share"], 0.0, "{row}"),
        ("quic", _) => assert_eq!(row["quic_share"], 1.0, "{row}"),
        // It takes a round trip less to connect.
        ("race", "clean") => assert!(quic > 0.5, "{row}"),
        _ => {}
    }
    let learns = matches!((strategy, course), ("wise", "clean"));
    if learns {
        assert!(number("probes_share") > 0.0, "{row}");
    }
    if matches!(strategy, "tcp" | "quic") {
        assert_eq!((&row["switches"], number("probes_share")), (&0.into(), 0.0));
    }
}

#[test]
fn the_page_has_every_request_with_its_protocol_and_reason() {
    let directory = TempDir::new().unwrap();
    let mut demo = swiftwater();
    demo.args(["demo", "select", "--quick", "--course", "udp-cut"])
        .args(["--strategy", "wise"])
        .current_dir(directory.path());
    let output = demo.output().unwrap();
    if is_impossible(&output) {
        return;
    }
    let output = succeeded(&output);
    for text in [
        "UDP blocked in the middle",
        "WiseTrans v2",
        "99 %",
        "plots:",
    ] {
        assert!(output.contains(text), "{text}: {output}");
    }
    assert_eq!(names(directory.path()), ["swiftwater-select.html"]);
    let page = fs::read_to_string(directory.path().join("swiftwater-select.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for text in [
        "HTTP/3: experiment",
        "HTTP/2: ",
        "class=\"band\"",
        "seconds",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let browsing = Browsing::generate(Duration::from_secs(9), 1);
    assert_eq!(page.matches("h0").count(), browsing.requests());
    for reference in ["http:", "https:", "src=", "<link", "@import", "<script"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn sessions_depend_on_the_seed_alone() {
    let session = Duration::from_secs(20);
    let of = |seed| Browsing::generate(session, seed);
    assert_eq!(of(1).clicks, of(1).clicks);
    assert_ne!(of(1).clicks, of(2).clicks);
    for object in &of(1).objects {
        assert!((2_000..=50_000).contains(&object.content.len()));
        assert_eq!(of(1).content(&object.path).as_ref(), Some(&object.content));
        assert_ne!(of(2).content(&object.path).as_ref(), Some(&object.content));
    }
    assert_eq!(of(1).content("/object/999"), None);
    assert_eq!(of(1).content("/other"), None);
}

#[test]
fn unknown_courses_and_strategies_are_refused() {
    let message = failed(&run(["demo", "select", "--course", "sunny"]), 2);
    assert!(message.contains("'sunny'"), "{message}");
    let message = failed(&run(["demo", "select", "--strategy", "luck"]), 2);
    assert!(message.contains("'luck'"), "{message}");
}
