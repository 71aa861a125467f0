//! `demo multipath`: what it reports, its page, and its parts that touch no network.

#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use crate::support::{failed, keys, names, succeeded, swiftwater};
use serde_json::Value;
use swiftwater::units::Instant;
use swiftwater_cli::demo::multipath::content::Content;
use swiftwater_cli::demo::multipath::receipt::Receipt;
use swiftwater_media::player::LiveConfig;
use swiftwater_media::source::SourceSpec;
use tempfile::TempDir;

#[test]
fn each_strategy_reports_both_jobs() {
    let jobs = ["--job", "download", "--job", "live"];
    let mut demo = swiftwater();
    demo.args(["demo", "multipath", "--quick", "--json"])
        .args(jobs);
    let output = demo.output().unwrap();
    let output = succeeded(&output);
    let rows: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let find = |strategy: &str, job: &str| {
        let found = rows
            .iter()
            .find(|row| row["strategy"] == strategy && row["job"] == job);
        found.unwrap_or_else(|| panic!("{strategy}, {job}: {output}"))
    };
    assert_eq!(rows.len(), 6);
    for job in ["download", "live"] {
        for strategy in ["single-path", "migration", "multipath"] {
            let row = find(strategy, job);
            let expected = [
                "bytes",
                "completion_ms",
                "freezes",
                "job",
                "longest_gap_ms",
                "paths",
                "sha256_ok",
                "strategy",
            ];
            assert_eq!(keys(row), expected);
            assert_eq!(row["sha256_ok"], true, "{row}");
            let paths = row["paths"].as_array().unwrap();
            assert_eq!(paths.len(), if strategy == "multipath" { 2 } else { 1 });
            for path in paths {
                assert_eq!(keys(path), ["bytes_sent", "copies", "srtt_ms"]);
                assert!(path["bytes_sent"].as_u64().unwrap() > 10_000, "{row}");
            }
            assert_eq!(row["freezes"].is_null(), job == "download", "{row}");
        }
        let gap = |strategy| find(strategy, job)["longest_gap_ms"].as_f64().unwrap();
        // Wi-Fi is gone for 2.5 s, and the client waits for 500 ms before it migrates.
        assert!(gap("single-path") >= 2_400.0);
        assert!(gap("migration") >= 500.0);
        assert!(gap("multipath") < gap("migration"));
    }
}

