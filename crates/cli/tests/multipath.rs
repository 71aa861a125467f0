//! `get` and `perf` with several paths, between loopback addresses.

#![cfg(target_os = "linux")]

use std::fs;

use crate::support::{Running, Site, failed, succeeded, swiftwater};
use serde_json::Value;

/// Bytes that don't repeat soon.
fn data(size: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let step = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(step).take(size).collect()
}

fn first_row(output: &str) -> Value {
    serde_json::from_str(output.lines().next().unwrap()).unwrap()
}

/// What a path of a row received, bytes.
fn received(row: &Value, path: usize) -> u64 {
    row["paths"][path]["bytes_received"].as_u64().unwrap()
}

/// A relay to the server, slow enough that paths share the load.
fn relay(site: &Site, flags: &[&str]) -> (Running, String) {
    relay_to(&format!("127.0.0.1:{}", site.port), flags)
}

/// The same to any server, and the address at which it is reached.
pub(crate) fn relay_to(server: &str, flags: &[&str]) -> (Running, String) {
    let mut command = swiftwater();
    command
        .args(["relay", "--json", "--listen", "127.0.0.1:0", "--to", server])
        .args(["--rate", "20mbit", "--delay", "5ms", "--stats", "50ms"])
        .args(flags);
    let relay = Running::start(command);
    let listen = relay.first["listen"].as_str().unwrap().to_owned();
    (relay, listen)
}

#[test]
fn a_download_uses_several_paths() {
    let file = data(5_000_000);
    let site = Site::start_with(&[("file", &file)], &["--multipath"]);
    let (_first, first) = relay(&site, &[]);
    let (_second, second) = relay(&site, &[]);
    for protocol in ["h3", "hq"] {
        let output = swiftwater()
            .args([
                "get",
                "--protocol",
                protocol,
                "--json",
                "--force",
                "--no-state",
            ])
            .args([&format!("https://{first}/file"), "--ca"])
            .arg(site.certificate())
            .arg("-o")
            .arg(site.path("out/"))
            .args(["--path", "127.0.0.1", "--path"])
            .arg(format!("127.0.0.2,to={second}"))
            .output()
            .unwrap();
        let row = first_row(&succeeded(&output));
        assert!(fs::read(site.path("out").join("file")).unwrap() == file);
        assert_eq!(row["paths"].as_array().unwrap().len(), 2, "{row}");
        for path in 0..2 {
            assert!(received(&row, path) > 500_000, "{row}");
            assert_eq!(row["paths"][path]["id"], path);
        }
        assert_eq!(row["paths"][1]["remote"], second);
        let local = row["paths"][1]["local"].as_str().unwrap();
        assert!(local.starts_with("127.0.0.2:"), "{local}");
        for field in ["bytes_sent", "copies", "srtt_ms"] {
            assert!(row["paths"][1][field].is_number(), "{field}: {row}");
        }
    }
}

#[test]
fn a_download_survives_the_end_of_either_path() {
    let file = data(5_000_000);
    let site = Site::start_with(&[("file", &file)], &["--scheduler", "round-robin"]);
    for ends_first in [true, false] {
        let (one, first) = relay(&site, &[]);
        let (other, second) = relay(&site, &[]);
        let get = swiftwater()
            .args(["get", "--protocol", "h3", "--json", "--force", "--no-state"])
            .args([&format!("https://{first}/file"), "--ca"])
            .arg(site.certificate())
            .arg("-o")
            .arg(site.path("out/"))
            .args(["--path", "127.0.0.1", "--path"])
            .arg(format!("127.0.0.2,to={second}"))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (mut ended, kept) = if ends_first {
            (one, other)
        } else {
            (other, one)
        };
        // Once it carries data.
        loop {
            let counters = ended.next();
            if counters["down"]["delivered_bytes"].as_u64().unwrap_or(0) > 300_000 {
                break;
            }
        }
        drop(ended);
        let output = get.wait_with_output().unwrap();
        succeeded(&output);
        assert!(fs::read(site.path("out").join("file")).unwrap() == file);
        drop(kept);
    }
}

#[test]
fn a_backup_path_stays_in_reserve() {
    let file = data(2_000_000);
    let site = Site::start_with(&[("file", &file)], &["--multipath"]);
    let (_relay, relayed) = relay(&site, &[]);
    let output = swiftwater()
        .args(["get", "--protocol", "h3", "--json", "--no-state"])
        .args([&format!("https://{relayed}/file"), "--ca"])
        .arg(site.certificate())
        .arg("-o")
        .arg(site.path("out/"))
        .args(["--path", "127.0.0.1", "--path"])
        .arg(format!(
            "127.0.0.2,backup,cost=2,to=127.0.0.1:{}",
            site.port
        ))
        .output()
        .unwrap();
    let row = first_row(&succeeded(&output));
    assert!(received(&row, 0) > 1_500_000, "{row}");
    // What was under way before the server had the status.
    assert!(received(&row, 1) < 500_000, "{row}");
}

