//! `perf` over HTTP: every version, both programs and the loopback.

use crate::support::{Running, Site, failed, keys, run, succeeded, swiftwater};
use serde_json::Value;
use tempfile::TempDir;

const VERSIONS: [&str; 3] = ["h3", "h2", "h1"];

fn json(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|_| panic!("not JSON: {output:?}"))
}

/// Runs `swiftwater perf` with the words of `line` and gives its JSON.
fn perf(line: &str) -> Value {
    let mut command = swiftwater();
    command
        .arg("perf")
        .args(line.split_whitespace())
        .arg("--json");
    json(&succeeded(&command.output().unwrap()))
}

#[test]
fn transfers_arrive_whole_over_every_version() {
    for protocol in VERSIONS {
        for load in ["download", "upload"] {
            let line = format!("loopback --protocol {protocol} {load} --bytes 3MB --streams 3");
            let report = perf(&line);
            assert_eq!(report["load"], load);
            assert_eq!(report["protocol"], protocol);
            assert_eq!(report["bytes"], 3_000_000);
            assert_eq!(report["completed"], 3);
            let connections = if protocol == "h1" { 3 } else { 1 };
            assert_eq!(report["connections"], connections, "{protocol}");
            assert!(report["goodput_bps"].as_f64().unwrap() > 0.0);
            assert_eq!(report["stats"].is_object(), protocol == "h3");
            if cfg!(unix) {
                assert!(report["cpu_s_per_gb"].as_f64().unwrap() > 0.0);
                assert!(report["server_cpu_s_per_gb"].as_f64().unwrap() > 0.0);
            }
        }
    }
}

#[test]
fn requests_are_counted_over_every_version() {
    for protocol in VERSIONS {
        let line = format!(
            "loopback --protocol {protocol} requests --connections 2 --in-flight 3 --up 20 \
             --down 30 --duration 100ms"
        );
        let report = perf(&line);
        let completed = report["completed"].as_u64().unwrap();
        assert!(completed >= 6, "{protocol}: {completed}");
        assert_eq!(report["bytes"], completed * 50);
        let connections = if protocol == "h1" { 6 } else { 2 };
        assert_eq!(report["connections"], connections, "{protocol}");
        assert_eq!(keys(&report["latency_ms"]), ["max", "mean", "p50", "p99"]);
        // Several connections have no numbers in common.
        assert!(report["stats"].is_null());
        if cfg!(unix) {
            assert!(report["cpu_us_each"].as_f64().unwrap() > 0.0);
            assert!(report["server_cpu_us_each"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn handshakes_are_counted_over_every_version() {
    for protocol in VERSIONS {
        let line =
            format!("loopback --protocol {protocol} handshakes --in-flight 2 --duration 100ms");
        let report = perf(&line);
        let completed = report["completed"].as_u64().unwrap();
        assert!(completed >= 2, "{protocol}: {completed}");
        assert_eq!(report["connections"], completed);
    }
}

/// `perf server` in a directory of its own.
fn server(flags: &[&str]) -> (TempDir, Running, String) {
    let directory = TempDir::new().unwrap();
    let mut command = swiftwater();
    command.args(["perf", "server", "--listen", "127.0.0.1:0", "--json"]);
    command.arg("--state-dir").arg(directory.path()).args(flags);
    let server = Running::start(command);
    let address = server.first["address"].as_str().unwrap().to_owned();
    (directory, server, address)
}

#[test]
fn one_server_answers_every_protocol_on_one_port_number() {
    let (directory, mut server, address) = server(&[]);
    let ca = directory.path().join("dev-cert.pem");
    let ca = ca.to_str().unwrap();
    for protocol in ["perf", "h3", "h2", "h1"] {
        let line =
            format!("client {address} --ca {ca} --protocol {protocol} download --bytes 100k");
        let report = perf(&line);
        assert_eq!(report["bytes"], 100_000, "{protocol}");
        assert_eq!(report["protocol"], protocol);
        if protocol == "perf" || protocol == "h3" {
            let row = server.next();
            assert_eq!(row["protocol"], protocol);
            assert_eq!(row["requests"], 1);
            assert_eq!(row["down_bytes"], 100_000);
        }
    }
    let line = format!("client {address} --ca {ca} --protocol h3 upload --bytes 70k");
    perf(&line);
    assert_eq!(server.next()["up_bytes"], 70_000);
}

#[test]
fn without_tcp_there_is_http3_only() {
    let (_directory, _server, address) = server(&["--no-tcp"]);
    let line = format!("client {address} --insecure --protocol h3 download --bytes 1k");
    assert_eq!(perf(&line)["bytes"], 1_000);
    let line = [
        "perf",
        "client",
        &address,
        "--insecure",
        "--protocol",
        "h2",
        "download",
    ];
    assert!(failed(&run(line), 4).contains("TCP"));
}

#[test]
fn certificates_are_checked_over_tcp_too() {
    let (_directory, _server, address) = server(&[]);
    let (other, _running, _) = self::server(&[]);
    let ca = other.path().join("dev-cert.pem");
    let ca = ca.to_str().unwrap();
    for protocol in VERSIONS {
        let line = [
            "perf",
            "client",
            &address,
            "--ca",
            ca,
            "--protocol",
            protocol,
            "handshakes",
        ];
        failed(&run(line), 5);
    }
}

#[test]
fn servers_of_something_else_are_recognized() {
    let site = Site::start(&[("index.html", b"hello")]);
    let address = format!("127.0.0.1:{}", site.port);
    let ca = site.certificate();
    let ca = ca.to_str().unwrap();
    for protocol in VERSIONS {
        let line = [
            "perf",
            "client",
            &address,
            "--ca",
            ca,
            "--protocol",
            protocol,
            "requests",
        ];
        let error = failed(&run(line), 8);
        assert!(
            error.contains("404") && error.contains("perf server"),
            "{error}"
        );
    }
}
