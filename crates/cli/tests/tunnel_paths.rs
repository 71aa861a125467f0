//! Tunnels whose connection to the proxy has several paths, between loopback addresses.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::multipath::relay_to;
use crate::support::{Running, Site, run, succeeded, swiftwater};
use crate::tunnel_proxy::TunnelProxy;

/// The exit code of wrong usage.
const USAGE: i32 = 2;

/// A proxy for anyone, and two relays that lead to it.
struct Ways {
    proxy: TunnelProxy,
    relays: Vec<Running>,
    addresses: Vec<String>,
}

impl Ways {
    fn start() -> Self {
        let flags = ["--proxy-for-anyone", "--scheduler", "round-robin"];
        let proxy = TunnelProxy::start(&[], &flags);
        let (relays, addresses) = (0..2).map(|_| relay_to(proxy.address(), &[])).unzip();
        Self {
            proxy,
            relays,
            addresses,
        }
    }

    /// The flags of the paths over both relays.
    fn paths(&self, command: &mut Command) {
        command.args(["--path", "127.0.0.1", "--path"]);
        command.arg(format!("127.0.0.2,to={}", self.addresses[1]));
    }

    /// Waits until the relay has passed this many bytes towards the client.
    fn has_carried(&mut self, relay: usize, bytes: u64) {
        loop {
            let counters = self.relays[relay].next();
            if counters["down"]["delivered_bytes"].as_u64().unwrap_or(0) > bytes {
                return;
            }
        }
    }
}

/// Bytes that differ from place to place.
fn content(len: u32) -> Vec<u8> {
    (0..len)
        .map(|n| (n.wrapping_mul(7919) >> 5) as u8)
        .collect()
}

#[test]
fn a_download_through_a_tunnel_survives_the_end_of_either_path() {
    let file = content(4_000_000);
    let site = Site::start(&[("file", &file)]);
    for ended in 0..2 {
        let mut ways = Ways::start();
        let mut get = swiftwater();
        get.args(["get", &site.url("/file"), "--json", "--no-state", "--force"]);
        get.args(["--proxy", &ways.addresses[0]]);
        get.arg("--proxy-ca").arg(ways.proxy.certificate());
        ways.paths(&mut get);
        get.arg("--ca").arg(site.certificate());
        get.arg("-o").arg(site.path("received"));
        get.stdout(Stdio::piped()).stderr(Stdio::piped());
        let get = get.spawn().unwrap();
        // Both carry the tunnel before one of them ends.
        for relay in 0..2 {
            ways.has_carried(relay, 200_000);
        }
        drop(ways.relays.remove(ended));
        let output = get.wait_with_output().unwrap();
        let rows = succeeded(&output);
        assert!(fs::read(site.path("received")).unwrap() == file);
        // The connection in the tunnel sees one path.
        let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
        assert_eq!(row["paths"].as_array().map_or(1, Vec::len), 1, "{row}");
    }
}

#[test]
fn local_addresses_lead_over_several_paths() {
    let file = content(2_000_000);
    let site = Site::start(&[("file", &file)]);
    let mut ways = Ways::start();
    let mut connect = swiftwater();
    connect.args(["tunnel", "connect", &ways.addresses[0], "--json"]);
    connect.args(["-L", &format!("0:127.0.0.1:{}", site.port)]);
    connect.arg("--ca").arg(ways.proxy.certificate());
    ways.paths(&mut connect);
    let client = Running::start(connect);
    let local = client.first["local"].as_str().unwrap();
    let mut get = swiftwater();
    get.args(["get", &format!("https://{local}/file"), "--no-state"]);
    get.args(["--protocol", "h3"]);
    get.arg("--ca").arg(site.certificate());
    get.arg("-o").arg(site.path("received"));
    succeeded(&get.output().unwrap());
    assert!(fs::read(site.path("received")).unwrap() == file);
    for relay in 0..2 {
        ways.has_carried(relay, 200_000);
    }
    assert_eq!(client.interrupt(), Some(0));
}

#[test]
fn versions_of_http_over_tcp_have_one_path() {
    for version in ["h2", "h1"] {
        let output = run([
            "tunnel",
            "connect",
            "127.0.0.1:9",
            "--socks",
            "0",
            "--path",
            "127.0.0.1",
            "--http-version",
            version,
        ]);
        assert_eq!(output.status.code(), Some(USAGE));
    }
}
