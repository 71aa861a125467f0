//! Upstreams of `serve` beside plain HTTP/1.1: over TLS, at Unix sockets, and WebSocket.

#![cfg(unix)]

use crate::support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::Empty;
use serde_json::Value;
use swiftwater::DevCertificate;
use swiftwater::tls::pki_types::pem::PemObject;
use swiftwater::tls::pki_types::{CertificateDer, ServerName};
use swiftwater::tls::rustls::crypto::aws_lc_rs;
use swiftwater::tls::rustls::server::WebPkiClientVerifier;
use swiftwater::tls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use swiftwater_http::h3::ConnectProtocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::https::{Ask, https};
use crate::operated::Operated;

const CERTIFICATE: &str = "[[certificate]]\ncert = \"0.pem\"\nkey = \"0.key\"\n";

fn certificate() -> DevCertificate {
    DevCertificate::generate(["localhost"]).unwrap()
}

/// Reads the head of a request.
fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Agrees to each handshake and sends the bytes of its client back.
fn websocket() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            assert!(head(&mut stream).contains("\r\nupgrade: websocket\r\n"));
            let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                          sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            let mut copy = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut stream, &mut copy);
        }
    });
    address
}

/// A TLS connection to the server, for HTTP/1.1.
async fn connect(port: u16, trusted: &DevCertificate) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate_der()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

