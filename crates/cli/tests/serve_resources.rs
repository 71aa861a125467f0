//! `serve` where something is short or stuck: file descriptors, readers of its output, its access log;
//! and what it keeps for the next process.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use swiftwater::{Client, DevCertificate};
use swiftwater_http::h3::Config;
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_http::web::body::Body;
use tempfile::TempDir;

use crate::https::{Ask, https};
use crate::support::{Running, failed, succeeded, swiftwater};

/// A directory to serve, a certificate, and a place for other files.
struct Home {
    directory: TempDir,
    certificate: DevCertificate,
}

impl Home {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let directory = TempDir::new().unwrap();
        let certificate = DevCertificate::generate(["localhost"]).unwrap();
        fs::create_dir(directory.path().join("site")).unwrap();
        fs::write(directory.path().join("cert"), certificate.certificate_pem()).unwrap();
        fs::write(directory.path().join("key"), certificate.private_key_pem()).unwrap();
        for (name, content) in files {
            fs::write(directory.path().join("site").join(name), content).unwrap();
        }
        Self {
            directory,
            certificate,
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// A server of the directory, started by a shell that runs `before`.
    fn serve_after(&self, before: &str, flags: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("{before}; exec \"$@\""))
            .arg("sh");
        command.arg(swiftwater().get_program()).arg("serve");
        command.arg(self.path("site")).stdin(Stdio::null());
        command.args(["--state-dir", &self.path("state")]);
        command.args(flags);
        command
    }

    /// The same with the certificate and any port.
    fn serve(&self, before: &str, flags: &[&str]) -> Command {
        let mut command = self.serve_after(before, flags);
        command.args(["--cert", &self.path("cert"), "--key", &self.path("key")]);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }

    async fn http3(&self, port: u16) -> SendRequest {
        self.http3_from([127, 0, 0, 1], port).await
    }

    /// A client at an address of this machine. Its receive window per stream is small, so that heads
    /// of other responses still arrive.
    async fn http3_from(&self, from: [u8; 4], port: u16) -> SendRequest {
        let client = Client::builder()
            .alpn([ALPN_HTTP3])
            .trust_only([self.certificate.certificate_der()])
            .transport(|transport| transport.stream_receive_window = 20_000_u64.into())
            .bind(SocketAddr::from((from, 0)))
            .build()
            .unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connection = client.connect_to(address, "localhost").await.unwrap();
        SendRequest::new(connection, Config::default())
    }
}

fn get(path: &str) -> Request<Body> {
    let uri = format!("https://localhost{path}");
    Request::get(uri).body(Body::empty()).unwrap()
}

fn port_of(server: &Running) -> u16 {
    let address = server.first["address"].as_str().unwrap();
    address.parse::<SocketAddr>().unwrap().port()
}

/// A pager, or a log collector that has stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_that_is_not_read_holds_up_nothing() {
    let home = Home::new(&[("x", b"content")]);
    // Reads the first line and no other.
    let server = Running::start(home.serve(":", &["--json"]));
    let port = port_of(&server);
    let client = home.http3(port).await;
    // Far more than a pipe holds, in lines that are long to get there soon.
    let long = "a".repeat(4000);
    for index in 0..2000 {
        let path = format!("/x?{index}{long}");
        let path = if index % 10 == 0 {
            format!("/{long}")
        } else {
            path
        };
        let (head, body) = client.send(get(&path)).await.unwrap().into_parts();
        body.collect().await.unwrap();
        assert_eq!(head.status == StatusCode::OK, index % 10 != 0);
    }
    let answer = https(&Ask::new(port, &home.certificate, "/x")).unwrap();
    assert_eq!(answer.body, b"content");
    client.close();
    assert_eq!(server.interrupt(), Some(0));
}

