//! `serve` as operators run it: a configuration file, signals, logs, counts, limits.

#![cfg(unix)]

use crate::operated;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use http::{Request, StatusCode, Version};
use http_body_util::BodyExt;
use serde_json::Value;
use swiftwater::tls::rustls::ProtocolVersion;
use swiftwater::tls::rustls::version::TLS12;
use swiftwater::{Client, DevCertificate, ReadError, ReadToEndError};
use swiftwater_http::udp::SendRequest;
use swiftwater_http::web::body::Body;
use tempfile::TempDir;

use crate::https::{Ask, http, https};
use crate::support::{Running, swiftwater};
use operated::Operated;

fn certificate(names: &[&str]) -> DevCertificate {
    DevCertificate::generate(names.iter().copied()).unwrap()
}

async fn get(client: &SendRequest, uri: &str) -> (StatusCode, String) {
    send(client, Request::get(uri).body(Body::empty()).unwrap()).await
}

async fn send(client: &SendRequest, request: Request<Body>) -> (StatusCode, String) {
    let (head, body) = client.send(request).await.unwrap().into_parts();
    assert_eq!(head.version, Version::HTTP_3);
    let content = body.collect().await.unwrap().to_bytes();
    (head.status, String::from_utf8(content.to_vec()).unwrap())
}

/// The body of an answer over TCP.
fn text(ask: &Ask<'_>) -> String {
    String::from_utf8(https(ask).unwrap().body).unwrap()
}

const ONE: &str = "\
[[certificate]]
cert = \"0.pem\"
key = \"0.key\"
[[site]]
[[site.route]]
directory = \"one\"
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hangup_changes_content_and_certificates() {
    let [old, new] = [certificate(&["localhost"]), certificate(&["localhost"])];
    let files = [("one/a", "one"), ("two/a", "two")];
    let mut server = Operated::start(ONE, &files, &[&old]);
    let client = server.http3("localhost", &old).await.unwrap();
    assert_eq!(get(&client, "https://localhost/a").await.1, "one");
    assert_eq!(text(&Ask::new(server.port, &old, "/a")), "one");

    server.write_certificate(0, &new);
    server.write("serve.toml", &ONE.replace("one", "two"));
    let event = server.hang_up("reloaded");
    assert_eq!(event["needs_restart"], Value::Array(Vec::new()));
    // The connection stays, its requests see the new content.
    assert_eq!(get(&client, "https://localhost/a").await.1, "two");
    assert!(server.http3("localhost", &old).await.is_err());
    let client = server.http3("localhost", &new).await.unwrap();
    assert_eq!(get(&client, "https://localhost/a").await.1, "two");
    assert!(https(&Ask::new(server.port, &old, "/a")).is_err());
    let answer = https(&Ask::new(server.port, &new, "/a")).unwrap();
    assert_eq!(answer.certificate, new.certificate_der());
    assert_eq!(answer.body, b"two");
}

