//! Output for machines: names of fields, and that it is there.

use std::time::Duration;

use crate::support::{Running, failed, keys, run, succeeded, swiftwater};
use serde_json::Value;
use swiftwater_cli::demo::presets::Preset;
use swiftwater_cli::demo::row::{FileRow, table};
use swiftwater_cli::demo::verdict;
use swiftwater_cli::exit::Exit;
use swiftwater_cli::perf::report::Latency;
use swiftwater_cli::table::{bytes, percent, rate, time};

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|_| panic!("not JSON: {output:?}"))
}

#[test]
fn sim_reports_what_is_documented() {
    let line = [
        "sim",
        "--flow",
        "cubic",
        "--flow",
        "newreno,start=1s,bytes=300k",
        "--rate",
        "20mbit",
        "--rtt",
        "30.6ms",
        "--buffer",
        "1bdp",
        "--loss",
        "0.1%",
        "--duration",
        "3s",
        "--seed",
        "1",
        "--json",
    ];
    let output = succeeded(&run(line));
    let mut report = json(&output);
    assert_eq!(keys(&report), ["flows", "queue", "wall_s"]);
    assert_eq!(
        keys(&report["queue"]),
        ["dropped_packets", "max_bytes", "mean_bytes"]
    );
    let flows = report["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        let expected = [
            "bytes",
            "cc",
            "finish_s",
            "goodput_bps",
            "paths",
            "retransmitted_share",
            "srtt_ms_mean",
        ];
        assert_eq!(keys(flow), expected);
    }
    assert_eq!(flows[0]["cc"], "cubic");
    assert!(flows[0]["finish_s"].is_null());
    assert_eq!(flows[1]["cc"], "newreno");
    assert_eq!(flows[1]["bytes"], 300_000);
    assert!(flows[1]["finish_s"].as_f64().unwrap() > 1.0);
    assert!(report["wall_s"].as_f64().unwrap() > 0.0);

    // The same again, except for the time.
    let mut again = json(&succeeded(&run(line)));
    report["wall_s"] = Value::Null;
    again["wall_s"] = Value::Null;
    assert_eq!(report, again);
}

#[test]
fn sim_over_two_paths_reports_each_of_them() {
    let line = [
        "sim",
        "--flow",
        "cubic",
        "--path",
        "rate=20mbit,rtt=20ms",
        "--path",
        "rate=10mbit,loss=ge:0.1%,60%",
        "--duration",
        "4s",
        "--json",
    ];
    let report = json(&succeeded(&run(line)));
    let flow = &report["flows"][0];
    assert!(flow["goodput_bps"].as_f64().unwrap() > 21e6, "{flow}");
    let paths = flow["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert_eq!(keys(path), ["bytes_sent", "copies", "srtt_ms"]);
        assert!(path["bytes_sent"].as_u64().unwrap() > 500_000, "{path}");
        assert!(path["srtt_ms"].as_f64().unwrap() >= 20.0, "{path}");
    }
    let error = failed(&run(["sim", "--path", "speed=20mbit"]), 2);
    assert!(error.contains("rate="), "{error}");
    let error = failed(
        &run(["sim", "--path", "rate=1mbit", "--scheduler", "best"]),
        2,
    );
    assert!(error.contains("min-rtt"), "{error}");
}

#[test]
fn sim_in_words_and_with_a_real_cipher() {
    let output = succeeded(&run([
        "sim",
        "--duration",
        "1s",
        "--rate",
        "5mbit",
        "--cipher",
        "aes",
    ]));
    assert!(
        output.contains("1 cubic") && output.contains("queue:"),
        "{output}"
    );
}

#[test]
fn sim_follows_a_trace() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("trace.csv");
    std::fs::write(
        &file,
        "t_ms,rate_kbps,rtt_ms,loss\n0,2000,,\n500,8000,,\n1000,2000,,\n",
    )
    .unwrap();
    let trace = file.to_str().unwrap();
    let line = [
        "sim",
        "--trace",
        trace,
        "--duration",
        "3s",
        "--buffer",
        "50kB",
        "--json",
    ];
    let goodput = json(&succeeded(&run(line)))["flows"][0]["goodput_bps"]
        .as_f64()
        .unwrap();
    assert!(goodput > 1e6 && goodput < 5e6, "{goodput}");
}

#[test]
fn demo_reports_what_is_documented() {
    let output = run([
        "demo",
        "files",
        "--quick",
        "--preset",
        "home-broadband",
        "--json",
    ]);
    let rows: Vec<Value> = succeeded(&output).lines().map(json).collect();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let expected = [
            "bytes",
            "completion_ms",
            "file",
            "first_byte_ms",
            "goodput_bps",
            "handshake_ms",
            "preset",
            "retransmitted_share",
            "sha256_ok",
            "srtt_ms",
        ];
        assert_eq!(keys(row), expected);
        assert_eq!(row["preset"], "home-broadband");
        assert_eq!(row["sha256_ok"], true);
        // The link alone has a round-trip time of 24 ms.
        let at = |key: &str| row[key].as_f64().unwrap();
        assert!(at("handshake_ms") >= 24.0 && at("srtt_ms") >= 24.0);
        assert!(at("first_byte_ms") > at("handshake_ms"));
        assert!(at("completion_ms") > at("first_byte_ms"));
        assert!(at("goodput_bps") < 50e6);
    }
}

