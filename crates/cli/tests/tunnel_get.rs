//! `get` and the demonstration through a proxy for UDP, and the proxy's metrics.

#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::https::http;
use crate::support::{Running, Site, failed, keys, run, succeeded, swiftwater};
use crate::tunnel_proxy::TunnelProxy;
use serde_json::Value;

const SECRET: &str = "a-secret-of-the-test";

/// The exit codes of wrong usage, and of a server that can't be reached.
const USAGE: i32 = 2;
const CONNECTION: i32 = 4;

/// A proxy for alice, with metrics.
fn proxy() -> TunnelProxy {
    let tokens = format!("alice {SECRET}\n");
    let flags = ["--tokens", "tokens", "--metrics", "127.0.0.1:0"];
    let flags = [&flags[..], &["--allow-target", "::1/128"]].concat();
    TunnelProxy::start(&[("tokens", &tokens)], &flags)
}

/// `get` through the proxy, of one file of `site`.
fn get(proxy: &TunnelProxy, site: &Site, url: &str, flags: &[&str]) -> Command {
    let mut get = proxy.get(site, url);
    get.args(["--proxy-token-file", &proxy.file("tokens")]);
    get.args(flags);
    get
}

#[test]
fn get_goes_through_a_proxy_and_the_proxy_counts() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let site = Site::start_with(&[("file", &content)], &["--tecc"]);
    let mut proxy = proxy();
    let metrics = proxy.server.next();
    let metrics = metrics["address"].as_str().unwrap();
    // A name, which the proxy resolves, and an address.
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{}/file", site.port);
        for flags in [&[][..], &["--tecc"]] {
            succeeded(&get(&proxy, &site, &url, flags).output().unwrap());
            assert!(fs::read(site.path("received")).unwrap() == content);
            fs::remove_file(site.path("received")).unwrap();
        }
    }
    let (_, counts) = http(metrics, "/metrics").unwrap();
    let count = |name: &str| {
        let line = counts.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {counts}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!((count("swiftwater_tunnels_opened_total") - 4.0).abs() < 0.1);
    assert!(count("swiftwater_tunnel_bytes_total{direction=\"to-client\"}") > 4e6);
    assert!(count("swiftwater_tunnel_datagrams_total{direction=\"to-target\"}") > 40.0);
}

#[test]
fn a_proxy_that_has_gone_is_given_up() {
    let content = vec![7; 3_000_000];
    let site = Site::start(&[("file", &content)]);
    let proxy = proxy();
    let url = format!("https://127.0.0.1:{}/file", site.port);
    let flags = ["--limit-rate", "4mbit", "--retry-max-time", "500ms"];
    let mut get = get(&proxy, &site, &url, &flags);
    let get = get.stdout(Stdio::piped()).stderr(Stdio::piped());
    let get = get.spawn().unwrap();
    let part = site.path(".received.part");
    while fs::metadata(&part).map_or(0, |data| data.len()) == 0 {
        thread::sleep(Duration::from_millis(10));
    }
    proxy.server.end_at_once();
    let error = failed(&get.wait_with_output().unwrap(), CONNECTION);
    assert!(error.contains("--retry-max-time"), "{error}");
    assert!(error.contains("bytes are kept"), "{error}");
}

