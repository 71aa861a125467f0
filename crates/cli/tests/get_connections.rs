//! How `get` reaches servers: rates, unreachable ports, versions of TLS, certificates.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::Value;
use swiftwater::DevCertificate;
use swiftwater::tls::rustls::crypto::aws_lc_rs;
use swiftwater::tls::rustls::version::TLS12;
use swiftwater::tls::rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::support::{Running, Site, failed, succeeded, swiftwater};

fn row(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// Content that arrives in blocks shorter than the clock's resolution must not come at a fraction of
/// the rate. (The band is wide: other work may slow the machine down.)
#[test]
fn a_rate_is_kept_with_every_protocol() {
    let site = Site::start(&[("large", &vec![7; 10_000_000])]);
    for protocol in ["http1.1", "tcp", "h3"] {
        let mut get = site.get_http(&["/large"]);
        get.args(["--limit-rate", "200mbit", "--force", "--json"]);
        let output = get.args(["--protocol", protocol]).output().unwrap();
        succeeded(&output);
        let row = row(&output);
        let rate = row["goodput_bps"].as_f64().unwrap() / 1e6;
        assert!(
            rate > 50.0 && rate < 215.0,
            "{rate:.1} Mbit/s over {protocol}"
        );
    }
}

/// An unbound port, for TCP and UDP.
fn closed_port() -> u16 {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        if UdpSocket::bind(address).is_ok() {
            return address.port();
        }
    }
}

#[test]
fn closed_ports_are_reported_at_once() {
    let url = format!("https://127.0.0.1:{}/", closed_port());
    for (protocol, words) in [
        ("auto", "over QUIC: cannot connect"),
        ("auto", "; over TCP: cannot connect"),
        ("h3", "the UDP port is unreachable"),
        ("tcp", "refused"),
    ] {
        let mut get = swiftwater();
        get.args(["get", &url, "--insecure", "-o", "-"]);
        get.args(["--connect-timeout", "60s", "--protocol", protocol]);
        let message = failed(&get.output().unwrap(), 4);
        assert!(message.contains(words), "{message}");
        // A refusal is no timeout.
        assert!(!message.contains("60 s"), "{protocol}: {message}");
    }
}

/// A server of HTTP/1.1 over TLS 1.2 that answers each connection with its path.
fn tls12_server(certificate: &DevCertificate) -> u16 {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = vec![certificate.certificate_der()];
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, certificate.private_key_der())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(session, socket.unwrap()));
            let mut line = String::new();
            let mut path = String::new();
            while stream.read_line(&mut line).is_ok_and(|length| length > 2) {
                if path.is_empty() {
                    path.push_str(line.split(' ').nth(1).unwrap_or_default());
                }
                line.clear();
            }
            let length = path.len();
            let _ = write!(
                stream.get_mut(),
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{path}"
            );
        }
    });
    port
}

#[test]
fn a_server_without_tls_1_3_is_understood_and_its_lack_of_quic_stored() {
    let home = TempDir::new().unwrap();
    let certificate = DevCertificate::generate(["127.0.0.1"]).unwrap();
    fs::write(home.path().join("ca.pem"), certificate.certificate_pem()).unwrap();
    let port = tls12_server(&certificate);
    let get = |flags: &[&str]| {
        let mut get = swiftwater();
        get.args(["get", &format!("https://127.0.0.1:{port}/path"), "--json"]);
        get.args(["--ca", "ca.pem", "-o", "x", "--force"])
            .args(flags);
        get.env("XDG_STATE_HOME", home.path().join("state"));
        let output = get.current_dir(home.path()).output().unwrap();
        succeeded(&output);
        assert_eq!(fs::read(home.path().join("x")).unwrap(), b"/path");
        row(&output)["why"].as_str().unwrap().to_owned()
    };
    let memory = home.path().join("state/swiftwater/quic-failures.json");
    assert_eq!(get(&["--no-state"]), "QUIC failed");
    assert!(!memory.exists());
    assert_eq!(get(&[]), "QUIC failed");
    let known: Value = serde_json::from_slice(&fs::read(&memory).unwrap()).unwrap();
    assert_eq!(known[0]["failures"], 1, "{known}");
    assert_eq!(get(&[]), "QUIC failed recently on this network");
    assert_eq!(get(&["--no-state"]), "QUIC failed");
    // Nonsense is no memory.
    fs::write(&memory, "[{]").unwrap();
    assert_eq!(get(&[]), "QUIC failed");
}

#[test]
fn a_server_whose_tls_is_too_old_has_an_error_of_its_own() {
    // It answers with a fatal alert, protocol_version.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("https://{address}/");
    // Whatever is sent there over QUIC stays unanswered.
    let _silent = UdpSocket::bind(address).unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.write_all(&[21, 3, 1, 0, 2, 2, 70]);
            let mut hello = BufReader::new(socket);
            let _ = hello.fill_buf();
        }
    });
    let output = swiftwater()
        .args(["get", &url, "--insecure", "-o", "-"])
        .args(["--connect-timeout", "60s"])
        .output();
    let message = failed(&output.unwrap(), 5);
    assert!(
        message.contains("the server accepts neither TLS 1.3 nor TLS 1.2"),
        "{message}"
    );
    // It didn't wait for the end of the attempt over QUIC, which would be part of the message.
    assert!(!message.contains("QUIC"), "{message}");
}

/// `serve` with the certificate in `cert.pem`.
fn serve(home: &Path) -> (Running, u16) {
    let mut serve = swiftwater();
    serve.arg("serve").arg(home).current_dir(home);
    serve.args(["--listen", "127.0.0.1:0", "--json"]);
    serve.args(["--cert", "cert.pem", "--key", "key.pem"]);
    let server = Running::start(serve);
    let address = server.first["address"].as_str().unwrap();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    (server, port)
}

fn get(home: &Path, host: &str, port: u16, flags: &[&str]) -> Command {
    let mut get = swiftwater();
    get.args(["get", &format!("https://{host}:{port}/key.pem"), "-o", "-"]);
    get.args(flags).current_dir(home);
    get
}

/// As `openssl req -x509` makes it: self-signed, and an authority's.
#[test]
fn the_usual_self_signed_certificate_can_be_trusted_and_hints_fit_the_error() {
    let home = TempDir::new().unwrap();
    let home = home.path();
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    fs::write(home.join("cert.pem"), certificate.pem()).unwrap();
    fs::write(home.join("key.pem"), key.serialize_pem()).unwrap();
    let other = DevCertificate::generate(["localhost"]).unwrap();
    fs::write(home.join("other.pem"), other.certificate_pem()).unwrap();
    let (_server, port) = serve(home);
    for protocol in ["h3", "tcp"] {
        let ask = |host: &str, ca: &str| {
            let flags = ["--ca", ca, "--protocol", protocol];
            get(home, host, port, &flags).output().unwrap()
        };
        succeeded(&ask("localhost", "cert.pem"));

        let message = failed(&ask("127.0.0.1", "cert.pem"), 5);
        assert!(
            message.contains("it is for localhost, not for 127.0.0.1 (--insecure skips"),
            "{message}"
        );
        let message = failed(&ask("localhost", "other.pem"), 5);
        assert!(
            message.contains("bad certificate of localhost") && message.contains("--ca FILE"),
            "{message}"
        );
        // No names of variants.
        for words in ["CaUsedAsEndEntity", "Other(", "OtherError"] {
            assert!(!message.contains(words), "{message}");
        }
    }
}
