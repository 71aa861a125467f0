//! Downloads and servers that are stopped in the middle, and downloads that meet.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Running, Site, failed, names, succeeded, swiftwater};

const LARGE: usize = 2_000_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|i| (i * 7 % 253) as u8).collect()
}

/// A relay to `site` that is slow enough for something to happen in the middle.
fn slow_relay(site: &Site) -> Running {
    let to = format!("127.0.0.1:{}", site.port);
    let mut relay = swiftwater();
    relay.args(["relay", "--listen", "127.0.0.1:0", "--to", &to]);
    relay.args([
        "--rate", "8mbit", "--delay", "1ms", "--json", "--stats", "20ms",
    ]);
    Running::start(relay)
}

/// A `get` of the large file through the relay.
fn get(site: &Site, relay: &Running) -> Command {
    let listen = relay.first["listen"].as_str().expect("an address");
    let mut get = swiftwater();
    get.args(["get", "--protocol", "hq"])
        .args([&format!("https://{listen}/large"), "--ca"])
        .arg(site.certificate())
        .arg("-o")
        .arg(site.path("out"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    get
}

/// Waits until a good part of the file has passed.
fn wait_for_bytes(relay: &mut Running) {
    while relay.next()["down"]["delivered_bytes"].as_u64() < Some(200_000) {}
}

fn signal(pid: u32, name: &str) {
    let kill = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(kill.expect("kill runs").success());
}

#[test]
fn a_killed_download_leaves_no_file_and_the_next_succeeds() {
    let data = large();
    let site = Site::start(&[("large", &data)]);
    let mut relay = slow_relay(&site);
    let mut killed = get(&site, &relay).spawn().expect("it starts");
    wait_for_bytes(&mut relay);
    killed.kill().expect("it runs");
    killed.wait().expect("it ended");
    let left = names(&site.path("out"));
    assert!(
        matches!(&left[..], [part] if part.starts_with(".large.part-")),
        "{left:?}"
    );
    // Without --force: nothing has the final name.
    succeeded(&site.get(&["/large"]).output().expect("it starts"));
    assert!(fs::read(site.path("out").join("large")).expect("it is there") == data);
}

#[test]
fn an_interrupted_download_leaves_nothing() {
    let site = Site::start(&[("large", &large())]);
    let mut relay = slow_relay(&site);
    let running = get(&site, &relay).spawn().expect("it starts");
    wait_for_bytes(&mut relay);
    signal(running.id(), "-INT");
    let output = running.wait_with_output().expect("it ended");
    assert!(failed(&output, 130).contains("interrupted"));
    assert!(names(&site.path("out")).is_empty());
}

/// As `get ... | head -1` does.
#[test]
fn a_reader_that_goes_away_leaves_no_part_files() {
    let site = Site::start(&[("large", &large()), ("small", b"x")]);
    let relay = slow_relay(&site);
    let mut get = get(&site, &relay);
    let listen = relay.first["listen"].as_str().expect("an address");
    get.args([&format!("https://{listen}/small"), "--json"]);
    let mut running = get.stdout(Stdio::piped()).spawn().expect("it starts");
    drop(running.stdout.take());
    let output = running.wait_with_output().expect("it ended");
    assert_eq!(output.status.code(), Some(0));
    let left = names(&site.path("out"));
    assert_eq!(left, ["small"], "only what was complete");
}

#[cfg(target_os = "linux")]
#[test]
fn a_demo_whose_results_cannot_be_read_leaves_no_files() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let full = fs::File::options().write(true).open("/dev/full");
    let mut demo = swiftwater();
    demo.args(["demo", "files", "--quick", "--json"])
        .args(["--preset", "home-broadband"])
        .env("TMPDIR", directory.path())
        .stdout(full.expect("it is there"));
    let error = failed(&demo.output().expect("it starts"), 1);
    assert!(error.contains("standard output"), "{error}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn of_two_downloads_to_one_file_one_wins() {
    let data = large();
    let site = Site::start(&[("large", &data)]);
    let relay = slow_relay(&site);
    let both = [(); 2].map(|()| get(&site, &relay).spawn().expect("it starts"));
    let mut codes = both.map(|get| get.wait_with_output().expect("it ended").status.code());
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(7)]);
    assert_eq!(names(&site.path("out")), ["large"]);
    assert!(fs::read(site.path("out").join("large")).expect("it is there") == data);
}

#[test]
fn a_second_ctrl_c_stops_a_server_at_once() {
    let site = Site::start(&[("large", &large())]);
    // A server of its own, for its standard error.
    let mut serve = swiftwater();
    serve
        .arg("serve")
        .arg(site.path("site"))
        .args(["--listen", "127.0.0.1:0", "--json", "--hq", "--state-dir"])
        .arg(site.path("state"))
        .args(["--grace", "60min"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut serve = serve.spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(serve.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("a line");
    let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let address = event["address"].as_str().expect("an address");
    let port = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    let site = Site {
        port: port.expect("a port"),
        ..site
    };

    let mut relay = slow_relay(&site);
    let running = get(&site, &relay).spawn().expect("it starts");
    wait_for_bytes(&mut relay);
    signal(serve.id(), "-INT");
    let mut errors = BufReader::new(serve.stderr.take().expect("piped"));
    line.clear();
    errors.read_line(&mut line).expect("a line");
    assert!(line.contains("Ctrl-C again"), "{line}");
    signal(serve.id(), "-INT");
    assert_eq!(serve.wait().expect("it ended").code(), Some(130));
    failed(&running.wait_with_output().expect("it ended"), 4);
    assert!(names(&site.path("out")).is_empty());
}