#[test]
fn the_page_shows_the_rate_per_path_and_needs_nothing_else() {
    let directory = TempDir::new().unwrap();
    let mut demo = swiftwater();
    demo.args(["demo", "multipath", "--quick", "--job", "live"])
        .args(["--strategy", "multipath", "--fault", "cut-down"])
        .args(["--at", "500ms", "--for", "1s"])
        .current_dir(directory.path());
    let output = succeeded(&demo.output().unwrap());
    for text in ["longest gap", "multipath", "swiftwater-multipath.html"] {
        assert!(output.contains(text), "{text}: {output}");
    }
    assert_eq!(names(directory.path()), ["swiftwater-multipath.html"]);
    let page = fs::read_to_string(directory.path().join("swiftwater-multipath.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for text in ["Wi-Fi", "LTE", "Mbit/s", "longest gap"] {
        assert!(page.contains(text), "{text}");
    }
    for reference in ["http", "src=", "<link", "@import", "<script"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn each_strategy_reports_video_on_demand() {
    let directory = TempDir::new().unwrap();
    let mut demo = swiftwater();
    demo.args(["demo", "multipath", "--quick", "--json", "--job", "video"])
        .args(["--page", "video.html"])
        .current_dir(directory.path());
    let output = succeeded(&demo.output().unwrap());
    let rows: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let strategies: Vec<_> = rows.iter().map(|row| &row["strategy"]).collect();
    assert_eq!(
        strategies,
        ["single-path", "min-rtt", "xlink", "chorus", "chorus+"]
    );
    for row in &rows {
        let expected = [
            "bitrate_mbps",
            "chunk_p99_ms",
            "copies_share",
            "first_frame_ms",
            "job",
            "qoe",
            "segments",
            "sent_by_path",
            "sha256_ok",
            "stall_ms",
            "stalls",
            "strategy",
        ];
        assert_eq!(keys(row), expected);
        assert_eq!(row["sha256_ok"], true, "{row}");
        let is_single = row["strategy"] == "single-path";
        let paths = row["sent_by_path"].as_array().unwrap();
        assert_eq!(paths.len(), if is_single { 1 } else { 2 }, "{row}");
        for sent in paths {
            assert!(sent.as_u64().unwrap() > 100_000, "{row}");
        }
        // 16 s of segments of 2 s.
        assert!(row["segments"].as_u64().unwrap() >= 4, "{row}");
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!((0.5..16.1).contains(&number("bitrate_mbps")), "{row}");
        assert!(number("first_frame_ms") > 20.0 && number("chunk_p99_ms") > 20.0);
        assert!((0.0..0.2).contains(&number("copies_share")), "{row}");
        if is_single {
            assert_eq!(row["copies_share"], 0.0);
        }
    }
    let page = fs::read_to_string(directory.path().join("video.html")).unwrap();
    for text in ["Buffer", "Bitrate", "Paths and copies", "chorus+", "XLINK"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn impossible_flags_are_refused() {
    for (flags, expected) in [
        (["--fault", "gone"], "cut-up"),
        (["--fault", "delay:0"], "1 to 1000"),
        (["--strategy", "none"], "single-path"),
        (["--scheduler", "none-such"], "round-robin"),
        (["--strategy=migration", "--job=video"], "min-rtt"),
        (["--strategy=chorus", "--job=live"], "single-path"),
    ] {
        let output = swiftwater()
            .args(["demo", "multipath"])
            .args(flags)
            .output()
            .unwrap();
        let message = failed(&output, 2);
        assert!(message.contains(expected), "{flags:?}: {message}");
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

const PLAYER: LiveConfig = LiveConfig {
    start_buffer: Duration::from_millis(100),
    rebuffer: Duration::from_millis(100),
};

#[test]
fn the_gap_of_a_download_is_between_two_arrivals() {
    let content = Content::file(30, 1);
    let mut receipt = Receipt::new(&content, PLAYER);
    // Before the first arrival there is none.
    assert_eq!(receipt.gap_by(at(5_000)), None);
    for (ms, bytes) in [(100, 0..10), (150, 10..20), (400, 20..30)] {
        receipt.on_bytes(at(ms), &content.bytes()[bytes], &content);
    }
    assert!(!receipt.is_intact(&content), "its end is missing");
    assert_eq!(receipt.gap_by(at(500)), Some((at(150), at(400))));
    // One that lasts counts, until the end has come.
    assert_eq!(receipt.gap_by(at(900)), Some((at(400), at(900))));
    receipt.on_end(at(450));
    assert_eq!(receipt.gap_by(at(900)), Some((at(150), at(400))));
    assert!(receipt.is_intact(&content));
    assert_eq!(receipt.freezes(at(900)), None);
}

#[test]
fn the_gap_of_video_is_between_two_complete_frames() {
    let source: SourceSpec = "cbr:1mbit,fps=25".parse().unwrap();
    let content = Content::video(&source, Duration::from_millis(400), 1).unwrap();
    let frame = content.frames()[0].size as usize;
    assert_eq!(content.frames().len(), 10);
    let mut receipt = Receipt::new(&content, PLAYER);
    let mut sent = 0;
    let mut more = |receipt: &mut Receipt, ms, bytes| {
        let piece = &content.bytes()[sent..sent + bytes];
        receipt.on_bytes(at(ms), piece, &content);
        sent += bytes;
    };
    more(&mut receipt, 40, frame);
    more(&mut receipt, 80, frame);
    // A part of a frame is no progress.
    more(&mut receipt, 120, frame / 2);
    more(&mut receipt, 600, frame - frame / 2);
    assert_eq!(receipt.gap_by(at(610)), Some((at(80), at(600))));
    // Not enough was buffered to play on for half a second.
    more(&mut receipt, 610, 5 * frame);
    more(&mut receipt, 1_500, 2 * frame);
    assert_eq!(receipt.freezes(at(1_500)), Some(1));
    receipt.on_end(at(1_500));
    assert!(receipt.is_intact(&content));
}

#[test]
fn other_bytes_are_noticed() {
    let content = Content::file(30, 1);
    let mut receipt = Receipt::new(&content, PLAYER);
    receipt.on_bytes(at(1), Content::file(30, 2).bytes(), &content);
    receipt.on_end(at(2));
    assert!(!receipt.is_intact(&content));
}
