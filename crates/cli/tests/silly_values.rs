//! Meaningless values: one clear line each, at once.

use std::fs;

use crate::support::{failed, names, run, swiftwater};
use tempfile::TempDir;

/// The line that a command line is refused with.
#[track_caller]
fn refused(line: &str) -> String {
    let args = line.split(' ').map(|arg| arg.replace('_', " "));
    failed(&swiftwater().args(args).output().expect("it starts"), 2)
}

#[test]
fn negative_numbers_are_no_flags() {
    for line in [
        "sim --rate -5mbit",
        "sim --rtt -1ms",
        "sim --loss -1%",
        "sim --seed -1",
        "sim --duration -1s",
        "get https://h/x --connect-timeout -1s",
        "perf loopback upload --bytes -1",
        "relay --listen 127.0.0.1:0 --to 127.0.0.1:9 --delay -1ms",
    ] {
        let error = refused(line);
        assert!(error.contains("negative"), "{line}: {error}");
    }
    assert!(refused("sim -x").contains("unexpected argument"));
}

#[test]
fn no_time_is_too_little() {
    for line in [
        "sim --rtt 0",
        "sim --duration 0s",
        "get https://h/x --connect-timeout 0ms",
        "perf client h:1 requests --duration 0s",
        "get https://h/x --initial-rtt 0ms",
        "get https://h/x --initial-pto 0ms",
        "perf client h:1 handshakes --duration 0s",
        "relay --listen 127.0.0.1:0 --to 127.0.0.1:9 --stats 0s",
    ] {
        let error = refused(line);
        assert!(error.contains("greater than zero"), "{line}: {error}");
    }
}

#[test]
fn simulations_that_cannot_be_meant() {
    for (line, words) in [
        ("sim --rate 0", "unit"),
        ("sim --rate 0bit", "rate"),
        ("sim --rate nan", "rate"),
        ("sim --rate 99999999gbit", "at most"),
        ("sim --rtt nan", "rtt"),
        ("sim --rtt 99999999999999min", "too long"),
        ("sim --duration inf", "duration"),
        ("sim --duration 1441min", "a day"),
        ("sim --duration 99999999999999min", "too long"),
        ("sim --loss nan", "loss"),
        ("sim --loss 101%", "loss"),
        ("sim --buffer 1e300bdp", "buffer"),
        ("sim --flow cubic,bytes=-1", "size"),
        ("sim --flow cubic,start=10s", "flow 1 starts"),
        ("sim --flow cubic --flow cubic,start=99s", "flow 2 starts"),
        ("sim --flow cubic,", "property"),
        ("sim --access-rate 0", "rate"),
    ] {
        let error = refused(line);
        assert!(error.contains(words), "{line}: {error}");
    }
}

#[test]
fn transports_that_cannot_be_meant() {
    for (line, words) in [
        ("get https://h/x --pto-backoff 0.5", "from 1 to 8"),
        ("get https://h/x --pto-backoff nan", "from 1 to 8"),
        ("get https://h/x --pto-backoff 9", "from 1 to 8"),
        ("get https://h/x --initial-window 1", "2..=10000"),
        ("get https://h/x --max-datagram-size 1199", "1200..=65527"),
        (
            "get https://h/x --max-datagram-size 1400 --no-mtu-discovery",
            "cannot be used with",
        ),
    ] {
        let error = refused(line);
        assert!(error.contains(words), "{line}: {error}");
    }
}

#[test]
fn addresses_that_cannot_be_connected_to() {
    let directory = TempDir::new().expect("a directory");
    let out = directory.path().to_str().expect("UTF-8");
    // IPv6 addresses are shown as they are written.
    let error = failed(
        &run(["get", "https://[::]:9/x", "--insecure", "-o", out]),
        4,
    );
    assert!(error.contains(" [::]:9"), "{error}");
    for line in [
        "get https://h:0/x",
        "get https://h:65536/x",
        "get https://[::1/x",
        "get https://[::1%eth0]/x",
        "get https://h/%zz",
        "get https://h/directory/",
        "get https://h_h/x",
        "serve /tmp --listen 127.0.0.1",
        "relay --listen 127.0.0.1:0 --to h:0",
    ] {
        refused(line);
    }
    assert!(names(directory.path()).is_empty());
}

#[test]
fn certificates_for_no_host() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    for name in ["", "a b", "ü.example", "a..b", "*", "https://host"] {
        let serve = ["serve", path, "--name", name, "--state-dir", path];
        let error = failed(&run(serve), 2);
        assert!(error.contains("neither a host name"), "{name}: {error}");
    }
    assert!(names(directory.path()).is_empty());
}

#[test]
fn directories_that_are_files() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    let file = file.to_str().expect("UTF-8");
    for line in [
        vec![
            "get",
            "https://127.0.0.1:9/x",
            "--insecure",
            "--protocol",
            "hq",
            "-o",
            file,
        ],
        vec!["serve", file],
        vec!["serve", "/", "--state-dir", file],
        vec!["man", file],
    ] {
        let output = swiftwater().args(&line).output().expect("it starts");
        let error = failed(&output, 7);
        assert!(
            error.contains(file) && error.contains("not a directory"),
            "{error}"
        );
    }
}

#[test]
fn the_demo_names_the_directory_it_cannot_write_to() {
    let mut demo = swiftwater();
    demo.args(["demo", "files", "--quick"]);
    for variable in ["TMPDIR", "TMP", "TEMP"] {
        demo.env(variable, "/no/such/directory");
    }
    let error = failed(&demo.output().expect("it starts"), 7);
    assert!(error.contains("/no/such/directory"), "{error}");
}

/// A device that never ends must not fill the memory. (It takes the time to read the limit.)
#[cfg(unix)]
#[test]
fn endless_files() {
    let error = failed(&run(["sim", "--trace", "/dev/zero"]), 7);
    assert!(error.contains("/dev/zero: larger than"), "{error}");
    let get = ["get", "https://127.0.0.1:9/x", "--ca", "/dev/zero"];
    let error = failed(&run(get), 7);
    assert!(error.contains("/dev/zero: larger than"), "{error}");
}