#[test]
fn a_broken_configuration_changes_nothing() {
    let certificate = certificate(&["localhost"]);
    let mut server = Operated::start(ONE, &[("one/a", "one")], &[&certificate]);
    let unknown = format!("speed = 7\n{ONE}");
    let no_directory = ONE.replace("one", "nowhere");
    let no_file = ONE.replace("0.pem", "other.pem");
    for (broken, expected) in [
        (unknown.as_str(), "serve.toml:1: "),
        (no_directory.as_str(), "nowhere"),
        (no_file.as_str(), "other.pem"),
    ] {
        server.write("serve.toml", broken);
        let event = server.hang_up("reload_failed");
        let error = event["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error}");
        assert_eq!(text(&Ask::new(server.port, &certificate, "/a")), "one");
    }
    // What can't change while it runs is named.
    let changed = format!("workers = 3\n[limits]\nrequests = 9\n{ONE}");
    server.write("serve.toml", &changed);
    let event = server.hang_up("reloaded");
    assert_eq!(
        event["needs_restart"],
        serde_json::json!(["workers", "limits"])
    );
    assert_eq!(text(&Ask::new(server.port, &certificate, "/a")), "one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_access_log_has_requests_and_connections() {
    let certificate = certificate(&["localhost"]);
    let config = format!("[log]\naccess = \"access.log\"\nformat = \"json\"\n{ONE}");
    let mut server = Operated::start(&config, &[("one/a", "one")], &[&certificate]);
    let client = server.http3("localhost", &certificate).await.unwrap();
    assert_eq!(get(&client, "https://localhost/a?secret").await.1, "one");
    client.close();
    server.event("served");
    // As log rotation does it.
    fs::rename(server.path("access.log"), server.path("access.log.1")).unwrap();
    server.hang_up("reloaded");
    let common = config.replace("json", "common");
    assert_eq!(
        https(&Ask::new(server.port, &certificate, "/b"))
            .unwrap()
            .status,
        404
    );
    server.event("served");
    server.write("serve.toml", &common);
    server.hang_up("reloaded");
    let ask = Ask::new(server.port, &certificate, "/a");
    https(&ask).unwrap();
    server.event("served");
    let home = server.stop();

    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let first = read("access.log.1");
    let lines: Vec<Value> = first
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let request = lines
        .iter()
        .find(|line| line["event"] == "request")
        .unwrap();
    assert_eq!(request["path"], "/a");
    assert_eq!(
        (&request["protocol"], &request["method"]),
        (&"h3".into(), &"GET".into())
    );
    assert_eq!(
        (&request["status"], &request["bytes"]),
        (&200.into(), &3.into())
    );
    assert_eq!(
        (&request["early"], &request["host"]),
        (&false.into(), &"localhost".into())
    );
    assert!(request["seconds"].as_f64().unwrap() > 0.0);
    let second = read("access.log");
    let (mut as_json, mut as_text) = (Vec::new(), Vec::new());
    for line in second.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => as_json.push(value),
            Err(_) => as_text.push(line),
        }
    }
    assert!(
        as_json
            .iter()
            .any(|line| line["path"] == "/b" && line["status"] == 404)
    );
    // Each connection has its line, wherever the rotation put it.
    let mut ends = lines.iter().chain(&as_json);
    let end = ends.find(|line| line["protocol"] == "h3" && line["event"] == "connection");
    let end = end.unwrap();
    assert_eq!(end["requests"], 1);
    assert!(end["rtt_ms"].as_f64().unwrap() > 0.0 && end["bytes_sent"].as_u64() > Some(1200));
    assert_eq!(end["packets_lost"], 0);
    let [line] = as_text[..] else {
        panic!("{as_text:?}")
    };
    assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
    assert!(
        line.ends_with(" +0000] \"GET /a HTTP/1.1\" 200 3"),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_scraped() {
    let certificate = certificate(&["localhost"]);
    let config = format!("[metrics]\nlisten = \"127.0.0.1:0\"\n{ONE}");
    let mut server = Operated::start(&config, &[("one/a", "one")], &[&certificate]);
    let event = server.event("metrics");
    let address = event["address"].as_str().unwrap().to_owned();
    let client = server.http3("localhost", &certificate).await.unwrap();
    get(&client, "https://localhost/a").await;
    get(&client, "https://localhost/b").await;
    https(&Ask::new(server.port, &certificate, "/a")).unwrap();
    for _ in 0..3 {
        server.event("served");
    }
    let stranger = self::certificate(&["localhost"]);
    assert!(https(&Ask::new(server.port, &stranger, "/a")).is_err());
    server.hang_up("reloaded");
    let (status, counts) = http(&address, "/metrics").unwrap();
    assert_eq!(status, 200);
    let has = |line: &str| counts.lines().any(|each| each == line);
    for line in [
        r#"swiftwater_http_requests_total{version="3",method="GET",status="2xx"} 1"#,
        r#"swiftwater_http_requests_total{version="3",method="GET",status="4xx"} 1"#,
        r#"swiftwater_http_requests_total{version="1.1",method="GET",status="2xx"} 1"#,
        r#"swiftwater_connections_open{transport="quic"} 1"#,
        r#"swiftwater_reloads_total{result="done"} 1"#,
        "swiftwater_quic_connections_accepted_total 1",
        "swiftwater_log_lines_dropped_total 0",
    ] {
        assert!(has(line), "{line} is not in\n{counts}");
    }
    assert_eq!(http(&address, "/").unwrap().0, 404);
    // These are counted when the server has seen the end.
    client.close();
    let ended = [
        r#"swiftwater_connections_ended_total{protocol="h3"} 1"#,
        r#"swiftwater_connections_ended_total{protocol="http/1.1"} 1"#,
        r#"swiftwater_handshakes_failed_total{transport="tcp"} 1"#,
    ];
    let counts = (0..3000).find_map(|_| {
        thread::sleep(Duration::from_millis(20));
        let (_, counts) = http(&address, "/metrics").unwrap();
        ended
            .iter()
            .all(|line| counts.contains(line))
            .then_some(counts)
    });
    let counts = counts.expect("the ends are never counted");
    let mut lines = counts.lines();
    let packets = lines.find_map(|line| line.strip_prefix("swiftwater_quic_packets_sent_total "));
    assert!(packets.unwrap().parse::<u64>().unwrap() > 3);
}

/// Answers each request with its first line.
fn upstream() -> SocketAddr {
    operated::upstream(|first| ("location: /there".to_owned(), format!("upstream {first}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_and_paths_choose_the_content() {
    let [a, b] = [
        certificate(&["a.example", "localhost"]),
        certificate(&["*.b.example"]),
    ];
    let upstream = upstream();
    let config = format!(
        r#"
[[certificate]]
cert = "0.pem"
key = "0.key"
[[certificate]]
cert = "1.pem"
key = "1.key"
[[site]]
hosts = ["a.example"]
[[site.route]]
directory = "a"
[[site.route]]
path = "/files"
directory = "files"
[[site.route]]
path = "/api"
upstream = "http://{upstream}"
[[site.route]]
path = "/api/short"
upstream = "http://{upstream}/x"
strip_path = true
[[site]]
hosts = ["*.b.example"]
[[site.route]]
directory = "b"
"#
    );
    let big = "text that repeats ".repeat(200);
    let files = [
        ("a/x", "a"),
        ("b/x", "b"),
        ("files/x", "files"),
        ("files/sub/index.html", "sub"),
        ("a/big.txt", big.as_str()),
    ];
    let server = Operated::start(&config, &files, &[&a, &b]);
    let client = server.http3("a.example", &a).await.unwrap();
    let seen = async |path: &str| get(&client, &format!("https://a.example{path}")).await;
    assert_eq!(seen("/x").await.1, "a");
    assert_eq!(seen("/files/x").await.1, "files");
    assert_eq!(seen("/filesx").await.0, StatusCode::NOT_FOUND);
    assert_eq!(seen("/api?q=1").await.1, "upstream GET /api?q=1 HTTP/1.1");
    assert_eq!(seen("/api/x").await.1, "upstream GET /api/x HTTP/1.1");
    assert_eq!(
        seen("/api/short/y?q").await.1,
        "upstream GET /x/y?q HTTP/1.1"
    );
    assert_eq!(seen("/files/%2e%2e/x").await.0, StatusCode::BAD_REQUEST);
    let other = get(&client, "https://c.example/x").await;
    assert_eq!(other.0, StatusCode::MISDIRECTED_REQUEST);
    // The certificate follows the name, over QUIC as over TCP.
    let client = server.http3("www.b.example", &b).await.unwrap();
    assert_eq!(get(&client, "https://www.b.example/x").await.1, "b");
    let ask = |host, path| Ask {
        host,
        ..Ask::new(server.port, &a, path)
    };
    let of_b = Ask {
        name: "www.b.example",
        trusted: &b,
        ..ask("www.b.example:443", "/x")
    };
    assert_eq!(text(&of_b), "b");
    // Redirects lead to where the content is.
    for (path, expected) in [("/files", "/files/"), ("/files/sub?q", "/files/sub/?q")] {
        let answer = https(&ask("a.example", path)).unwrap();
        assert_eq!(answer.status, 301);
        let location = format!("\r\nlocation: {expected}\r\n");
        assert!(
            format!("{}\r\n", answer.head).contains(&location),
            "{}",
            answer.head
        );
    }
    let answer = https(&ask("a.example", "/api/short/y")).unwrap();
    assert!(
        answer.head.contains("location: /api/short/there"),
        "{}",
        answer.head
    );
    let packed = Ask {
        fields: "accept-encoding: gzip\r\n",
        ..ask("a.example", "/big.txt")
    };
    let answer = https(&packed).unwrap();
    assert!(answer.head.contains("content-encoding: gzip") && answer.body.len() < big.len() / 4);
    assert_eq!(https(&ask("c.example", "/x")).unwrap().status, 421);
}

/// What is routed elsewhere is not found in the directory of `/`, however the path is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_a_path_avoids_its_route() {
    let certificate = certificate(&["localhost"]);
    let upstream = upstream();
    let config = format!(
        "hq = true\n{ONE}\
         [[site.route]]\npath = \"/admin\"\nupstream = \"http://{upstream}\"\n"
    );
    let files = [
        ("one/admin/secret", "secret"),
        ("one/.env", "secret"),
        ("one/.git/config", "secret"),
        ("one/x", "public"),
    ];
    let server = Operated::start(&config, &files, &[&certificate]);
    let client = server.http3("localhost", &certificate).await.unwrap();
    for path in [
        "/admin/secret",
        "//admin/secret",
        "/%61dmin/secret",
        "//%61%64min//secret",
    ] {
        let expected = format!("upstream GET {path} HTTP/1.1");
        let uri = format!("https://localhost{path}");
        assert_eq!(get(&client, &uri).await.1, expected);
        assert_eq!(text(&Ask::new(server.port, &certificate, path)), expected);
    }
    for path in [
        "/x/..%2fadmin/secret",
        "/x/..%5cadmin/secret",
        "/x/..;/admin/secret",
        "/./admin/secret",
    ] {
        let uri = format!("https://localhost{path}");
        let (status, _) = get(&client, &uri).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        let answer = https(&Ask::new(server.port, &certificate, path)).unwrap();
        assert_eq!(answer.status, 400, "{path}");
    }
    // The same over hq-interop, which reaches no upstream.
    let client = Client::builder()
        .alpn(["hq-interop"])
        .trust_only([certificate.certificate_der()])
        .build()
        .unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let connection = client.connect_to(address, "localhost").await.unwrap();
    for (path, expected) in [
        ("/x", Ok("public")),
        ("/.env", Err(404)),
        ("/.git/config", Err(404)),
        ("/admin/secret", Err(403)),
        ("//admin/secret", Err(403)),
        ("/%61dmin/secret", Err(403)),
        ("/x/..%2fadmin/secret", Err(400)),
    ] {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(format!("GET {path}\r\n").as_bytes())
            .await
            .unwrap();
        send.finish().unwrap();
        let answer = match recv.read_to_end(1000).await {
            Ok(content) => Ok(String::from_utf8(content).unwrap()),
            Err(ReadToEndError::Read(ReadError::Reset(code))) => Err(code),
            Err(error) => panic!("{path}: {error}"),
        };
        assert_eq!(answer, expected.map(str::to_owned), "{path}");
    }
}

/// `hq-interop` is for tests and disabled by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hq_is_spoken_only_where_that_is_asked_for() {
    let certificate = certificate(&["localhost"]);
    let server = Operated::start(ONE, &[("one/x", "x")], &[&certificate]);
    let client = Client::builder()
        .alpn(["hq-interop"])
        .trust_only([certificate.certificate_der()])
        .build()
        .unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    assert!(client.connect_to(address, "localhost").await.is_err());
}

#[test]
fn older_clients_are_served_unless_that_is_forbidden() {
    let certificate = certificate(&["localhost"]);
    let ask = |port| Ask {
        version: &TLS12,
        fields: "accept-encoding: gzip\r\n",
        ..Ask::new(port, &certificate, "/a")
    };
    let big = "text that repeats ".repeat(200);
    let files = [("one/a", big.as_str())];
    let server = Operated::start(
        &format!("compression = false\n{ONE}"),
        &files,
        &[&certificate],
    );
    let answer = https(&ask(server.port)).unwrap();
    assert_eq!(answer.version, Some(ProtocolVersion::TLSv1_2));
    assert!(answer.body == big.as_bytes() && answer.head.contains("alt-svc: h3="));
    let strict = format!("[tls]\nmin_version = \"1.3\"\n{ONE}");
    let server = Operated::start(&strict, &files, &[&certificate]);
    assert!(https(&ask(server.port)).is_err());
    let answer = https(&Ask::new(server.port, &certificate, "/a")).unwrap();
    assert_eq!(answer.version, Some(ProtocolVersion::TLSv1_3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_for_all_versions() {
    let certificate = certificate(&["localhost"]);
    let config = format!("[limits]\nheader_count = 5\nheader_size = 8192\n{ONE}");
    let server = Operated::start(&config, &[("one/a", "one")], &[&certificate]);
    let client = server.http3("localhost", &certificate).await.unwrap();
    let request = |fields: usize, length: usize| {
        let value = "v".repeat(length);
        let request = Request::get("https://localhost/a");
        let named = (0..fields).map(|nth| format!("x-{nth}"));
        named.fold(request, |request, name| request.header(name, &value))
    };
    let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let sent = async |fields, length| {
        let request = request(fields, length).body(Body::empty()).unwrap();
        send(&client, request).await.0
    };
    assert_eq!(sent(1, 100).await, StatusCode::OK);
    assert_eq!(sent(12, 1).await, too_large);
    // HTTP/3 clients get a flow control limit, and this one obeys it.
    let large = request(1, 9000).body(Body::empty()).unwrap();
    let error = client.send(large).await.unwrap_err().to_string();
    assert!(error.contains("8192"), "{error}");
    let fields = "x: 1\r\n".repeat(12);
    let many = Ask {
        fields: &fields,
        ..Ask::new(server.port, &certificate, "/a")
    };
    assert_eq!(https(&many).unwrap().status, 431);
    let large = format!("x: {}\r\n", "v".repeat(20_000));
    let large = Ask {
        fields: &large,
        ..many
    };
    assert_eq!(https(&large).unwrap().status, 431);
    assert_eq!(text(&Ask::new(server.port, &certificate, "/a")), "one");
}

#[test]
fn flags_do_without_a_file() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("a"), "one").unwrap();
    let log = home.path().join("access.log");
    let mut command = swiftwater();
    command
        .arg("serve")
        .arg(home.path())
        .args(["--listen", "127.0.0.1:0", "--json"]);
    command.args([
        "--metrics",
        "127.0.0.1:0",
        "--max-header-count",
        "5",
        "--min-tls",
        "1.3",
    ]);
    command
        .arg("--access-log")
        .arg(&log)
        .args(["--log-format", "json", "--state-dir"]);
    command.arg(home.path().join("state"));
    let mut server = Running::start(command);
    let metrics = server.next();
    let address = metrics["address"].as_str().unwrap();
    assert_eq!(http(address, "/metrics").unwrap().0, 200);
    assert!(Path::new(&log).exists());
    assert_eq!(server.interrupt(), Some(0));
}
