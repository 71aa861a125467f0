//! `tunnel`: downloads through a proxy by a program that knows nothing of it, and what is refused.

#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use crate::support::{Running, Site, failed, run, succeeded, swiftwater};
use crate::tunnel_proxy::TunnelProxy;

const TOKENS: &str = "# users\n\nalice  a-secret-of-the-test\nbob another-secret-of-it\n";

/// The exit codes of wrong usage, and of files that can't be used.
const USAGE: i32 = 2;
const LOCAL_FILE: i32 = 7;

/// A proxy for alice and bob.
fn proxy() -> TunnelProxy {
    TunnelProxy::start(&[("tokens", TOKENS)], &["--tokens", "tokens"])
}

/// A local address that leads to `target` through the proxy.
fn connect(proxy: &TunnelProxy, target: &str, flags: &[&str]) -> (Running, SocketAddr) {
    let forward = format!("0:{target}");
    let flags = [&["-L", &forward], flags].concat();
    let (client, local) = start_client(proxy, "udp", &flags);
    assert_eq!(client.first["target"], target);
    (client, local)
}

/// A client with one local address of this kind.
fn start_client(proxy: &TunnelProxy, kind: &str, flags: &[&str]) -> (Running, SocketAddr) {
    let token = proxy.file("token");
    fs::write(&token, "a-secret-of-the-test\n").unwrap();
    let mut command = proxy.connect(flags);
    command.args(["--token-file", &token]);
    let client = Running::start(command);
    assert_eq!(client.first["event"], "listening");
    assert_eq!(client.first["kind"], kind);
    let local = client.first["local"].as_str().unwrap().parse().unwrap();
    (client, local)
}

/// A server for TCP that sends everything back, once a client has finished.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut content = Vec::new();
            stream.read_to_end(&mut content).unwrap();
            stream.write_all(&content).unwrap();
        }
    });
    address
}

/// Sends `content` and checks that it comes back.
fn exchange(mut stream: TcpStream, content: &[u8]) {
    stream.write_all(content).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert!(received == content);
}

#[test]
fn downloads_pass_through_a_proxy() {
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let site = Site::start(&[("file", &content)]);
    let proxy = proxy();
    let target = format!("127.0.0.1:{}", site.port);
    for flags in [&[][..], &["--repair"]] {
        let (client, local) = connect(&proxy, &target, flags);
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
fn tcp_passes_through_a_proxy() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let (proxy, target) = (proxy(), echo());
    let port = target.port().to_be_bytes();

    let forward = format!("tcp:0:{target}");
    let (client, local) = start_client(&proxy, "tcp", &["-L", &forward]);
    exchange(TcpStream::connect(local).unwrap(), &content);
    let ended = client.ended();
    assert_eq!(
        (&ended["tunnels"], &ended["failed"]),
        (&1.into(), &0.into())
    );
    assert_eq!(ended["target"], target.to_string());
    assert_eq!(ended["bytes_received"], content.len());

    let (client, local) = start_client(&proxy, "socks", &["--socks", "0"]);
    let mut stream = TcpStream::connect(local).unwrap();
    let request = [&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat();
    stream.write_all(&request).unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], [5, 0, 5, 0]);
    exchange(stream, &content);
    let ended = client.ended();
    assert_eq!(
        (&ended["bytes_sent"], &ended["rejected"]),
        (&content.len().into(), &0.into())
    );
    assert_eq!(ended["datagrams_sent"], 0);

    let (client, local) = start_client(&proxy, "http", &["--http", "127.0.0.1:0"]);
    let mut stream = TcpStream::connect(local).unwrap();
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    exchange(stream, &content);
    let ended = client.ended();
    assert_eq!(ended["bytes_received"], content.len());
    assert!(ended.get("datagrams_sent").is_none() && ended.get("target").is_none());
}

#[test]
fn tunnels_pass_over_every_version_of_http() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let site = Site::start(&[("file", &content)]);
    let (proxy, target) = (proxy(), echo());
    for version in ["auto", "h3", "h2", "h1"] {
        let flags = ["--http-version", version];
        let forward = format!("tcp:0:{target}");
        let (client, local) =
            start_client(&proxy, "tcp", &[&["-L", &*forward], &flags[..]].concat());
        let used = if version == "auto" { "h3" } else { version };
        assert_eq!(client.first["http"], used);
        exchange(TcpStream::connect(local).unwrap(), &content);
        assert_eq!(client.ended()["bytes_received"], content.len());

        let to_site = format!("127.0.0.1:{}", site.port);
        let (client, local) = connect(&proxy, &to_site, &flags);
        let received = site.path("received");
        let mut get = swiftwater();
        get.args(["get", &format!("https://{local}/file"), "--protocol", "h3"]);
        get.args(["--no-state", "--force"]);
        get.arg("--ca").arg(site.certificate());
        get.arg("-o").arg(&received);
        succeeded(&get.output().unwrap());
        assert!(fs::read(&received).unwrap() == content, "{version}");
        assert_eq!(client.ended()["failed"], 0);
    }
}

/// Whether the machine has curl; says so if not.
fn has_curl() -> bool {
    let found = Command::new("curl").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no curl");
    }
    found
}

#[test]
fn curl_downloads_through_a_proxy() {
    if !has_curl() {
        return;
    }
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let site = Site::start(&[("file", &content)]);
    let proxy = proxy();
    let received = site.path("received");
    for (kind, flag, scheme) in [("socks", "--socks", "socks5h"), ("http", "--http", "http")] {
        let (_client, local) = start_client(&proxy, kind, &[flag, "0"]);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--proxy"]);
        curl.arg(format!("{scheme}://{local}")).arg("--cacert");
        curl.arg(site.certificate()).arg("-o").arg(&received);
        curl.args([
            "--noproxy",
            "",
            &format!("https://127.0.0.1:{}/file", site.port),
        ]);
        succeeded(&curl.output().unwrap());
        assert!(fs::read(&received).unwrap() == content, "{kind}");
        fs::remove_file(&received).unwrap();
    }
}

#[test]
fn servers_for_any_target_are_not_for_others_by_accident() {
    for flag in ["--socks", "--http"] {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:1080"] {
            let output = run(["tunnel", "connect", "127.0.0.1:4443", flag, address]);
            let error = failed(&output, USAGE);
            assert!(
                error.contains(address) && error.contains("--allow-remote-clients"),
                "{error}"
            );
        }
    }
    let (_client, local) = start_client(
        &proxy(),
        "socks",
        &["--socks", "0.0.0.0:0", "--allow-remote-clients"],
    );
    assert!(local.ip().is_unspecified());
    // Something must be asked for.
    let output = run(["tunnel", "connect", "127.0.0.1:4443"]);
    assert_eq!(output.status.code(), Some(USAGE));
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
