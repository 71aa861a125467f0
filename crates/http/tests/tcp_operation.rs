//! What operators of a TCP server need: certificates by name, older clients, what became of each
//! connection.

use crate::peers;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use swiftwater_http::tcp::{
    ALPN_HTTP2, ALPN_HTTP11, CertificateError, Certificates, ConnectionEnd, MinTls, Outcome,
    RunningServer, TcpLimits, TcpServer, server_config_from,
};
use swiftwater_http::web::access_log::{AccessLogLayer, Record};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::host::{host, host_name};
use swiftwater_tls::DevCertificate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::{Layer, service_fn};

use peers::{get, http1, http2, in_time, text, until};

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::full("hello")))
}

fn shown(certificates: &[&DevCertificate]) -> Certificates {
    let pairs = certificates.iter().map(|certificate| {
        (
            certificate.certificate_pem().as_bytes(),
            certificate.private_key_pem().as_bytes(),
        )
    });
    Certificates::from_pems(pairs).unwrap()
}

fn certificate(names: &[&str]) -> DevCertificate {
    DevCertificate::generate(names.iter().copied()).unwrap()
}

async fn start(certificates: Arc<Certificates>, oldest: MinTls) -> RunningServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = server_config_from(certificates, oldest).unwrap();
    TcpServer::tls(Arc::new(config))
        .serve(listener, service_fn(hello))
        .unwrap()
}

/// A client with the server name `name` that trusts `roots`.
async fn connect(
    address: SocketAddr,
    name: &'static str,
    roots: &[&DevCertificate],
    version: &'static SupportedProtocolVersion,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.certificate_der()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(name).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    in_time(connector.connect(name, stream)).await
}

fn leaf(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    chain[0].clone().into_owned()
}

#[tokio::test]
async fn the_name_chooses_the_certificate() {
    let [first, second, third] = [
        certificate(&["a.example", "localhost"]),
        certificate(&["b.example", "*.b.example"]),
        certificate(&["c.example"]),
    ];
    let certificates = Arc::new(shown(&[&first, &second]));
    let server = start(Arc::clone(&certificates), MinTls::Tls13).await;
    let all = [&first, &second, &third];
    let seen = async |name| {
        let stream = connect(server.local_addr(), name, &all, &rustls::version::TLS13);
        stream.await.map(|stream| leaf(&stream))
    };
    assert_eq!(seen("a.example").await.unwrap(), first.certificate_der());
    assert_eq!(seen("b.example").await.unwrap(), second.certificate_der());
    assert_eq!(seen("x.b.example").await.unwrap(), second.certificate_der());
    // Nobody has it: the first is shown, which the client refuses.
    assert!(seen("c.example").await.is_err());
    certificates.replace_with(&shown(&[&third, &second]));
    assert_eq!(seen("c.example").await.unwrap(), third.certificate_der());
    assert_eq!(seen("b.example").await.unwrap(), second.certificate_der());
    assert!(matches!(
        certificates.replace_from_pems([]),
        Err(CertificateError::Empty)
    ));
    assert_eq!(seen("c.example").await.unwrap(), third.certificate_der());
}

