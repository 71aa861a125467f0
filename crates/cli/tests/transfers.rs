//! `serve`, `get` and `relay` together, as users run them.

use std::fs;

use crate::support::{Running, Site, failed, keys, names, succeeded, swiftwater};
use serde_json::Value;

/// Bytes that don't repeat soon.
fn data(size: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let step = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(step).take(size).collect()
}

fn rows(output: &str) -> Vec<Value> {
    output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn many_files_arrive_intact() {
    let files: Vec<(String, Vec<u8>)> = (0..40)
        .map(|i| (format!("file-{i}.bin"), data(i as usize * 7_919, i)))
        .collect();
    let served: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, data)| (name.as_str(), data.as_slice()))
        .collect();
    let mut site = Site::start(&served);
    let paths: Vec<String> = files.iter().map(|(name, _)| format!("/{name}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let output = site
        .get(&paths)
        .args(["-j", "16", "--json"])
        .output()
        .unwrap();
    let rows = rows(&succeeded(&output));
    for (name, data) in &files {
        assert_eq!(
            &fs::read(site.path("out").join(name)).unwrap(),
            data,
            "{name}"
        );
    }
    assert_eq!(
        names(&site.path("out")).len(),
        files.len(),
        "no parts are left"
    );

    let (total, each) = rows.split_last().unwrap();
    assert_eq!(each.len(), files.len());
    for row in each {
        assert_eq!(
            keys(row),
            [
                "bytes",
                "error",
                "file",
                "goodput_bps",
                "paths",
                "seconds",
                "url"
            ]
        );
        assert!(row["error"].is_null());
    }
    assert_eq!(
        keys(total),
        ["bytes", "failed", "files", "goodput_bps", "seconds"]
    );
    assert_eq!((&total["files"], &total["failed"]), (&40.into(), &0.into()));
    let bytes: usize = files.iter().map(|(_, data)| data.len()).sum();
    assert_eq!(total["bytes"], bytes);

    let line = site.server.next();
    assert_eq!(
        keys(&line),
        [
            "bytes", "client", "error", "event", "method", "path", "protocol", "seconds", "status"
        ]
    );
    assert_eq!(
        (&line["event"], &line["protocol"]),
        (&"served".into(), &"hq-interop".into())
    );
}

#[test]
fn some_may_fail_while_others_arrive() {
    let site = Site::start(&[("here", b"here")]);
    let output = site
        .get(&["/here", "/gone"])
        .arg("--json")
        .output()
        .unwrap();
    failed(&output, 6);
    let rows = rows(&String::from_utf8(output.stdout).unwrap());
    let failed_row = rows.iter().find(|row| row["error"].is_string()).unwrap();
    assert!(failed_row["url"].as_str().unwrap().ends_with("/gone"));
    assert!(failed_row["file"].is_null());
    let total = rows.last().unwrap();
    assert_eq!((&total["files"], &total["failed"]), (&1.into(), &1.into()));
    assert_eq!(names(&site.path("out")), ["here"]);
}

#[test]
fn a_large_file_with_retry_newreno_and_another_profile() {
    let large = data(5_000_000, 3);
    let flags = ["--retry", "--cc", "newreno", "--profile", "bulk"];
    let site = Site::start_with(&[("large", &large)], &flags);
    let mut get = site.get(&["/large"]);
    get.args([
        "--cc",
        "newreno",
        "--profile",
        "live",
        "--suite",
        "chacha20",
    ]);
    succeeded(&get.output().unwrap());
    assert_eq!(fs::read(site.path("out").join("large")).unwrap(), large);
}

#[test]
fn odd_names_are_served_encoded_or_not() {
    let files: [(&str, &[u8]); 3] = [("with space", b"1"), ("ümlaut", b"2"), ("a%b", b"3")];
    let site = Site::start(&files);
    let paths = ["/with space", "/%C3%BCmlaut", "/a%25b"];
    succeeded(&site.get(&paths).output().unwrap());
    assert_eq!(names(&site.path("out")), ["a%b", "with space", "ümlaut"]);
}

#[test]
fn empty_files_are_files() {
    let site = Site::start(&[("empty", b"")]);
    succeeded(&site.get(&["/empty"]).output().unwrap());
    assert_eq!(fs::read(site.path("out").join("empty")).unwrap(), b"");
}

#[test]
fn the_development_certificate_is_kept() {
    let site = Site::start(&[]);
    let event = &site.server.first;
    assert_eq!(
        keys(event),
        ["address", "certificate", "event", "sha256", "spki_sha256"]
    );
    assert_eq!(event["certificate"], site.certificate().to_str().unwrap());
    let first = fs::read(site.certificate()).unwrap();
    assert!(!String::from_utf8_lossy(&first).contains("PRIVATE"));

    let again = |names: &[&str]| {
        let mut command = swiftwater();
        command
            .arg("serve")
            .arg(site.path("site"))
            .args(["--listen", "127.0.0.1:0", "--json"]);
        command.arg("--state-dir").arg(site.path("state"));
        command.args(names.iter().flat_map(|name| ["--name", name]));
        Running::start(command).first["sha256"].clone()
    };
    assert_eq!(again(&[]), event["sha256"]);
    assert_eq!(fs::read(site.certificate()).unwrap(), first);
    let renewed = again(&["media.example"]);
    assert_ne!(
        renewed, event["sha256"],
        "another name needs another certificate"
    );
    assert_eq!(
        again(&[]),
        renewed,
        "which also serves those who need fewer names"
    );

    // A damaged file doesn't make the server useless.
    fs::write(site.path("state").join("dev-identity.pem"), "damaged").unwrap();
    assert_ne!(again(&[]), renewed);
}

#[cfg(unix)]
#[test]
fn the_private_key_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::start(&[]);
    let identity = site.path("state").join("dev-identity.pem");
    assert_eq!(
        fs::metadata(identity).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[cfg(unix)]
#[test]
fn a_server_ends_well_when_asked_to() {
    let site = Site::start(&[("x", b"x")]);
    succeeded(&site.get(&["/x"]).output().unwrap());
    assert_eq!(site.server.interrupt(), Some(0));
}

#[test]
fn files_cross_a_bad_link_intact() {
    let large = data(400_000, 9);
    let site = Site::start(&[("large", &large)]);
    let mut relay = swiftwater();
    relay.args([
        "relay",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &format!("127.0.0.1:{}", site.port),
    ]);
    relay.args([
        "--rate", "50mbit", "--delay", "2ms", "--loss", "2%", "--jitter", "1ms",
    ]);
    relay.args([
        "--reorder",
        "1%,2ms",
        "--duplicate",
        "1%",
        "--corrupt",
        "1%",
        "--buffer",
        "100kB",
    ]);
    relay.args(["--seed", "4", "--json", "--stats", "50ms"]);
    let mut relay = Running::start(relay);
    assert_eq!(keys(&relay.first), ["event", "listen", "to"]);
    let listen = relay.first["listen"].as_str().unwrap();
    let mut get = swiftwater();
    get.args(["get", "--protocol", "hq"])
        .args([&format!("https://{listen}/large"), "--ca"])
        .arg(site.certificate());
    succeeded(&get.arg("-o").arg(site.path("out")).output().unwrap());
    assert_eq!(fs::read(site.path("out").join("large")).unwrap(), large);

    let mut counters = relay.next();
    while counters["down"]["delivered_bytes"].as_u64().unwrap() < 400_000 {
        counters = relay.next();
    }
    assert_eq!(counters["event"], "counters");
    assert!(counters["down"]["dropped_random"].as_u64().unwrap() > 0);
    assert_eq!(counters["clients"], 1);
}

#[test]
fn a_download_may_move_to_another_address_on_its_way() {
    let file = data(1_000_000, 5);
    let site = Site::start_with(
        &[("file.bin", &file)],
        &["--preferred-address", "127.0.0.1:0"],
    );
    for to in ["200kB", "200kB,port", "200kB,127.0.0.1"] {
        let output = site
            .get(&["/file.bin"])
            // Slow enough to be in progress when the migration is decided.
            .args(["--limit-rate", "20mbit"])
            .args(["--force", "-v", "--migrate-after", to])
            .output()
            .unwrap();
        succeeded(&output);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("the connection migrated"), "{to}: {log}");
        assert_eq!(
            fs::read(site.path("out").join("file.bin")).unwrap(),
            file,
            "{to}"
        );
    }
    let output = site
        .get(&["/file.bin"])
        .args(["--force", "--migrate-after", "soon"])
        .output()
        .unwrap();
    let message = failed(&output, 2);
    assert!(message.contains("1MB,192.0.2.7"), "{message}");
}

/// The first file is fetched over a separate connection; the second connection resumes its session.
#[test]
fn the_second_connection_resumes_the_first() {
    for (flag, policy, early) in [
        ("--tls-resume", "accept", Value::Null),
        ("--zero-rtt", "accept", "accepted".into()),
        // Tickets of a server that rejects early data don't invite them.
        ("--zero-rtt", "reject", Value::Null),
    ] {
        let files = [
            ("a", data(10, 1)),
            ("b", data(100_000, 2)),
            ("c", data(9, 3)),
        ];
        let served = files
            .each_ref()
            .map(|(name, data)| (*name, data.as_slice()));
        let site = Site::start_with(&served, &["--zero-rtt", policy]);
        let output = site
            .get(&["/a", "/b", "/c"])
            .args([flag, "--json"])
            .output()
            .unwrap();
        let rows = rows(&succeeded(&output));
        for (name, data) in &files {
            assert_eq!(&fs::read(site.path("out").join(name)).unwrap(), data);
        }
        let (first, rest) = rows[..3].split_first().unwrap();
        assert_eq!(
            (&first["resumed"], &first["early_data"]),
            (&false.into(), &Value::Null)
        );
        for row in rest {
            assert_eq!(row["resumed"], true);
            assert_eq!(row["early_data"], early, "{flag} {policy}");
        }
    }
}
