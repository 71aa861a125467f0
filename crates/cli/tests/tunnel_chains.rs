//! Proxies one behind the other: what passes, what each knows, and which of them an error names.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Running, Site, failed, run, succeeded, swiftwater};
use crate::tunnel_proxy::TunnelProxy;

/// The exit codes of wrong usage, and of a server that can't be reached.
const USAGE: i32 = 2;
const CONNECTION: i32 = 4;

/// Proxies started, to give each a secret of its own.
static PROXIES: AtomicU32 = AtomicU32::new(0);

/// A proxy for one user.
fn proxy() -> TunnelProxy {
    let nth = PROXIES.fetch_add(1, Ordering::Relaxed);
    let tokens = format!("alice a-secret-of-proxy-{nth}\n");
    let flags = ["--tokens", "tokens", "--access-log", "access.log"];
    TunnelProxy::start(&[("tokens", &tokens)], &flags)
}

fn port(proxy: &TunnelProxy) -> String {
    proxy.address().rsplit(':').next().unwrap().to_owned()
}

/// `proxy` as one before another, with these tokens.
fn hop(proxy: &TunnelProxy, tokens: &str, options: &str) -> String {
    let (address, ca) = (proxy.address(), proxy.certificate());
    format!("{address},ca={ca},token-file={tokens}{options}")
}

/// `get` of `/file` through proxies, the nearest first.
fn get(site: &Site, via: &[String], last: (&TunnelProxy, &str)) -> Command {
    let (proxy, tokens) = last;
    let mut get = proxy.get(site, &site.url("/file"));
    for hop in via {
        get.args(["--proxy-via", hop]);
    }
    get.args(["--proxy-token-file", tokens]);
    get.args(["--connect-timeout", "20s"]);
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
    let [near, middle, far] = [(); 3].map(|()| proxy());
    let via = [&near, &middle].map(|proxy| hop(proxy, &proxy.file("tokens"), ""));
    let output = get(&site, &via, (&far, &far.file("tokens")))
        .output()
        .unwrap();
    succeeded(&output);
    assert!(is_file(&site.path("received"), &file));
    let ports = [port(&middle), port(&far)];
    let site_port = site.port.to_string();
    for (proxy, target) in [(near, &ports[0]), (middle, &ports[1]), (far, &site_port)] {
        let log = proxy.ended("access.log");
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
    let (near, far) = (proxy(), proxy());
    let (first, last) = (near.file("tokens"), far.file("tokens"));
    for (one, other) in [("h3", "h2"), ("h2", "h3"), ("h1", "h1"), ("h3", "h1")] {
        let hop = hop(&near, &first, &format!(",http-version={one},repair"));
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
    let (near, far) = (proxy(), proxy());
    for (forward, protocol) in [("udp", "h3"), ("tcp", "tcp")] {
        let forward = format!("{forward}:0:127.0.0.1:{}", site.port);
        let mut connect = far.connect(&["-L", &forward]);
        connect.args(["--token-file", &far.file("tokens")]);
        connect.args(["--via", &hop(&near, &near.file("tokens"), "")]);
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
    let (near, far) = (proxy(), proxy());
    let (first, last) = (near.file("tokens"), far.file("tokens"));
    // The near one does not know the user.
    let output = get(&site, &[hop(&near, &last, "")], (&far, &last))
        .output()
        .unwrap();
    let error = failed(&output, CONNECTION);
    assert!(
        error.contains(&format!("through {}", near.address())),
        "{error}"
    );
    assert!(error.contains("407"), "{error}");
    // The far one does not.
    let output = get(&site, &[hop(&near, &first, "")], (&far, &first))
        .output()
        .unwrap();
    let error = failed(&output, CONNECTION);
    assert!(
        !error.contains("through") && error.contains("407"),
        "{error}"
    );
    // The far one is gone.
    let (gone, tokens) = (proxy(), far.file("tokens"));
    let mut get = get(&site, &[hop(&near, &first, "")], (&gone, &tokens));
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