#[test]
fn packets_are_forwarded_for_who_asks_for_it() {
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let site = Site::start(&[("file", &content)]);
    let mut proxy = proxy();
    let metrics = proxy.server.next();
    let metrics = metrics["address"].as_str().unwrap();
    let forwarded = || {
        let (_, counts) = http(metrics, "/metrics").unwrap();
        let direction = "swiftwater_tunnel_datagrams_forwarded_total{direction=\"to-client\"} ";
        let count = counts.lines().find_map(|line| line.strip_prefix(direction));
        count.unwrap().parse::<f64>().unwrap()
    };
    let url = format!("https://127.0.0.1:{}/file", site.port);
    let received = || {
        let received = fs::read(site.path("received")).unwrap();
        fs::remove_file(site.path("received")).unwrap();
        received
    };
    succeeded(&get(&proxy, &site, &url, &[]).output().unwrap());
    assert!(received() == content);
    assert!(forwarded() < 0.1, "nobody asked for it");
    let mut before = 0.0;
    for flag in ["--proxy-forwarding", "--proxy-forwarding=identity"] {
        succeeded(&get(&proxy, &site, &url, &[flag]).output().unwrap());
        assert!(received() == content);
        assert!(forwarded() > before + 500.0, "{flag}");
        before = forwarded();
    }
    // A program that knows nothing of it, through a local address.
    let forward = format!("0:127.0.0.1:{}", site.port);
    let mut connect = proxy.connect(&["-L", &forward, "--forwarding"]);
    connect.args(["--token-file", &proxy.file("tokens")]);
    let connect = Running::start(connect);
    let local = connect.first["local"].as_str().unwrap();
    let mut get = swiftwater();
    get.args([
        "get",
        &format!("https://{local}/file"),
        "--no-state",
        "--protocol",
        "h3",
    ]);
    get.arg("--ca").arg(site.certificate());
    get.arg("-o").arg(site.path("received"));
    succeeded(&get.output().unwrap());
    assert!(received() == content);
    assert!(forwarded() > before + 500.0);
}

#[test]
fn what_the_proxy_refuses_is_said() {
    let site = Site::start(&[("file", b"content")]);
    let proxy = proxy();
    let get = |url: &str| failed(&get(&proxy, &site, url, &[]).output().unwrap(), CONNECTION);
    let error = get("https://nowhere.invalid/file");
    assert!(error.contains("dns_error"), "{error}");
    // A port that was free a moment ago.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let error = get(&format!("https://127.0.0.1:{port}/file"));
    assert!(error.contains("nobody receives UDP"), "{error}");
}

#[test]
fn flags_that_contradict_a_proxy_are_refused() {
    for flags in [
        &["--protocol", "tcp"][..],
        &["--protocol", "hq"],
        &["--select", "wise"],
        &["--migrate-after", "1MB"],
        &["--path", "127.0.0.1", "--path-operation", "1MB,abandon,0"],
        &["--path", "127.0.0.1", "--proxy-http-version", "h2"],
        &["--tecc", "--proxy-forwarding"],
        &["--proxy-forwarding=rot13"],
    ] {
        let mut get = swiftwater();
        get.args(["get", "https://127.0.0.1/x", "--proxy", "127.0.0.1:9"]);
        let output = get.args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{flags:?}");
    }
    failed(&run(["get", "https://127.0.0.1/x", "--tecc"]), USAGE);
    failed(&run(["serve", ".", "--tecc", "--cc", "cubic"]), USAGE);
}

#[test]
fn the_demonstration_reports_each_system_and_size() {
    let mut demo = swiftwater();
    demo.args(["demo", "tunnel", "--quick", "--json", "--flows", "3"]);
    let output = demo.output().unwrap();
    let output = succeeded(&output);
    let rows: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 8, "{output}");
    for row in &rows {
        let expected = [
            "duplicate_share",
            "fct_mean_ms",
            "fct_p50_ms",
            "fct_p99_ms",
            "flow_bytes",
            "flows",
            "queue_p95_ms",
            "sha256_ok",
            "system",
        ];
        assert_eq!(keys(row), expected);
        assert_eq!(row["sha256_ok"], true, "{row}");
        assert_eq!(row["flows"], 3);
        // A round trip to the server, at least.
        assert!(row["fct_mean_ms"].as_f64().unwrap() > 90.0, "{row}");
        assert_eq!(row["queue_p95_ms"].is_null(), row["system"] == "direct");
    }
    for system in ["direct", "masque", "repair", "tecc"] {
        let of_system = rows.iter().filter(|row| row["system"] == system);
        assert_eq!(of_system.count(), 2, "{output}");
    }
}
