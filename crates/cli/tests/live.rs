//! `demo live`: its report, its page, and rejected flags.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{failed, keys, names, run, succeeded, swiftwater};
use serde_json::Value;
use tempfile::TempDir;

/// The shipped video, as a file.
fn video() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/fractal.mp4")
}

fn rows(output: &str) -> Vec<Value> {
    let rows = output.lines().map(serde_json::from_str);
    rows.map(|row| row.expect("a line is a JSON object"))
        .collect()
}

#[test]
fn each_recovery_reports_what_is_documented() {
    let output = run(["demo", "live", "--seconds", "3", "--json"]);
    let rows = rows(&succeeded(&output));
    assert_eq!(rows.len(), 2, "plain ARQ and one more");
    assert_eq!(rows[0]["recovery"], "arq");
    assert_eq!(rows[1]["recovery"], "autorec+");
    for row in &rows {
        let expected = [
            "bytes",
            "complete",
            "detection_ms",
            "deterioration_rate",
            "frame_max_ms",
            "frame_mean_ms",
            "frame_p95_ms",
            "frames",
            "frames_received",
            "freezes",
            "freezes_per_100_s",
            "frozen_ms",
            "goodput_bps",
            "latency_ms",
            "link",
            "link_loss",
            "longest_freeze_ms",
            "loss",
            "lost_data",
            "recovery",
            "recovery_max_ms",
            "recovery_mean_ms",
            "recovery_p95_ms",
            "redundancy_cost",
            "redundancy_level",
            "repeated_data",
            "replicas",
            "replicas_useful",
            "retransmission_cost",
            "seconds",
            "source",
            "srtt_ms",
            "startup_ms",
            "verified",
        ];
        assert_eq!(keys(row), expected);
        assert_eq!(row["complete"], true);
        assert_eq!(row["verified"], true);
        assert_eq!(row["source"], "sample");
        // 25 per second.
        assert_eq!(row["frames"], 75);
        assert_eq!(row["frames_received"], 75);
        let at = |key: &str| row[key].as_f64().expect(key);
        assert!(at("link_loss") > 0.0, "the link loses packets");
        assert!(at("lost_data") > 0.0, "and the server notices");
        assert!(at("detection_ms") >= 100.0 && at("srtt_ms") >= 100.0);
        // The player waits for 100 ms of video, and the request and the first frame have half a round trip
        // to go.
        assert!(at("startup_ms") >= 200.0);
        assert!(at("frame_p95_ms") >= 50.0 && at("frame_max_ms") >= at("frame_p95_ms"));
        assert_eq!(
            row["link"],
            "12.00 Mbit/s, RTT 100 ms, 14.29 % loss in bursts of 5 ms on average each way"
        );
        assert!(at("goodput_bps") < 12e6);
    }
    assert_eq!(rows[0]["bytes"], rows[1]["bytes"], "the same stream");
    assert_eq!(rows[0]["replicas"], 0, "plain ARQ sends none");
    assert_eq!(rows[0]["redundancy_cost"], 0.0);
}

#[test]
fn the_default_story_leaves_a_page_that_needs_nothing_else() {
    let directory = TempDir::new().expect("a directory");
    let page = directory.path().join("swiftwater-demo.html");
    fs::write(&page, "an older page").expect("it can be written");
    let mut demo = swiftwater();
    demo.args(["demo", "--seconds", "2"])
        .current_dir(directory.path());
    let output = succeeded(&demo.output().expect("it starts"));
    // The viewer's results come before the network's.
    let places = [
        "arq       plain retransmission (ARQ, automatic repeat request)",
        "autorec+  AutoRec+",
        "What the viewer got",
        "picture frozen, in all",
        "frame delay, 95 % of frames within",
        "50 (all, verified)",
        "packets lost",
        "data sent as copies",
        "autorec+: ",
        "Recovery latency: ",
        "swiftwater-demo.html",
    ];
    in_order(&output, &places);
    assert_eq!(names(directory.path()), ["swiftwater-demo.html"]);
    let page = fs::read_to_string(page).expect("it is there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for reference in ["http", "src=", "<link", "@import", "url(", "<script"] {
        assert!(!page.contains(reference), "{reference} in the page");
    }
    assert!(page.len() < 500_000, "{} bytes", page.len());
    assert!(page.contains("prefers-color-scheme: dark"));
    let places = [
        "<div class=\"headlines\">",
        "picture frozen, in all",
        "frame delay, 95 % of frames within",
        "<figcaption>What the viewers saw</figcaption>",
        "<th>What the viewer got</th>",
        "<figcaption>Frame delay</figcaption>",
        "<figcaption>Player&#39;s buffer</figcaption>",
        "<figcaption>Recovery latency</figcaption>",
        "<figcaption>Copies and loss</figcaption>",
        "plain retransmission (ARQ, automatic repeat request)",
        "<code>150.0 kB</code>",
        "<code>copa</code>",
    ];
    in_order(&page, &places);
}

/// Fails unless `text` has all of `parts`, in this order.
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("no '{part}', or too early, in: {text}");
        };
        rest = after;
    }
}

