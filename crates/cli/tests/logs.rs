//! `--qlog`: files that can be read, or one clear line.

use std::fs;
use std::path::Path;

use crate::support::{Site, failed, names, succeeded, swiftwater};
use serde_json::Value;
use tempfile::TempDir;

/// The records of all logs in a directory whose names contain `side`, a vector per file.
fn logs(directory: &Path, side: &str) -> Vec<Vec<Value>> {
    let mut names = names(directory);
    names.retain(|name| name.contains(side));
    let read = |name: &String| {
        let text = fs::read_to_string(directory.join(name)).unwrap();
        let records = text.split('\u{1e}').skip(1);
        records
            .map(|record| serde_json::from_str(record).unwrap())
            .collect()
    };
    names.iter().map(read).collect()
}

fn count(log: &[Value], name: &str) -> usize {
    log.iter().filter(|record| record["name"] == name).count()
}

#[test]
fn client_and_server_log_their_connections() {
    let home = TempDir::new().unwrap();
    let (ours, theirs) = (home.path().join("ours"), home.path().join("a/b/theirs"));
    let flags = ["--qlog", theirs.to_str().unwrap()];
    let site = Site::start_with(&[("file", &vec![7; 50_000])], &flags);
    let mut get = site.get(&["/file"]);
    get.arg("--qlog").arg(&ours);
    succeeded(&get.output().unwrap());

    let client = &logs(&ours, "client")[0];
    assert_eq!(client[0]["trace"]["vantage_point"]["type"], "client");
    // As few as with the largest probed packets.
    assert!(count(client, "quic:packet_received") > 50_000 / 1_472);
    assert_eq!(count(client, "quic:connection_closed"), 1);
    assert_eq!(names(&ours).len(), 1);
    let server = &logs(&theirs, "server")[0];
    assert_eq!(server[0]["trace"]["vantage_point"]["type"], "server");
    assert!(count(server, "quic:packet_sent") > 50_000 / 1_472);
}

#[test]
fn the_environment_names_the_directory_too() {
    let home = TempDir::new().unwrap();
    let site = Site::start(&[("file", b"1")]);
    let mut get = site.get(&["/file"]);
    get.env("QLOGDIR", home.path());
    succeeded(&get.output().unwrap());
    assert_eq!(logs(home.path(), "client").len(), 1);
}

#[test]
fn simulated_flows_are_logged_the_same_each_time() {
    let homes = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    for home in &homes {
        let mut sim = swiftwater();
        sim.args([
            "sim",
            "--flow",
            "cubic,bytes=300kB",
            "--loss",
            "2%",
            "--qlog",
        ]);
        succeeded(&sim.arg(home.path()).output().unwrap());
    }
    let files = names(homes[0].path());
    assert_eq!(files, ["client-0000.sqlog", "server-0001.sqlog"]);
    for file in &files {
        let [first, second] = [&homes[0], &homes[1]].map(|home| home.path().join(file));
        assert!(
            fs::read(first).unwrap() == fs::read(second).unwrap(),
            "{file}"
        );
    }
    let sender = &logs(homes[0].path(), "client")[0];
    assert!(count(sender, "quic:packet_lost") > 0);
    assert!(count(sender, "swiftwater:data_recovered") > 0);
}

#[test]
fn a_directory_that_cannot_be_is_one_line() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    for line in [
        "sim",
        "perf loopback requests",
        "get https://127.0.0.1:9/x --insecure",
    ] {
        let mut command = swiftwater();
        command.args(line.split(' ')).arg("--qlog").arg(&file);
        command.current_dir(home.path());
        let error = failed(&command.output().unwrap(), 7);
        assert!(error.contains("cannot write qlog to"), "{error}");
    }
}
