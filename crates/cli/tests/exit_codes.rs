//! Failures of users' commands: one clear line and a documented exit code each.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;

use crate::support::{Running, Site, failed, names, run, succeeded, swiftwater};
use tempfile::TempDir;

#[test]
fn usage() {
    assert!(failed(&run([]), 2).contains("--help"));
    assert!(failed(&run(["get", "ftp://h/x"]), 2).contains("https"));
    let open = ["get", "http://h/x", "--protocol", "hq"];
    assert!(failed(&run(open), 2).contains("https"));
    assert!(failed(&run(["sim", "--flow", "pigeon"]), 2).contains("cubic"));
    assert!(failed(&run(["sim", "--buffer", "0"]), 2).contains("buffer"));
    assert!(failed(&run(["sim", "--rate", "unlimited"]), 2).contains("rate"));
    assert!(failed(&run(["sim", "--duration", "0s"]), 2).contains("duration"));
    let relay = ["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1"];
    assert!(failed(&run(relay), 2).contains("host:port"));
    let twice = ["get", "https://h/a/x", "https://h/b/x"];
    assert!(failed(&run(twice), 2).contains("same file"));
    assert!(failed(&run(["get", "https://h/"]), 2).contains("file name"));
}

#[test]
fn help_version_completions_and_manual() {
    assert!(succeeded(&run(["--help"])).contains("Exit codes"));
    assert!(succeeded(&run(["help", "get"])).contains("Examples"));
    assert!(succeeded(&run(["--version"])).starts_with("swiftwater "));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(succeeded(&run(["completions", shell])).contains("swiftwater"));
    }
    assert!(succeeded(&run(["man"])).contains(".TH swiftwater"));
    let directory = TempDir::new().unwrap();
    let pages = directory.path().join("man1");
    succeeded(&swiftwater().arg("man").arg(&pages).output().unwrap());
    let names = names(&pages);
    for page in [
        "swiftwater.1",
        "swiftwater-serve.1",
        "swiftwater-perf-client.1",
        "swiftwater-lab-run.1",
    ] {
        assert!(names.iter().any(|name| name == page), "{names:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let mut child = swiftwater()
        .arg("man")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn directory_to_serve_is_missing() {
    let error = failed(&run(["serve", "/no/such/directory"]), 7);
    assert!(error.contains("/no/such/directory"), "{error}");
}

#[test]
fn port_is_taken() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let directory = TempDir::new().unwrap();
    let state = directory.path().to_str().unwrap();
    let serve = ["serve", state, "--listen", &address, "--state-dir", state];
    let error = failed(&run(serve), 9);
    assert!(
        error.contains(&address) && error.contains("taken"),
        "{error}"
    );
    let perf = ["perf", "server", "--listen", &address, "--state-dir", state];
    assert!(failed(&run(perf), 9).contains("taken"));
    let relay = ["relay", "--listen", &address, "--to", "127.0.0.1:9"];
    assert!(failed(&run(relay), 9).contains("taken"));
}

#[test]
fn default_port_is_taken() {
    // Whether or not it is free here: after this, it isn't.
    let _socket = UdpSocket::bind("[::]:4433").or_else(|_| UdpSocket::bind("0.0.0.0:4433"));
    let directory = TempDir::new().unwrap();
    let state = directory.path().to_str().unwrap();
    assert!(failed(&run(["serve", state, "--state-dir", state]), 9).contains("4433"));
}

#[test]
fn host_is_unknown() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().to_str().unwrap();
    let get = [
        "get",
        "https://no-such-host.invalid/x",
        "-o",
        out,
        "--insecure",
    ];
    let error = failed(&run(get), 3);
    assert!(error.contains("no-such-host.invalid"), "{error}");
    assert!(names(directory.path()).is_empty());
    let perf = [
        "perf",
        "client",
        "no-such-host.invalid:1",
        "--insecure",
        "handshakes",
    ];
    assert!(failed(&run(perf), 3).contains("no-such-host.invalid"));
}

#[test]
fn nobody_answers() {
    // Swallows everything, as a firewall does.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/x", silent.local_addr().unwrap());
    let directory = TempDir::new().unwrap();
    let out = directory.path().to_str().unwrap();
    let get = [
        "get",
        &url,
        "-o",
        out,
        "--insecure",
        "--connect-timeout",
        "200ms",
    ];
    let error = failed(&run(get), 4);
    assert!(
        error.contains("UDP") && error.contains("blocked"),
        "{error}"
    );
    assert!(names(directory.path()).is_empty());
}

#[test]
fn certificate_is_not_trusted() {
    let site = Site::start(&[("x", b"x")]);
    let other = Site::start(&[]);
    let mut get = swiftwater();
    get.arg("get")
        .arg(site.url("/x"))
        .arg("-o")
        .arg(site.path("out/"));
    get.arg("--ca").arg(other.certificate());
    let error = failed(&get.output().unwrap(), 5);
    assert!(
        error.contains("--ca") && error.contains("--insecure"),
        "{error}"
    );
    assert!(names(&site.path("out/")).is_empty());

    let mut insecure = swiftwater();
    insecure
        .arg("get")
        .arg(site.url("/x"))
        .arg("-o")
        .arg(site.path("out/"))
        .arg("--insecure");
    succeeded(&insecure.output().unwrap());
}