#[test]
fn a_page_only_where_it_is_asked_for() {
    let directory = TempDir::new().expect("a directory");
    for flag in ["--no-page", "--json"] {
        let mut demo = swiftwater();
        demo.args(["demo", "live", "--seconds", "1", flag])
            .current_dir(directory.path());
        succeeded(&demo.output().expect("it starts"));
        assert!(names(directory.path()).is_empty(), "{flag}");
    }
    let mut demo = swiftwater();
    demo.args([
        "demo",
        "live",
        "--seconds",
        "1",
        "--json",
        "--page",
        "x.html",
    ])
    .current_dir(directory.path());
    let output = succeeded(&demo.output().expect("it starts"));
    assert_eq!(rows(&output).len(), 2, "JSON and nothing else");
    assert_eq!(names(directory.path()), ["x.html"]);
}

#[test]
fn a_profile_brings_its_own_controller() {
    let directory = TempDir::new().expect("a directory");
    let page = directory.path().join("x.html");
    let shown = page.to_str().expect("UTF-8");
    let common = ["demo", "live", "--seconds", "1", "--json", "--page", shown];
    for (flags, controller) in [
        (
            &["--profile", "live"][..],
            "bbr1-xquic (that of the profile)",
        ),
        (&["--cc", "newreno"][..], "newreno"),
    ] {
        let mut demo = swiftwater();
        demo.args(common).args(flags);
        succeeded(&demo.output().expect("it starts"));
        let html = fs::read_to_string(&page).expect("it is there");
        let fact = format!("<code>{controller}</code>");
        assert!(html.contains(&fact), "no {controller}");
    }
}

#[test]
fn other_videos_recoveries_and_networks() {
    let video = video();
    let video = video.to_str().expect("UTF-8");
    let output = run([
        "demo",
        "live",
        "--json",
        "--seconds",
        "2",
        "--video",
        video,
        "--bitrate",
        "1mbit",
        "--recovery",
        "arq",
        "--recovery",
        "autorec-paper:beta=0.1",
    ]);
    let shown = rows(&succeeded(&output));
    let recoveries: Vec<_> = shown.iter().map(|row| &row["recovery"]).collect();
    assert_eq!(recoveries, ["arq", "arq", "autorec-paper:beta=0.1"]);
    for row in &shown {
        assert_eq!(row["frames_received"], 50);
        let source = row["source"].as_str().expect("text");
        assert!(
            source.starts_with("file:") && source.contains("rate=1"),
            "{source}"
        );
    }
    let output = run([
        "demo",
        "live",
        "--json",
        "--seconds",
        "1",
        "--source",
        "cbr:500kbit,fps=50",
        "--preset",
        "home-broadband",
        "--buffer",
        "0ms",
    ]);
    for row in rows(&succeeded(&output)) {
        assert_eq!(row["link"], "home broadband");
        assert_eq!(row["frames"], 50);
        // 50 frames of 1250 bytes.
        assert_eq!(row["bytes"], 62_500);
        assert_eq!(row["verified"], true);
    }
}

#[test]
fn a_link_that_is_too_slow_ends_at_the_timeout_and_is_reported() {
    let output = run([
        "demo",
        "live",
        "--seconds",
        "1",
        "--json",
        "--source",
        "cbr:20mbit,fps=25",
        "--rate",
        "300kbit",
        "--loss",
        "0%",
    ]);
    for row in rows(&succeeded(&output)) {
        assert_eq!(row["complete"], false);
        assert!(row["frames_received"].as_u64() < row["frames"].as_u64());
    }
}

