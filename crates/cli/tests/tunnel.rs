//! `tunnel`: downloads through a proxy by a program that knows nothing of it, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod support;

use std::fs;
use std::net::SocketAddr;

use tempfile::TempDir;

use support::{Running, Site, failed, run, succeeded, swiftwater};

const TOKENS: &str = "# users\n\nalice  a-secret-of-the-test\nbob another-secret-of-it\n";

/// The exit codes of wrong usage, and of files that can't be used.
const USAGE: i32 = 2;
const LOCAL_FILE: i32 = 7;

/// A running proxy that reaches loopback addresses.
struct Proxy {
    directory: TempDir,
    server: Running,
}

impl Proxy {
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("tokens"), TOKENS).unwrap();
        let mut command = swiftwater();
        command.args(["tunnel", "serve", "--listen", "127.0.0.1:0", "--json"]);
        command.args(["--target-port", "1-65535", "--allow-target", "127.0.0.0/8"]);
        command.arg("--tokens").arg(directory.path().join("tokens"));
        command.arg("--state-dir").arg(directory.path());
        let server = Running::start(command);
        Self { directory, server }
    }

    /// A local address that leads to `target` through the proxy.
    fn connect(&self, target: &str, flags: &[&str]) -> (Running, SocketAddr) {
        let token = self.directory.path().join("token");
        fs::write(&token, "a-secret-of-the-test\n").unwrap();
        let mut command = swiftwater();
        command.args(["tunnel", "connect", "--json"]).args(flags);
        command.arg(self.server.first["address"].as_str().unwrap());
        command.args(["-L", &format!("0:{target}")]);
        command.arg("--token-file").arg(token);
        let certificate = self.directory.path().join("dev-cert.pem");
        command.arg("--ca").arg(certificate);
        let client = Running::start(command);
        assert_eq!(client.first["event"], "listening");
        assert_eq!(client.first["target"], target);
        let local = client.first["local"].as_str().unwrap().parse().unwrap();
        (client, local)
    }
}

#[test]
fn downloads_pass_through_a_proxy() {
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let site = Site::start(&[("file", &content)]);
    let proxy = Proxy::start();
    let target = format!("127.0.0.1:{}", site.port);
    for flags in [&[][..], &["--repair"]] {
        let (client, local) = proxy.connect(&target, flags);
        let received = site.path("received");
        let mut get = swiftwater();
        get.args(["get", &format!("https://{local}/file"), "--protocol", "h3"]);
        get.args(["--no-state", "--force"]);
        get.arg("--ca").arg(site.certificate());
        get.arg("-o").arg(&received);
        succeeded(&get.output().unwrap());
        assert!(fs::read(&received).unwrap() == content);
        assert_eq!(client.interrupt(), Some(0));
    }
}

#[test]
fn who_may_use_a_proxy_must_be_said() {
    let error = failed(&run(["tunnel", "serve", "--listen", "127.0.0.1:0"]), USAGE);
    assert!(error.contains("--tokens"), "{error}");
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("tokens");
    for (text, expected) in [
        ("", "no tokens"),
        ("alice", "line 1: NAME TOKEN"),
        ("# users\nalice short-secret", "line 2: "),
        ("alice secret-with-a-space in", "line 1: "),
    ] {
        fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let output = run([
            "tunnel",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tokens",
            path,
        ]);
        let error = failed(&output, LOCAL_FILE);
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn text_that_is_no_forward_or_proxy_is_refused() {
    for (proxy, forward) in [
        ("127.0.0.1:4443", "443"),
        ("127.0.0.1:4443", "0:target:0"),
        ("http://127.0.0.1:4443", "0:target:443"),
        ("https://127.0.0.1/{target_host}", "0:target:443"),
    ] {
        let output = run(["tunnel", "connect", proxy, "-L", forward]);
        assert_eq!(output.status.code(), Some(USAGE), "{proxy} {forward}");
    }
}
