//! Proxies one behind the other: what passes, what each knows, and which of them an error names.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{Running, Site, failed, run, succeeded, swiftwater};

/// The exit codes of wrong usage, and of a server that can't be reached.
const USAGE: i32 = 2;
const CONNECTION: i32 = 4;

/// A running proxy for one user that reaches loopback addresses.
struct Proxy {
    directory: TempDir,
    server: Running,
}

impl Proxy {
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let file = |name: &str| directory.path().join(name);
        // A secret of its own.
        let secret = directory.path().file_name().unwrap().to_str().unwrap();
        fs::write(file("tokens"), format!("alice a-secret-of-{secret}\n")).unwrap();
        let mut command = swiftwater();
        command.args(["tunnel", "serve", "--listen", "127.0.0.1:0", "--json"]);
        command.args(["--target-port", "1-65535", "--allow-target", "127.0.0.0/8"]);
        command.arg("--tokens").arg(file("tokens"));
        command.arg("--access-log").arg(file("access.log"));
        command.arg("--state-dir").arg(directory.path());
        let server = Running::start(command);
        Self { directory, server }
    }

    fn address(&self) -> &str {
        self.server.first["address"].as_str().unwrap()
    }

    fn port(&self) -> &str {
        self.address().rsplit(':').next().unwrap()
    }

    fn file(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// As a proxy before another one, with these tokens.
    fn hop(&self, tokens: &str, options: &str) -> String {
        let (address, ca) = (self.address(), self.file("dev-cert.pem"));
        format!("{address},ca={ca},token-file={tokens}{options}")
    }

    /// Ends it, and returns its access log.
    fn log(self) -> String {
        let Self { directory, server } = self;
        assert_eq!(server.interrupt(), Some(0));
        fs::read_to_string(directory.path().join("access.log")).unwrap()
    }
}

/// `get` of `/file` through proxies, the nearest first.
fn get(site: &Site, via: &[String], last: (&Proxy, &str)) -> Command {
    let (proxy, tokens) = last;
    let mut get = swiftwater();
    get.args(["get", &site.url("/file"), "--no-state", "--force"]);
    for hop in via {
        get.args(["--proxy-via", hop]);
    }
    get.args(["--proxy", proxy.address(), "--proxy-token-file", tokens]);
    get.args(["--proxy-ca", &proxy.file("dev-cert.pem")]);
    get.args(["--connect-timeout", "20s"]);
    get.arg("--ca").arg(site.certificate());
    get.arg("-o").arg(site.path("received"));
    get
}

fn content() -> Vec<u8> {
    (0..1_500_000_u32)
        .map(|n| (n.wrapping_mul(7919) >> 5) as u8)
        .collect()
}

fn is_file(path: &Path, content: &[u8]) -> bool {
    fs::read(path).unwrap() == content
}

#[test]
fn each_proxy_of_a_chain_knows_its_neighbours_only() {
    let file = content();
    let site = Site::start(&[("file", &file)]);
    let [near, middle, far] = [(); 3].map(|()| Proxy::start());
    let via = [&near, &middle].map(|proxy| proxy.hop(&proxy.file("tokens"), ""));
    let output = get(&site, &via, (&far, &far.file("tokens")))
        .output()
        .unwrap();
    succeeded(&output);
    assert!(is_file(&site.path("received"), &file));
    let ports = [middle.port(), far.port()].map(str::to_owned);
    let site_port = site.port.to_string();
    for (proxy, target) in [(near, &ports[0]), (middle, &ports[1]), (far, &site_port)] {
        let log = proxy.log();
        for port in [&ports[0], &ports[1], &site_port] {
            let is_named = log.contains(&format!("/127.0.0.1/{port}/"));
            assert_eq!(is_named, port == target, "{log}");
        }
    }
}