#[test]
fn without_a_connection_there_is_one_line() {
    let output = run(["demo", "live", "--seconds", "1", "--json", "--loss", "100%"]);
    let error = failed(&output, 4);
    assert!(error.contains("connection"), "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let directory = TempDir::new().expect("a directory");
    let garbage = directory.path().join("garbage.mp4");
    fs::write(&garbage, [0x55; 4096]).expect("it can be written");
    let garbage = garbage.to_str().expect("UTF-8");
    let folder = directory.path().to_str().expect("UTF-8");
    let cases: [(&[&str], i32, &str); 14] = [
        (&["--recovery", "autorek"], 2, "autorek"),
        (&["--recovery", "autorec:alpha=soon"], 2, "alpha"),
        (&["--source", "betamax"], 2, "betamax"),
        (&["--source", "sample", "--video", "x.mp4"], 2, "--video"),
        (
            &["--source", "cbr:1mbit", "--bitrate", "2mbit"],
            2,
            "--bitrate",
        ),
        (&["--bitrate", "0mbit"], 2, "--bitrate"),
        (&["--seconds", "0"], 2, "--seconds"),
        (&["--seconds", "46"], 2, "--seconds"),
        (&["--preset", "satellite", "--loss", "1%"], 2, "--preset"),
        (&["--loss", "150%"], 2, "150%"),
        (&["--video", "/no/such/video.mp4"], 7, "/no/such/video.mp4"),
        (&["--video", garbage], 7, "garbage.mp4"),
        (&["--page", "/no/such/directory/page.html"], 7, "--page"),
        (&["--page", folder], 7, "directory"),
    ];
    for (flags, code, word) in cases {
        let mut demo = swiftwater();
        demo.args(["demo", "live"]).args(flags);
        let output = demo.output().expect("it starts");
        let error = failed(&output, code);
        assert!(error.contains(word), "{flags:?}: {error}");
        assert!(output.stdout.is_empty(), "{flags:?}: it ran");
    }
    let mut demo = swiftwater();
    demo.args(["demo", "live"]).args(["--recovery=arq"; 6]);
    let error = failed(&demo.output().expect("it starts"), 2);
    assert!(error.contains("at most 5"), "{error}");
    assert_eq!(names(directory.path()), ["garbage.mp4"]);
}

#[cfg(unix)]
#[test]
fn an_early_end_comes_with_a_report() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let directory = TempDir::new().expect("a directory");
    let mut demo = swiftwater();
    demo.args(["demo", "live", "--seconds", "40"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut demo = demo.spawn().expect("it starts");
    // A line for each recovery, after some seconds.
    let mut progress = BufReader::new(demo.stderr.take().expect("piped"));
    let mut line = String::new();
    progress.read_line(&mut line).expect("a line comes");
    assert!(line.contains("arq: "), "{line}");
    let pid = demo.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.expect("kill runs").success());
    let mut output = String::new();
    let mut results = demo.stdout.take().expect("piped");
    results.read_to_string(&mut output).expect("text");
    assert_eq!(demo.wait().expect("it ended").code(), Some(130));
    assert!(output.contains("stopped early"), "{output}");
    assert!(output.contains("(in part)"), "{output}");
    assert_eq!(names(directory.path()), ["swiftwater-demo.html"]);
}

#[test]
fn logs_of_both_ends_beside_the_measurements() {
    let directory = TempDir::new().expect("a directory");
    let mut demo = swiftwater();
    demo.args(["demo", "live", "--seconds", "2", "--json", "--loss", "15%"])
        .arg("--qlog")
        .arg(directory.path());
    let output = demo.output().expect("it starts");
    for row in rows(&succeeded(&output)) {
        // The logs don't keep the latencies from being observed.
        assert!(row["repeated_data"].as_u64() > Some(0), "{row}");
        assert!(row["recovery_max_ms"].is_number(), "{row}");
    }
    assert_eq!(names(directory.path()).len(), 4, "two ends of two");
}
