//! `get --select`: the choice between TCP and QUIC request by request.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::support::{Site, keys, succeeded};

fn refused(output: &Output, exit: i32, part: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{error}");
    assert!(error.contains(part), "{error}");
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // The totals.
    rows.pop();
    rows
}

/// Files of the site.
const FILES: usize = 60;

fn site() -> Site {
    let names: Vec<String> = (0..FILES).map(|nth| format!("f{nth}")).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), name.as_bytes()))
        .collect();
    Site::start(&files)
}

const PATHS: [&str; 9] = [
    "/f0", "/f1", "/f2", "/f3", "/f4", "/f5", "/f6", "/f7", "/f8",
];

#[test]
fn an_experiment_is_visible_in_json() {
    let site = site();
    // If TCP connects first, some go over it until QUIC has, too.
    let paths: Vec<String> = (0..FILES).map(|nth| format!("/f{nth}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let output = site
        .get_http(&paths)
        .args(["-j", "1", "--select", "wise", "--json"])
        .output()
        .unwrap();
    succeeded(&output);
    let rows = rows(&output);
    let first = &rows[0]["selection"];
    assert_eq!(
        keys(first),
        ["arm", "decided", "hedged", "reason"],
        "{first}"
    );
    assert_eq!(first["reason"], "connected_first");
    let probes = rows
        .iter()
        .filter(|row| row["selection"]["reason"] == "experiment");
    let mut arms: Vec<&str> = probes
        .take(8)
        .map(|row| row["selection"]["decided"].as_str().unwrap())
        .collect();
    arms.sort_unstable();
    assert_eq!(arms, ["h2", "h2", "h2", "h2", "h3", "h3", "h3", "h3"]);
}

#[test]
fn one_arm_carries_everything() {
    let site = site();
    for (arm, protocol) in [
        ("h1", "http/1.1"),
        ("h2", "h2"),
        ("h3", "h3"),
        ("h3:bbr1", "h3"),
    ] {
        let output = site
            .get_http(&PATHS[..2])
            .args(["--select", arm, "--json", "--force"])
            .output()
            .unwrap();
        succeeded(&output);
        for row in rows(&output) {
            assert_eq!(row["protocol"], protocol, "{row}");
            assert_eq!(row["selection"]["arm"], arm, "{row}");
            assert_eq!(row["selection"]["reason"], "fixed", "{row}");
        }
    }
}

#[test]
fn the_state_is_kept_between_runs() {
    let site = site();
    let state = site.path("selection.json");
    for run in 0..2 {
        let output = site
            .get_http(&PATHS[..1])
            .args(["--select", "plus", "--json", "--force", "--select-state"])
            .arg(&state)
            .output()
            .unwrap();
        succeeded(&output);
        let reason = &rows(&output)[0]["selection"]["reason"];
        // The race finds out about origins that are not known.
        assert_eq!(reason == "connected_first", run == 0, "{reason}");
        let saved: Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
        assert_eq!(saved["format"], "swiftwater-select");
    }
}

#[test]
fn a_state_of_something_else_is_one_warning() {
    let site = site();
    let state = site.path("selection.json");
    fs::write(&state, "not a state").unwrap();
    let output = site
        .get_http(&PATHS[..1])
        .args(["--select", "wise", "--json", "--select-state"])
        .arg(&state)
        .output()
        .unwrap();
    succeeded(&output);
    let warned = String::from_utf8_lossy(&output.stderr);
    assert_eq!(warned.lines().count(), 1, "{warned}");
    assert!(warned.starts_with("warning: --select-state: "), "{warned}");
    let saved: Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    assert_eq!(saved["format"], "swiftwater-select");
    let kept = fs::read_to_string(site.path("selection.json.refused")).unwrap();
    assert_eq!(kept, "not a state");
}

#[test]
fn mistakes_are_named() {
    let site = site();
    let models = site.path("models");
    fs::create_dir_all(&models).unwrap();
    let models = models.to_str().unwrap().to_owned();
    let mistakes: [(&[&str], i32, &str); 6] = [
        (&["--select", "best"], 2, "wise, wise1, plus, race"),
        (&["--select-arms", "h2"], 2, "--select"),
        (&["--select", "h3", "--protocol", "tcp"], 2, "--protocol"),
        (
            &["--select", "wise", "--select-arms", "h4"],
            2,
            "h1, h2 or h3",
        ),
        (&["--select", "h3:nothing"], 2, "nothing"),
        (
            &["--select", "wise", "--select-models", &models],
            7,
            "tcp.json",
        ),
    ];
    for (flags, exit, part) in mistakes {
        let output = site.get_http(&PATHS[..1]).args(flags).output().unwrap();
        refused(&output, exit, part);
    }
    fs::write(site.path("models/tcp.json"), "{}").unwrap();
    let output = site
        .get_http(&PATHS[..1])
        .args(["--select", "wise", "--select-models", &models])
        .output()
        .unwrap();
    refused(&output, 7, "tcp.json");
}