/// A client that requests large files and reads none leaves resources for others.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_takes_all_descriptors() {
    let home = Home::new(&[("large", &vec![7; 4_000_000]), ("small", b"small")]);
    let server = Running::start(home.serve("ulimit -n 64", &["--json"]));
    let port = port_of(&server);
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..5 {
        let client = home.http3(port).await;
        for _ in 0..20 {
            let response = client.send(get("/large")).await.unwrap();
            if response.status() == StatusCode::OK {
                held.push(response);
            } else {
                assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
                assert_eq!(response.headers()["retry-after"], "1");
                refused += 1;
            }
        }
    }
    assert!(refused > 50, "{refused} refused");
    // Other clients are served, and connections over TCP are accepted.
    let other = home.http3_from([127, 0, 0, 2], port).await;
    for path in ["/large", "/small"] {
        let response = other.send(get(path)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
    assert!(https(&Ask::new(port, &home.certificate, "/small")).is_ok());
    drop(held);
    // Slots are released.
    for attempt in 0.. {
        let answer = https(&Ask::new(port, &home.certificate, "/small")).unwrap();
        if answer.status == 200 {
            break;
        }
        assert!(attempt < 600, "the places never come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Opening a FIFO blocks until it has a reader.
#[test]
fn an_access_log_is_a_file() {
    let home = Home::new(&[]);
    let fifo = home.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    for extra in [&[][..], &["--check-config"]] {
        let mut command = home.serve(":", &["--access-log", &fifo]);
        let output = command.args(extra).output().unwrap();
        let line = failed(&output, 7);
        assert!(line.contains("fifo: it is not a file"), "{line}");
    }
    let missing = home.path("nowhere/access.log");
    let output = home
        .serve(":", &["--check-config", "--access-log", &missing])
        .output();
    failed(&output.unwrap(), 7);
    let mut command = home.serve(":", &["--json", "--access-log", "/dev/null"]);
    command.stderr(Stdio::null());
    assert_eq!(Running::start(command).interrupt(), Some(0));
}

/// What `serve` prints for people when `/secret` is requested.
async fn printed_for_a_request(flags: &[&str]) -> String {
    let home = Home::new(&[]);
    let output = home.path("output");
    let mut command = home.serve(&format!("exec >'{output}'"), flags);
    let mut child = command.spawn().unwrap();
    let port = loop {
        let text = fs::read_to_string(&output).unwrap_or_default();
        let port = text.split("https://127.0.0.1:").nth(1);
        let port = port.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        if let Some(port) = port.filter(|_| text.contains('\n')) {
            break port.parse().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let client = home.http3(port).await;
    client.send(get("/secret")).await.unwrap();
    client.close();
    let pid = child.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &pid]).status();
    assert!(interrupted.unwrap().success());
    assert!(child.wait().unwrap().success());
    fs::read_to_string(output).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_line_is_written_if_the_access_log_is_off() {
    let off = printed_for_a_request(&["--access-log", "off"]).await;
    assert!(!off.contains("/secret"), "{off}");
    let usual = printed_for_a_request(&[]).await;
    assert!(usual.contains("/secret"), "{usual}");
}

/// A disk that is full stays so for many requests.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_once() {
    let home = Home::new(&[("x", b"x")]);
    let errors = home.path("errors");
    let before = format!("exec 2>'{errors}'");
    let flags = ["--json", "--access-log", "/dev/full"];
    let mut server = Running::start(home.serve(&before, &flags));
    let client = home.http3(port_of(&server)).await;
    for _ in 0..50 {
        let response = client.send(get("/x")).await.unwrap();
        response.into_body().collect().await.unwrap();
        // One after the other, so that each may be written by itself.
        assert_eq!(server.next()["event"], "served");
    }
    client.close();
    assert_eq!(server.interrupt(), Some(0));
    let errors = fs::read_to_string(errors).unwrap();
    let told = errors.matches("the access log can't be written").count();
    assert_eq!(told, 1, "{errors}");
}

/// The first line printed has the address.
#[test]
fn the_first_lines_have_what_clients_need() {
    let home = Home::new(&[]);
    let mut command = home.serve_after(":", &["--listen", "[::]:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Vec<String> = lines.by_ref().take(7).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let text = first.join("\n");
    assert!(first[0].starts_with("serving /"), "{text}");
    for expected in [
        "https://localhost:",
        "--ca ",
        "--origin-to-force-quic-on=localhost:",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    let key = text.split("--ignore-certificate-errors-spki-list=").nth(1);
    let key = key.unwrap().split(' ').next().unwrap();
    // 32 bytes in base64.
    assert!(key.len() == 44 && key.ends_with('='), "{key}");
}

#[test]
fn a_fifo_in_the_place_of_the_access_log_changes_nothing() {
    let home = Home::new(&[]);
    let log = home.path("access.log");
    let mut server = Running::start(home.serve(":", &["--json", "--access-log", &log]));
    fs::remove_file(&log).unwrap();
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    let pid = server.id().to_string();
    let hangup = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(hangup.unwrap().success());
    let event = server.next();
    assert_eq!(event["event"], "reload_failed");
    assert!(
        event["error"]
            .as_str()
            .unwrap()
            .contains("it is not a file")
    );
    assert_eq!(server.interrupt(), Some(0));
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_is_private_whatever_the_umask() {
    let home = Home::new(&[]);
    let listen = format!("127.0.0.1:{}", free_port());
    let flags = ["--json", "--listen", &listen];
    let server = Running::start(home.serve_after("umask 0", &flags));
    let state = home.path("state");
    assert_eq!(mode(&state), 0o700);
    let secrets = home.path(&format!("state/secrets-{}", listen.replace(':', "-")));
    assert_eq!(mode(&secrets), 0o600);
    let first = fs::read(&secrets).unwrap();
    assert!(first.len() >= 64);
    assert_eq!(server.interrupt(), Some(0));
    // The next process has the same.
    let server = Running::start(home.serve_after("umask 0", &flags));
    assert_eq!(fs::read(&secrets).unwrap(), first);
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn secrets_are_read_from_a_file() {
    let home = Home::new(&[]);
    let file = home.path("secrets");
    fs::write(&file, "too short").unwrap();
    let output = home.serve(":", &["--secrets", &file]).output().unwrap();
    let line = failed(&output, 7);
    assert!(line.contains("less than 32 bytes"), "{line}");
    let checked = home
        .serve(":", &["--secrets", &file, "--check-config"])
        .output();
    failed(&checked.unwrap(), 7);
    fs::write(&file, [9; 48]).unwrap();
    let server = Running::start(home.serve(":", &["--json", "--secrets", &file]));
    assert_eq!(fs::read(&file).unwrap(), [9; 48]);
    assert_eq!(server.interrupt(), Some(0));
}

/// A port that was free a moment ago, for UDP.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// The clients of a killed server get stateless resets from the next process.
#[test]
fn clients_detect_a_restart_at_once() {
    let large = vec![7; 40_000_000];
    let home = Home::new(&[("large", &large)]);
    let listen = format!("127.0.0.1:{}", free_port());
    let flags = ["--json", "--no-tcp", "--listen", &listen];
    let server = Running::start(home.serve_after(":", &flags));
    let mut get = swiftwater();
    let out = home.path("out");
    get.args([
        "get",
        "--protocol",
        "h3",
        "--limit-rate",
        "80mbit",
        "-o",
        &out,
        "--ca",
    ]);
    get.arg(home.path("state/dev-cert.pem"));
    get.arg(format!("https://{listen}/large"));
    get.stdout(Stdio::piped()).stderr(Stdio::piped());
    let get = get.spawn().unwrap();
    let part = home.path(".out.part");
    while fs::metadata(&part).map_or(0, |part| part.len()) < 2_000_000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Dropped, it is killed.
    drop(server);
    let server = Running::start(home.serve_after(":", &flags));
    let restarted = Instant::now();
    let output = get.wait_with_output().unwrap();
    let elapsed = restarted.elapsed();
    succeeded(&output);
    assert_eq!(fs::read(&out).unwrap(), large);
    // The rest takes four seconds; without a reset the idle timeout of 30 s passes first.
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
    assert_eq!(server.interrupt(), Some(0));
}