/// A handshake at `path`: the connection, and the first line of the response.
async fn upgrade(
    port: u16,
    trusted: &DevCertificate,
    path: &str,
) -> (TlsStream<TcpStream>, String) {
    let mut stream = connect(port, trusted).await;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    (stream, head.lines().next().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_passes_where_it_may_and_is_logged() {
    let certificate = certificate();
    let upstream = websocket();
    let config = format!(
        "{CERTIFICATE}[log]\naccess = \"access.log\"\nformat = \"json\"\n[[site]]\n\
         [[site.route]]\ndirectory = \"files\"\n\
         [[site.route]]\npath = \"/on\"\nupstream = \"http://{upstream}\"\n\
         [[site.route]]\npath = \"/off\"\nupstream = \"http://{upstream}\"\nwebsocket = false\n\
         [[site.route]]\npath = \"/short\"\nupstream = \"http://{upstream}\"\nwebsocket_timeout = \"200ms\"\n"
    );
    let mut server = Operated::start(&config, &[("files/a", "text")], &[&certificate]);
    let (mut stream, line) = upgrade(server.port, &certificate, "/on/socket").await;
    assert_eq!(line, "HTTP/1.1 101 Switching Protocols");
    // Connections go on after a reload.
    server.hang_up("reloaded");
    stream.write_all(b"bytes").await.unwrap();
    stream.flush().await.unwrap();
    let mut echoed = [0; 5];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"bytes");
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
    let (_, line) = upgrade(server.port, &certificate, "/off").await;
    assert_eq!(line, "HTTP/1.1 501 Not Implemented");
    let (mut stream, line) = upgrade(server.port, &certificate, "/short").await;
    assert_eq!(line, "HTTP/1.1 101 Switching Protocols");
    let ended = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut rest));
    let _ = ended.await.unwrap();
    let home = server.stop();
    let log = fs::read_to_string(home.path().join("access.log")).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |path: &str| {
        let line = lines.iter().find(|line| line["path"] == path).unwrap();
        let number = |name: &str| line[name].as_u64().unwrap();
        (
            number("status"),
            number("bytes"),
            line["ending"].as_str().unwrap(),
        )
    };
    assert_eq!(of("/on/socket"), (101, 5, "complete"));
    assert_eq!(of("/off").0, 501);
    assert_eq!(of("/short"), (101, 0, "failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_connections_are_cut_after_the_time_to_stop() {
    let certificate = certificate();
    let upstream = websocket();
    let config = format!(
        "grace = \"500ms\"\n{CERTIFICATE}[[site]]\n[[site.route]]\nupstream = \"http://{upstream}\"\n"
    );
    let server = Operated::start(&config, &[], &[&certificate]);
    let (mut stream, line) = upgrade(server.port, &certificate, "/").await;
    assert_eq!(line, "HTTP/1.1 101 Switching Protocols");
    let code = tokio::task::spawn_blocking(move || server.interrupt());
    // Until then it goes on.
    stream.write_all(b"bytes").await.unwrap();
    stream.flush().await.unwrap();
    let mut echoed = [0; 5];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(code.await.unwrap(), Some(130));
    let mut rest = Vec::new();
    assert!(stream.read_to_end(&mut rest).await.is_err() || rest.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn protocols_that_content_does_not_have_are_not_implemented() {
    let certificate = certificate();
    let upstream = websocket();
    let config = format!(
        "{CERTIFICATE}[[site]]\n[[site.route]]\ndirectory = \"files\"\n\
         [[site.route]]\npath = \"/on\"\nupstream = \"http://{upstream}\"\n\
         [[site.route]]\npath = \"/moved\"\nredirect = \"/on{{path}}\"\n"
    );
    let server = Operated::start(&config, &[("files/a", "text")], &[&certificate]);
    let client = server.http3("localhost", &certificate).await.unwrap();
    while client.peer_settings().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (path, protocol) in [
        ("/a", "websocket"),
        ("/a", "unheard-of"),
        ("/moved", "websocket"),
        ("/on", "unheard-of"),
    ] {
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri(format!("https://localhost{path}"))
            .extension(ConnectProtocol::new(protocol).unwrap())
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 501, "{path} {protocol}");
    }
}

#[test]
fn upstreams_over_tls_are_verified() {
    let (inner, outer) = (certificate(), certificate());
    let config = format!("{CERTIFICATE}[[site]]\n[[site.route]]\ndirectory = \"files\"\n");
    let upstream = Operated::start(&config, &[("files/a/x", "text")], &[&inner]);
    let port = upstream.port;
    let config = format!(
        "{CERTIFICATE}[[site]]\n\
         [[site.route]]\npath = \"/a\"\nupstream = \"https://127.0.0.1:{port}\"\n\
         upstream_ca = \"1.pem\"\nupstream_name = \"localhost\"\n\
         [[site.route]]\npath = \"/b\"\nupstream = \"https://localhost:{port}/a\"\nupstream_ca = \"1.pem\"\n\
         strip_path = true\n\
         [[site.route]]\npath = \"/c\"\nupstream = \"https://localhost:{port}\"\n"
    );
    let server = Operated::start(&config, &[], &[&outer, &inner]);
    let ask = |path: &str| {
        let answer = https(&Ask::new(server.port, &outer, path)).unwrap();
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    assert_eq!(ask("/a/x"), (200, "text".to_owned()));
    assert_eq!(ask("/b/x"), (200, "text".to_owned()));
    // The system does not trust it.
    assert_eq!(ask("/c/x").0, 502);
}

/// A certificate of a client, PEM, and its key.
fn of_client() -> (String, String) {
    let mut params = rcgen::CertificateParams::new(["proxy.example".to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// Answers connections over TLS whose client has the certificate `client`.
async fn for_known_clients(own: &DevCertificate, client: &str) -> SocketAddr {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    let client = CertificateDer::from_pem_slice(client.as_bytes()).unwrap();
    roots.add(client).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![own.certificate_der()], own.private_key_der())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            // An answer ahead of its request is none.
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else {
                    break;
                };
                head.push(byte);
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nknown";
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn upstreams_may_ask_for_a_certificate() {
    let (inner, outer) = (certificate(), certificate());
    let (known, known_key) = of_client();
    let (other, other_key) = of_client();
    let upstream = for_known_clients(&inner, &known).await;
    let route = |path: &str, more: &str| {
        let port = upstream.port();
        format!(
            "[[site.route]]\npath = \"{path}\"\nupstream = \"https://localhost:{port}\"\n\
             upstream_ca = \"1.pem\"\n{more}\n"
        )
    };
    let with =
        |name: &str| format!("upstream_cert = \"{name}.pem\"\nupstream_key = \"{name}.key\"");
    let config = format!(
        "{CERTIFICATE}[[site]]\n{}{}{}",
        route("/known", &with("known")),
        route("/other", &with("other")),
        route("/none", ""),
    );
    let files = [
        ("known.pem", &*known),
        ("known.key", &known_key),
        ("other.pem", &other),
        ("other.key", &other_key),
    ];
    let server = Operated::start(&config, &files, &[&outer, &inner]);
    let port = server.port;
    let asked = tokio::task::spawn_blocking(move || {
        let ask = |path: &str| https(&Ask::new(port, &outer, path)).unwrap();
        (ask("/known"), ask("/other"), ask("/none"))
    });
    let (known, other, none) = asked.await.unwrap();
    assert_eq!((known.status, &*known.body), (200, &b"known"[..]));
    assert_eq!((other.status, none.status), (502, 502));
}

#[test]
fn a_certificate_for_upstreams_must_fit_its_key() {
    let outer = certificate();
    let home = tempfile::TempDir::new().unwrap();
    let (chain, key) = of_client();
    let (_, other_key) = of_client();
    for (name, text) in [
        ("0.pem", outer.certificate_pem()),
        ("0.key", outer.private_key_pem()),
        ("c.pem", &chain),
        ("c.key", &key),
        ("d.key", &other_key),
    ] {
        fs::write(home.path().join(name), text).unwrap();
    }
    let refused = |upstream: &str, keys: &str| {
        let text =
            format!("{CERTIFICATE}[[site]]\n[[site.route]]\nupstream = \"{upstream}\"\n{keys}\n");
        let path = home.path().join("serve.toml");
        fs::write(&path, text).unwrap();
        let mut command = support::swiftwater();
        let output = command
            .args(["serve", "--check-config", "--config"])
            .arg(path)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let both = "upstream_cert = \"c.pem\"\nupstream_key = \"d.key\"";
    let text = refused("https://localhost:1", both);
    assert!(text.contains("c.pem"), "{text}");
    let text = refused("https://localhost:1", "upstream_cert = \"c.pem\"");
    assert!(text.contains("go together"), "{text}");
    let both = "upstream_cert = \"c.pem\"\nupstream_key = \"c.key\"";
    let text = refused("http://localhost:1", both);
    assert!(text.contains("https://"), "{text}");
}

#[test]
fn unix_sockets_are_upstreams() {
    let outer = certificate();
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let line = head(&mut stream).lines().next().unwrap().to_owned();
            let length = line.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{line}"
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let config = format!(
        "{CERTIFICATE}[[site]]\n[[site.route]]\nupstream = \"unix:{}\"\n",
        path.display()
    );
    let server = Operated::start(&config, &[], &[&outer]);
    let answer = https(&Ask::new(server.port, &outer, "/a?b")).unwrap();
    assert_eq!(answer.body, b"GET /a?b HTTP/1.1");
}
