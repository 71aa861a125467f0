//! The TCP side of the client: HTTP/1.1's connections, refused streams, proxies.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use swiftwater_http::client::{
    AttemptCause, Error, HttpClient, Measurements, Policy, Protocol, Proxies, Why,
};
use swiftwater_http::tcp::{ALPN_HTTP2, Certificates, server_config};
use swiftwater_http::web::body::Body;
use swiftwater_tls::DevCertificate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::service_fn;

use crate::client_world::{NAME, Names, Tcp, Udp, World, chosen, guard, read, until};

async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_connections_carry_one_request_after_the_other() {
    guard(async {
        let world = World::new(Tcp::Http1, Udp::Silent, service_fn(echo)).await;
        let client = world
            .client()
            .idle_http1(2, std::time::Duration::from_secs(600));
        let client = client.build().unwrap();
        for nth in 0..20 {
            // With content and without, the connection is free when the response has been read.
            let data = vec![1; nth % 2 * 1000];
            let response = client.send(world.post("/", data.clone())).await.unwrap();
            assert_eq!(chosen(&response).protocol, Protocol::Http1);
            assert!(read(response).await == data);
        }
        assert_eq!(client.pool_stats().opened, 1);
        assert_eq!(client.pool_stats().idle_http1, 1);

        // Four at once need four; two are kept.
        let mut responses = Vec::new();
        for _ in 0..4 {
            responses.push(client.send(world.post("/", "x".repeat(100))).await.unwrap());
        }
        assert_eq!(client.pool_stats().opened, 4);
        assert_eq!(client.pool_stats().idle_http1, 0);
        for response in responses {
            assert_eq!(read(response).await.len(), 100);
        }
        assert_eq!(client.pool_stats().idle_http1, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_whose_response_was_not_read_is_not_used_again() {
    guard(async {
        let world = World::new(Tcp::Http1, Udp::Silent, service_fn(echo)).await;
        let client = world.client().build().unwrap();
        let response = client
            .send(world.post("/", vec![1; 4 << 20]))
            .await
            .unwrap();
        drop(response);
        let response = client.send(world.post("/", "second")).await.unwrap();
        assert!(!chosen(&response).reused);
        assert_eq!(read(response).await, "second");
    })
    .await;
}

/// HTTP/2 that refuses the first `refusals` streams.
async fn refusing(refusals: usize) -> (SocketAddr, rustls::ClientConfig, Arc<AtomicUsize>) {
    let certificate = DevCertificate::generate([NAME]).unwrap();
    let chain = vec![certificate.certificate_der()];
    let certificates = Certificates::new(chain, certificate.private_key_der()).unwrap();
    let mut config = server_config(Arc::new(certificates)).unwrap();
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    // RFC 9113, section 8.3.1.
                    assert!(!request.uri().to_string().contains('@'));
                    if seen.fetch_add(1, Ordering::SeqCst) < refusals {
                        respond.send_reset(h2::Reason::REFUSED_STREAM);
                    } else {
                        respond.send_response(Response::new(()), true).unwrap();
                    }
                }
            });
        }
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.certificate_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (address, tls, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_information_is_not_sent() {
    guard(async {
        let (address, tls, seen) = refusing(0).await;
        let client = HttpClient::builder().tls(tls).resolver(Names::default());
        let uri = format!("https://user:secret@{NAME}:{}/", address.port());
        let request = Request::get(&uri).body(Body::empty()).unwrap();
        client.build().unwrap().send(request).await.unwrap();
        assert_eq!(seen.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_streams_are_asked_again_whatever_the_method() {
    guard(async {
        let (address, tls, seen) = refusing(2).await;
        let client = HttpClient::builder().tls(tls).resolver(Names::default());
        let client = client.build().unwrap();
        let uri = format!("https://{NAME}:{}/", address.port());
        let request = Request::post(&uri).body(Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(chosen(&response).sent, 3);
        assert_eq!(seen.load(Ordering::SeqCst), 3);
        assert_eq!(client.pool_stats().opened, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_at_a_server_that_always_refuses_end() {
    guard(async {
        let (address, tls, seen) = refusing(usize::MAX).await;
        let client = HttpClient::builder().tls(tls).resolver(Names::default());
        let client = client.build().unwrap();
        let uri = format!("https://{NAME}:{}/", address.port());
        let request = Request::get(&uri).body(Body::empty()).unwrap();
        let error = client.send(request).await.unwrap_err();
        assert!(matches!(error, Error::Tcp(_)), "{error:?}");
        assert_eq!(seen.load(Ordering::SeqCst), 4);
    })
    .await;
}

/// A proxy that makes tunnels to ports of this host, if the credentials are right.
struct TestProxy {
    address: SocketAddr,
    /// The first lines of the request.
    asked: Arc<std::sync::Mutex<Vec<String>>>,
    tunnels: Arc<AtomicUsize>,
}

impl TestProxy {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            tunnels: Arc::default(),
        };
        let (asked, tunnels) = (Arc::clone(&proxy.asked), Arc::clone(&proxy.tunnels));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(tunnel(stream, Arc::clone(&asked), Arc::clone(&tunnels)));
            }
        });
        proxy
    }

    fn proxies(&self, credentials: &str) -> Proxies {
        let value = format!("http://{credentials}{}", self.address);
        let read = |name: &str| (name == "HTTPS_PROXY").then(|| value.clone());
        Proxies::from_variables(read).unwrap()
    }
}

async fn tunnel(
    mut stream: TcpStream,
    asked: Arc<std::sync::Mutex<Vec<String>>>,
    tunnels: Arc<AtomicUsize>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let line = head.lines().next().unwrap().to_owned();
    asked.lock().unwrap().push(line.clone());
    // "user:secret" in base64.
    if !head
        .to_lowercase()
        .contains("proxy-authorization: basic dxnlcjpzzwnyzxq=")
    {
        let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        return;
    }
    let port = line.split(' ').nth(1).unwrap().rsplit(':').next().unwrap();
    let port: u16 = port.parse().unwrap();
    let mut upstream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    tunnels.fetch_add(1, Ordering::SeqCst);
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
    tunnels.fetch_sub(1, Ordering::SeqCst);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_makes_a_tunnel_and_keeps_quic_away() {
    guard(async {
        let proxy = TestProxy::start().await;
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(echo)).await;
        let names = Names::default();
        let client = world
            .client()
            .resolver(names.clone())
            .assume_http3(true)
            .tcp_statistics(true)
            .proxies(proxy.proxies("user:secret@"))
            .build()
            .unwrap();
        for _ in 0..2 {
            let response = client.send(world.post("/", "through")).await.unwrap();
            assert_eq!(chosen(&response).protocol, Protocol::Http2);
            assert_eq!(chosen(&response).why, Why::Proxy);
            let measurements = response.extensions().get::<Measurements>().unwrap().clone();
            assert_eq!(read(response).await, "through");
            // The connection is the one to the proxy.
            let measured = measurements.ended().await;
            assert_eq!((measured.rtt, measured.out_of_order), (None, None));
        }
        let line = format!("CONNECT {NAME}:{} HTTP/1.1", world.port);
        assert_eq!(*proxy.asked.lock().unwrap(), [line]);
        // The origin's name is the proxy's business.
        assert_eq!(names.lookups.load(Ordering::SeqCst), 0);

        let mut request = world.get("/");
        request.extensions_mut().insert(Policy::Http3Only);
        let error = client.send(request).await.unwrap_err();
        assert!(
            matches!(error, Error::Http3Impossible(Why::Proxy)),
            "{error:?}"
        );
        drop(client);
        until(|| proxy.tunnels.load(Ordering::SeqCst) == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_refuses_is_named_in_the_error() {
    guard(async {
        let proxy = TestProxy::start().await;
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(echo)).await;
        let client = world.client().proxies(proxy.proxies("")).build().unwrap();
        let error = client.send(world.get("/")).await.unwrap_err();
        let Error::Unreachable(attempts) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(attempts[0].address, proxy.address);
        let cause = &attempts[0].cause;
        assert!(
            matches!(
                cause,
                AttemptCause::Proxy(StatusCode::PROXY_AUTHENTICATION_REQUIRED)
            ),
            "{cause:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_closed_while_idle_is_replaced() {
    guard(async {
        // Answers one request per connection, without announcing the close.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(answer).await.unwrap();
            }
        });
        let world = World::new(Tcp::None, Udp::Silent, service_fn(echo)).await;
        let client = world.client().build().unwrap();
        for _ in 0..3 {
            let request = Request::get(format!("http://{NAME}:{port}/"));
            let request = request.body(Full::new(Bytes::new())).unwrap();
            let response = client.send(request).await.unwrap();
            let content = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(content, "ok");
            until(|| client.pool_stats().idle_http1 == 0).await;
        }
        assert_eq!(client.pool_stats().opened, 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_closes_with_a_request_is_replaced_where_that_may_be_repeated() {
    guard(async {
        // Answers the first request of each connection, and reads the second one before it closes.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                for is_first in [true, false] {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.unwrap());
                    }
                    if is_first {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                        stream.write_all(answer).await.unwrap();
                    }
                }
            }
        });
        let world = World::new(Tcp::None, Udp::Silent, service_fn(echo)).await;
        let client = world.client().build().unwrap();
        let ask = async |method: Method| {
            let uri = format!("http://{NAME}:{port}/");
            let request = Request::builder().method(method).uri(uri);
            let response = client.send(request.body(Body::empty()).unwrap()).await?;
            let sent = chosen(&response).sent;
            response.into_body().collect().await.unwrap();
            until(|| client.pool_stats().idle_http1 == 1).await;
            Ok::<_, Error>(sent)
        };
        assert_eq!(ask(Method::GET).await.unwrap(), 1);
        assert_eq!(ask(Method::GET).await.unwrap(), 2);
        // It may have been processed.
        ask(Method::POST).await.unwrap_err();
    })
    .await;
}