fn row(sha256_ok: bool) -> FileRow {
    FileRow {
        preset: Preset::Satellite,
        file: "x",
        bytes: 1,
        sha256_ok,
        handshake_ms: Some(1.0),
        first_byte_ms: None,
        completion_ms: None,
        goodput_bps: None,
        retransmitted_share: None,
        srtt_ms: None,
        error: None,
        order: 0,
    }
}

#[test]
fn demo_fails_if_anything_differs() {
    assert!(verdict(&[row(true), row(true)]).is_ok());
    let failure = verdict(&[row(true), row(false)]).unwrap_err();
    assert_eq!(failure.exit, Exit::Differs);
    assert!(verdict(&[]).is_err(), "nothing moved is no success");
    let table = table(&[row(false)]);
    assert!(table.contains("FAILED"));
    // With the wait in queues, which a network's own round-trip time is without.
    assert!(table.contains("smoothed RTT"), "{table}");
}

#[test]
fn demo_networks_are_valid() {
    for preset in [
        Preset::HomeBroadband,
        Preset::Lte,
        Preset::LossyWifi,
        Preset::Satellite,
    ] {
        for seed in [0, 1, u64::MAX] {
            let links = preset.links(seed);
            links.up.validate().unwrap();
            links.down.validate().unwrap();
        }
    }
    let satellite = Preset::Satellite.links(1);
    assert_eq!(
        satellite.up.delay + satellite.down.delay,
        Duration::from_millis(600)
    );
    let wifi = Preset::LossyWifi.links(1);
    assert!((wifi.down.loss.mean_loss() - 0.05).abs() < 1e-9);
}

#[test]
fn perf_loopback_measures_both_ends() {
    for load in ["download", "upload"] {
        let line = [
            "perf",
            "loopback",
            "--json",
            "--suite",
            "aes128",
            load,
            "--bytes",
            "2MB",
            "--streams",
            "3",
        ];
        let report = json(&succeeded(&run(line)));
        assert_eq!(report["load"], load);
        assert_eq!(report["bytes"], 2_000_000);
        assert!(report["goodput_bps"].as_f64().unwrap() > 0.0);
        if cfg!(unix) {
            for key in [
                "cpu_s",
                "cpu_s_per_gb",
                "server_cpu_s",
                "server_cpu_s_per_gb",
            ] {
                assert!(report[key].as_f64().unwrap() > 0.0, "{key}");
            }
        }
    }
}

#[test]
fn perf_counts_requests_and_handshakes() {
    let line = [
        "perf",
        "loopback",
        "--json",
        "requests",
        "--duration",
        "100ms",
        "--up",
        "10",
        "--down",
        "20",
        "--in-flight",
        "4",
    ];
    let report = json(&succeeded(&run(line)));
    let completed = report["completed"].as_u64().unwrap();
    assert!(completed >= 4);
    assert_eq!(report["bytes"], completed * 30);
    assert_eq!(keys(&report["latency_ms"]), ["max", "mean", "p50", "p99"]);
    let line = [
        "perf",
        "loopback",
        "--json",
        "handshakes",
        "--duration",
        "100ms",
    ];
    assert!(json(&succeeded(&run(line)))["completed"].as_u64().unwrap() >= 8);
}

#[test]
fn perf_client_and_server() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut server = swiftwater();
    server.args([
        "perf",
        "server",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--state-dir",
    ]);
    server.arg(directory.path());
    let mut server = Running::start(server);
    let address = server.first["address"].as_str().unwrap().to_owned();
    let ca = directory.path().join("dev-cert.pem");
    let ca = ca.to_str().unwrap();
    let line = [
        "perf", "client", &address, "--ca", ca, "download", "--bytes", "1MB", "--json",
    ];
    assert_eq!(json(&succeeded(&run(line)))["bytes"], 1_000_000);
    let row = server.next();
    assert_eq!(
        (&row["event"], &row["down_bytes"]),
        (&"connection".into(), &1_000_000.into())
    );
    let wrong = ["perf", "client", "nowhere", "upload"];
    assert!(failed(&run(wrong), 2).contains("host:port"));
}

#[test]
fn numbers_for_people() {
    assert_eq!(
        [bytes(0), bytes(999), bytes(1_000)],
        ["0 B", "999 B", "1.0 kB"]
    );
    assert_eq!([bytes(999_949), bytes(999_950)], ["999.9 kB", "1.0 MB"]);
    assert_eq!(bytes(u64::MAX), "18446744.1 TB");
    assert_eq!(
        [rate(0.0), rate(12.34e6), rate(2.5e9)],
        ["0.0 kbit/s", "12.3 Mbit/s", "2.50 Gbit/s"]
    );
    assert_eq!([rate(f64::INFINITY), rate(f64::NAN)], ["-", "-"]);
    assert_eq!(time(Duration::from_micros(1_500)), "1.5 ms");
    assert_eq!(time(Duration::from_millis(1_500)), "1.50 s");
    assert_eq!(percent(0.0512), "5.12 %");
}

#[test]
fn latencies() {
    assert_eq!(Latency::of(Vec::new()), None);
    let samples = (1..=101).rev().map(Duration::from_millis).collect();
    let latency = Latency::of(samples).unwrap();
    assert_eq!(
        (latency.p50, latency.p99, latency.max),
        (51.0, 100.0, 101.0)
    );
    assert!((latency.mean - 51.0).abs() < 1e-9);
}