#[tokio::test]
async fn tls_1_2_is_spoken_if_it_may_be() {
    let certificate = certificate(&["localhost"]);
    let roots = [&certificate];
    let certificates = Arc::new(shown(&[&certificate]));
    let old = start(Arc::clone(&certificates), MinTls::Tls12).await;
    let client = connect(
        old.local_addr(),
        "localhost",
        &roots,
        &rustls::version::TLS12,
    );
    let stream = client.await.unwrap();
    let (_, session) = stream.get_ref();
    assert_eq!(session.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    assert_eq!(session.alpn_protocol(), Some(ALPN_HTTP2));
    let response = http2(stream)
        .await
        .send_request(get("https://localhost/"))
        .await;
    assert_eq!(text(response.unwrap()).await, "hello");
    let newer = connect(
        old.local_addr(),
        "localhost",
        &roots,
        &rustls::version::TLS13,
    );
    let version = newer.await.unwrap().get_ref().1.protocol_version();
    assert_eq!(version, Some(ProtocolVersion::TLSv1_3));

    let strict = start(certificates, MinTls::default()).await;
    let refused = connect(
        strict.local_addr(),
        "localhost",
        &roots,
        &rustls::version::TLS12,
    );
    assert!(refused.await.is_err());
}

#[tokio::test]
async fn the_end_of_each_connection_is_reported() {
    let (certificate, certificates) = peers::certificate();
    let ends: Arc<Mutex<Vec<ConnectionEnd>>> = Arc::default();
    let told = Arc::clone(&ends);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = server_config_from(certificates, MinTls::Tls13).unwrap();
    let server = TcpServer::tls(Arc::new(config))
        .observe(move |end| told.lock().unwrap().push(end.clone()))
        .serve(listener, service_fn(hello))
        .unwrap();
    let stream = peers::tls(server.local_addr(), &certificate, &[ALPN_HTTP11]).await;
    let mut client = http1(stream).await;
    for _ in 0..3 {
        let response = client.send_request(get("/")).await.unwrap();
        assert_eq!(text(response).await, "hello");
        client.ready().await.unwrap();
    }
    drop(client);
    until(|| ends.lock().unwrap().len() == 1).await;
    let end = ends.lock().unwrap().remove(0);
    assert_eq!(end.requests, 3);
    assert_eq!(end.alpn.as_deref(), Some(ALPN_HTTP11));
    assert_eq!(end.outcome, Outcome::Orderly);
    // A certificate alone takes more.
    assert!(end.bytes_sent > 300 && end.bytes_received > 200, "{end:?}");

    let mut stranger = TcpStream::connect(server.local_addr()).await.unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    stranger.shutdown().await.unwrap();
    until(|| ends.lock().unwrap().len() == 1).await;
    let end = ends.lock().unwrap().remove(0);
    assert!(
        matches!(end.outcome, Outcome::HandshakeFailed(_)),
        "{end:?}"
    );
    assert_eq!((end.requests, end.bytes_received), (0, 18));
}

#[tokio::test]
async fn records_go_where_the_server_is_configured_to_write_them() {
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let sink = Arc::clone(&records);
    let layer = AccessLogLayer::to(move |record| sink.lock().unwrap().push(record.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = TcpServer::plain()
        .serve(listener, layer.layer(service_fn(hello)))
        .unwrap();
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut client = http1(stream).await;
    let request = Request::get("/a?secret")
        .header("host", "Some.example:80")
        .body(Body::empty())
        .unwrap();
    text(client.send_request(request).await.unwrap()).await;
    until(|| records.lock().unwrap().len() == 1).await;
    let record = records.lock().unwrap().remove(0);
    assert_eq!(record.target, "/a");
    assert_eq!(record.host.as_deref(), Some("Some.example:80"));
    assert_eq!((record.status, record.bytes), (Some(200), 5));
    assert_eq!((record.ending(), record.early), ("complete", false));
}

#[test]
fn hosts_are_compared_by_their_names() {
    let request = |target: &str| Request::get(target).header("host", "field.example");
    let absolute = request("https://Target.example:8443/x").body(()).unwrap();
    assert_eq!(host(&absolute), Some("Target.example:8443"));
    assert_eq!(
        host(&request("/x").body(()).unwrap()),
        Some("field.example")
    );
    assert_eq!(host(&Request::get("/x").body(()).unwrap()), None);
    assert_eq!(host_name("Target.example:8443").unwrap(), "target.example");
    assert_eq!(host_name("a.example.").unwrap(), "a.example");
    assert_eq!(host_name("[2001:DB8::1]:443").unwrap(), "[2001:db8::1]");
    assert_eq!(host_name("a b"), None);
    assert_eq!(host_name(""), None);
}

#[tokio::test]
async fn plain_http_at_a_port_for_tls_is_answered_with_an_error() {
    let (_, certificates) = peers::certificate();
    let server = start(certificates, MinTls::Tls13).await;
    for opening in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(opening.as_bytes()).await.unwrap();
        let mut answer = String::new();
        in_time(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{answer}"
        );
        assert!(answer.contains("plain HTTP request was sent to an HTTPS port"));
    }
    // What is neither HTTP nor TLS gets an alert, as before.
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&[0x42 | 0x80; 100]).await.unwrap();
    let mut answer = Vec::new();
    let _ = in_time(stream.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP"));
}

/// A connection from `client`, an address of the loopback network.
async fn connect_from(client: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((client, 0))).unwrap();
    socket.connect(server).await.unwrap()
}

/// Whether a request on the connection is answered; it stays open then.
async fn is_served(stream: &mut TcpStream) -> bool {
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = [0; 8];
    stream.write_all(request).await.is_ok()
        && matches!(stream.read(&mut first).await, Ok(read) if first[..read].starts_with(b"HTTP/1.1"))
}

#[tokio::test]
async fn no_address_takes_all_connections() {
    const GREEDY: [u8; 4] = [127, 0, 0, 1];
    in_time(async {
        for share_by_address in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let limits = TcpLimits {
                connections: 4,
                share_by_address,
                ..TcpLimits::default()
            };
            let server = TcpServer::plain().limits(limits);
            let server = server.serve(listener, service_fn(hello)).unwrap();
            let address = server.local_addr();
            let mut held = Vec::new();
            let mut served = Vec::new();
            for _ in 0..3 {
                let mut stream = connect_from(GREEDY, address).await;
                served.push(is_served(&mut stream).await);
                held.push(stream);
            }
            assert_eq!(served, [true, true, !share_by_address]);
            let mut other = connect_from([127, 0, 0, 2], address).await;
            assert!(is_served(&mut other).await);
            // What is given back can be had again.
            drop(held);
            until(|| server.connections() == 1).await;
            let mut again = connect_from(GREEDY, address).await;
            assert!(is_served(&mut again).await);
        }
    })
    .await;
}