#[test]
fn a_server_that_permits_one_path_is_served_by_one() {
    let site = Site::start(&[("file", &data(100_000))]);
    let output = site
        .get(&["/file"])
        .args(["--json", "--path", "127.0.0.1", "--path", "127.0.0.2"])
        .output()
        .unwrap();
    let row = first_row(&succeeded(&output));
    assert_eq!(row["paths"].as_array().unwrap().len(), 1, "{row}");
    assert!(row["error"].is_null());
}

#[test]
fn limits_and_operations_are_carried_out_at_either_end() {
    let file = data(5_000_000);
    for at_client in [true, false] {
        let abandon = ["--path-operation", "1MB,abandon,0"];
        let (client, server): (&[_], &[_]) = if at_client {
            (&abandon, &[])
        } else {
            (&[], &abandon)
        };
        let server = [&["--multipath", "--max-paths", "2"], server].concat();
        let site = Site::start_with(&[("file", &file)], &server);
        let (_relay, address) = relay(&site, &[]);
        let output = swiftwater()
            .args(["get", "--json", "--protocol", "hq", "--force", "--no-state"])
            .args([&format!("https://{address}/file"), "--ca"])
            .arg(site.certificate())
            .arg("-o")
            .arg(site.path("out/"))
            .args(["--path", "127.0.0.1", "--path", "127.0.0.2"])
            .args(client)
            .output()
            .unwrap();
        let row = first_row(&succeeded(&output));
        assert!(fs::read(site.path("out").join("file")).unwrap() == file);
        let received = |id: u64| {
            let paths = row["paths"].as_array().unwrap().iter();
            let path = paths.filter(|path| path["id"] == id);
            path.map(|path| path["bytes_received"].as_u64().unwrap())
                .sum::<u64>()
        };
        assert!(received(0) < 2_500_000, "{at_client}: {row}");
        assert!(received(1) > 2_500_000, "{at_client}: {row}");
    }
    let site = Site::start_with(&[("file", &data(1000))], &["--max-paths", "1"]);
    let output = site
        .get(&["/file"])
        .args(["--json", "--path", "127.0.0.1", "--path", "127.0.0.2"])
        .output()
        .unwrap();
    let row = first_row(&succeeded(&output));
    assert_eq!(row["paths"].as_array().unwrap().len(), 1, "{row}");
    for operation in ["1MB", "1MB,abandon", "1MB,forget,1", "x,abandon,1"] {
        let mut get = site.get(&["/file"]);
        let output = get.args(["--path-operation", operation]).output().unwrap();
        assert!(failed(&output, 2).contains("1MB,rotate"));
    }
}

#[test]
fn paths_that_cannot_be_are_refused_at_once() {
    let site = Site::start(&[("file", &data(10))]);
    for path in ["192.0.2.77", "nosuchif0", "::1"] {
        let output = site
            .get(&["/file"])
            .args(["--path", path])
            .output()
            .unwrap();
        let message = failed(&output, 2);
        assert!(message.contains(path), "{message}");
    }
    for path in [
        "",
        "127.0.0.1,often",
        "127.0.0.1,cost=x",
        "127.0.0.1,to=here",
    ] {
        let output = site
            .get(&["/file"])
            .args(["--path", path])
            .output()
            .unwrap();
        let message = failed(&output, 2);
        assert!(message.contains("wlan0"), "{message}");
    }
    let mut get = site.get(&["/file"]);
    let output = get.args(["--scheduler", "none-such"]).output().unwrap();
    let message = failed(&output, 2);
    assert!(message.contains("round-robin"), "{message}");
    let output = swiftwater()
        .args([
            "get",
            "https://127.0.0.1:1/",
            "--protocol",
            "tcp",
            "--path",
            "127.0.0.1",
        ])
        .output()
        .unwrap();
    assert!(failed(&output, 2).contains("QUIC"));
}

#[test]
fn perf_measures_with_all_paths_open() {
    let output = swiftwater()
        .args(["perf", "loopback", "--json", "--scheduler", "round-robin"])
        .args(["--path", "127.0.0.1", "--path", "127.0.0.2"])
        .args(["download", "--bytes", "20MB"])
        .output()
        .unwrap();
    let row: Value = serde_json::from_str(&succeeded(&output)).unwrap();
    for path in 0..2 {
        assert!(received(&row["stats"], path) > 2_000_000, "{row}");
    }
}