#[test]
fn chains_are_of_any_versions_of_http() {
    let file = content();
    let site = Site::start(&[("file", &file)]);
    let (near, far) = (Proxy::start(), Proxy::start());
    let (first, last) = (near.file("tokens"), far.file("tokens"));
    for (one, other) in [("h3", "h2"), ("h2", "h3"), ("h1", "h1"), ("h3", "h1")] {
        let hop = near.hop(&first, &format!(",http-version={one},repair"));
        let mut get = get(&site, &[hop], (&far, &last));
        let output = get.args(["--proxy-http-version", other]).output().unwrap();
        succeeded(&output);
        assert!(is_file(&site.path("received"), &file), "{one} {other}");
    }
}

#[test]
fn local_addresses_lead_through_a_chain() {
    let file = content();
    let site = Site::start(&[("file", &file)]);
    let (near, far) = (Proxy::start(), Proxy::start());
    for (forward, protocol) in [("udp", "h3"), ("tcp", "tcp")] {
        let mut connect = swiftwater();
        connect.args(["tunnel", "connect", far.address(), "--json"]);
        connect.args(["-L", &format!("{forward}:0:127.0.0.1:{}", site.port)]);
        connect.args(["--ca", &far.file("dev-cert.pem")]);
        connect.args(["--token-file", &far.file("tokens")]);
        connect.args(["--via", &near.hop(&near.file("tokens"), "")]);
        let client = Running::start(connect);
        assert_eq!(client.first["proxy"], far.address());
        assert_eq!(client.first["via"], serde_json::json!([near.address()]));
        let local = client.first["local"].as_str().unwrap();
        let mut get = swiftwater();
        get.args([
            "get",
            &format!("https://{local}/file"),
            "--no-state",
            "--force",
        ]);
        get.args(["--protocol", protocol]);
        get.arg("--ca").arg(site.certificate());
        get.arg("-o").arg(site.path("received"));
        succeeded(&get.output().unwrap());
        assert!(is_file(&site.path("received"), &file), "{forward}");
        assert_eq!(client.interrupt(), Some(0));
    }
}

#[test]
fn an_error_names_the_proxy() {
    let site = Site::start(&[("file", b"content")]);
    let (near, far) = (Proxy::start(), Proxy::start());
    let (first, last) = (near.file("tokens"), far.file("tokens"));
    // The near one does not know the user.
    let output = get(&site, &[near.hop(&last, "")], (&far, &last))
        .output()
        .unwrap();
    let error = failed(&output, CONNECTION);
    assert!(
        error.contains(&format!("through {}", near.address())),
        "{error}"
    );
    assert!(error.contains("407"), "{error}");
    // The far one does not.
    let output = get(&site, &[near.hop(&first, "")], (&far, &first))
        .output()
        .unwrap();
    let error = failed(&output, CONNECTION);
    assert!(
        !error.contains("through") && error.contains("407"),
        "{error}"
    );
    // The far one is gone.
    let (gone, tokens) = (Proxy::start(), far.file("tokens"));
    let mut get = get(&site, &[near.hop(&first, "")], (&gone, &tokens));
    assert_eq!(gone.server.interrupt(), Some(0));
    let error = failed(&get.output().unwrap(), CONNECTION);
    assert!(
        error.contains(&format!("through {}", near.address())),
        "{error}"
    );
}

#[test]
fn what_is_no_chain_is_refused() {
    let hop = |text: &str| {
        run([
            "get",
            "https://127.0.0.1/x",
            "--proxy",
            "127.0.0.1:9",
            "--proxy-via",
            text,
        ])
    };
    for text in [
        "",
        "proxy.example,what=1",
        "proxy.example,cert=x",
        "proxy.example,insecure,ca=x",
    ] {
        failed(&hop(text), USAGE);
    }
    failed(
        &run(["get", "https://127.0.0.1/x", "--proxy-via", "127.0.0.1:9"]),
        USAGE,
    );
    let mut long = swiftwater();
    long.args(["tunnel", "connect", "127.0.0.1:9", "--socks", "0"]);
    let error = failed(
        &long
            .args(["--via", "127.0.0.1:9"].repeat(4))
            .output()
            .unwrap(),
        USAGE,
    );
    assert!(error.contains("4 proxies at most"), "{error}");
}