/// All of 127.0.0.0/8 is this machine, which other systems don't have.
#[cfg(target_os = "linux")]
#[test]
fn certificate_is_for_another_name() {
    let directory = TempDir::new().unwrap();
    let mut serve = swiftwater();
    serve
        .arg("serve")
        .arg(directory.path())
        .args(["--listen", "0.0.0.0:0", "--json"]);
    serve.arg("--state-dir").arg(directory.path());
    let server = Running::start(serve);
    let port = server.first["address"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap();
    let mut get = swiftwater();
    get.arg("get").arg(format!("https://127.0.0.2:{port}/x"));
    get.arg("-o")
        .arg(directory.path())
        .arg("--ca")
        .arg(directory.path().join("dev-cert.pem"));
    assert!(failed(&get.output().unwrap(), 5).contains("127.0.0.2"));
}

#[test]
fn trusted_certificates_are_no_certificates() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("ca.pem");
    let ca = file.to_str().unwrap();
    assert!(failed(&run(["get", "https://h/x", "--ca", ca]), 7).contains("ca.pem"));
    fs::write(&file, "nothing").unwrap();
    assert!(failed(&run(["get", "https://h/x", "--ca", ca]), 7).contains("no certificate"));
}

#[test]
fn protocol_is_not_spoken() {
    let site = Site::start(&[]);
    let mut perf = swiftwater();
    perf.args([
        "perf",
        "client",
        &format!("127.0.0.1:{}", site.port),
        "--insecure",
        "upload",
    ]);
    let error = failed(&perf.output().unwrap(), 5);
    assert!(error.contains("ALPN"), "{error}");
}

#[test]
fn server_has_no_such_file() {
    let site = Site::start(&[("x", b"x")]);
    let error = failed(&site.get(&["/missing"]).output().unwrap(), 6);
    assert!(
        error.contains("/missing") && error.contains("no such file"),
        "{error}"
    );
    assert!(
        names(&site.path("out")).is_empty(),
        "nothing is left behind"
    );
}

#[test]
fn server_refuses_what_is_outside() {
    let site = Site::start(&[("sub/x", b"x")]);
    fs::write(site.path("secret"), "secret").unwrap();
    for path in [
        "/../secret",
        "/sub/../../secret",
        "/%2e%2e/secret",
        "/sub/..%2f..%2fsecret",
    ] {
        let output = site.get(&[path]).output().unwrap();
        // The last is refused by the client already: it makes no file name.
        let code = if path.ends_with("%2fsecret") { 2 } else { 6 };
        failed(&output, code);
    }
    assert!(!site.path("out").join("secret").exists());
}

#[test]
fn file_exists() {
    let site = Site::start(&[("x", b"new")]);
    fs::create_dir(site.path("out")).unwrap();
    fs::write(site.path("out").join("x"), "old").unwrap();
    let error = failed(&site.get(&["/x"]).output().unwrap(), 7);
    assert!(error.contains("--force"), "{error}");
    assert_eq!(fs::read(site.path("out").join("x")).unwrap(), b"old");
    succeeded(&site.get(&["/x"]).arg("--force").output().unwrap());
    assert_eq!(fs::read(site.path("out").join("x")).unwrap(), b"new");
}

#[test]
fn output_is_no_directory() {
    let site = Site::start(&[("x", b"x")]);
    fs::write(site.path("out"), "a file").unwrap();
    assert!(failed(&site.get(&["/x"]).output().unwrap(), 7).contains("out"));
}

#[test]
fn certificate_files_are_unusable() {
    let directory = TempDir::new().unwrap();
    let serve = |cert: &str, key: &str| {
        let mut command = swiftwater();
        command
            .arg("serve")
            .arg(directory.path())
            .args(["--cert", cert, "--key", key]);
        command.output().unwrap()
    };
    assert!(failed(&serve("/no/cert.pem", "/no/key.pem"), 7).contains("/no/cert.pem"));
    let file = directory.path().join("bad.pem");
    fs::write(&file, "nothing").unwrap();
    let bad = file.to_str().unwrap();
    assert!(failed(&serve(bad, bad), 7).contains("bad.pem"));
}

#[test]
fn traces_are_unusable() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("trace.csv");
    let trace = file.to_str().unwrap();
    assert!(failed(&run(["sim", "--trace", trace]), 7).contains("trace.csv"));
    fs::write(&file, "t_ms,rate_kbps,rtt_ms,loss\n0,many,,\n").unwrap();
    assert!(failed(&run(["sim", "--trace", trace]), 7).contains("line 2"));
    let relay = [
        "relay",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "127.0.0.1:9",
        "--trace",
        trace,
    ];
    assert!(failed(&run(relay), 7).contains("line 2"));
}
