//! An origin on loopback with configurable protocols on one port, and clients for it.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]

pub mod selecting;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use swiftwater_http::client::{
    Builder, Chosen, ClientBody, HttpClient, HttpsRecord, Network, Origin, Resolved, Resolver,
    Resolving, Timeouts,
};
use swiftwater_http::tcp::{
    ALPN_HTTP2, ALPN_HTTP11, Certificates, RunningServer, TcpServer, server_config,
};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::service::WebService;
use swiftwater_net::quic::{
    ClientConfig, EarlyData, EndpointConfig, RetryPolicy, ServerConfig, TransportConfig,
};
use swiftwater_net::{Endpoint, EndpointOptions};
use swiftwater_tls::{
    ClientTls, DevCertificate, EndpointSecrets, MemorySessionStore, ServerTls, Tickets,
};
use tokio::net::TcpListener;

pub const NAME: &str = "origin.test";

/// Fails a test that hangs; far longer than any of them takes.
pub async fn guard<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(90), work)
        .await
        .expect("the test hangs")
}

pub async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The service at the TCP port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tcp {
    /// HTTP/2 and HTTP/1.1 over TLS.
    Both,
    /// HTTP/1.1 over TLS.
    Http1,
    /// HTTP/1.1 without TLS.
    Plain,
    /// No answer.
    None,
}

/// The service at the UDP port of the same number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Udp {
    Http3,
    /// All datagrams are lost.
    Silent,
    /// The port is closed.
    Closed,
}

/// The origin. It stops when dropped.
pub struct World {
    pub port: u16,
    pub tcp: Option<RunningServer>,
    pub http3: Arc<Mutex<H3Server>>,
    server_end: Option<Endpoint>,
    _silent: Option<UdpSocket>,
    certificate: DevCertificate,
}

impl World {
    pub async fn new<S>(tcp: Tcp, udp: Udp, service: S) -> Self
    where
        S: WebService + Sync,
    {
        let certificate = DevCertificate::generate([NAME]).unwrap();
        let http3 = Arc::new(Mutex::new(H3Server::default()));
        // A port that is free for both.
        loop {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let (mut silent, mut server_end) = (None, None);
            if udp == Udp::Closed {
                // It was free a moment ago.
                if UdpSocket::bind(address).is_err() {
                    continue;
                }
            } else if udp == Udp::Silent {
                let Ok(socket) = UdpSocket::bind(address) else {
                    continue;
                };
                silent = Some(socket);
            } else {
                let Ok(endpoint) = Endpoint::bind(address, quic_options(&certificate)) else {
                    continue;
                };
                accept(endpoint.clone(), Arc::clone(&http3), service.clone());
                server_end = Some(endpoint);
            }
            return Self {
                port: address.port(),
                tcp: tcp_server(tcp, &certificate, listener, service),
                http3,
                server_end,
                _silent: silent,
                certificate,
            };
        }
    }

    /// Lets the HTTP/3 connections end in good order; new ones are served.
    pub fn drain_http3(&self) {
        let old = std::mem::take(&mut *self.http3.lock().unwrap());
        old.drain();
    }

    /// The HTTP/3 side as restarted after a crash: the same secrets and certificate, without
    /// connections. It is at another port; [`Forwarder`] forwards to it.
    pub fn http3_after_a_crash<S>(&self, service: S) -> Endpoint
    where
        S: WebService + Sync,
    {
        let any = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::bind(any, quic_options(&self.certificate)).unwrap();
        accept(endpoint.clone(), Arc::clone(&self.http3), service);
        endpoint
    }

    /// A client that finds and trusts the origin, with a short QUIC timeout.
    pub fn client(&self) -> Builder {
        let tls = ClientTls::with_roots([self.certificate.certificate_der()])
            .unwrap()
            .alpn([ALPN_HTTP3])
            .sessions(Arc::new(MemorySessionStore::default()))
            .early_data(true);
        let config = ClientConfig {
            crypto: Arc::new(tls),
            transport: Arc::new(TransportConfig::default()),
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::client(any, endpoint_config(2), [2; 32]).unwrap();
        HttpClient::builder()
            .quic(endpoint, config)
            .tls(self.tls())
            .resolver(Names::default())
            .network(Network::default)
            .timeouts(Timeouts {
                quic: Duration::from_secs(20),
                ..Timeouts::default()
            })
    }

    pub fn tls(&self) -> rustls::ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.certificate_der()).unwrap();
        rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    pub fn uri(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.port)
    }

    pub fn origin(&self) -> Origin {
        Origin::of(&self.uri("/").parse().unwrap()).unwrap()
    }

    pub fn get(&self, path: &str) -> Request<Body> {
        Request::get(self.uri(path)).body(Body::empty()).unwrap()
    }

    pub fn post(&self, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        Request::post(self.uri(path))
            .body(Full::new(body.into()))
            .unwrap()
    }
}

/// A UDP port that forwards to a server, and later to another one. For one client.
pub struct Forwarder {
    pub port: u16,
    server: tokio::sync::watch::Sender<u16>,
}

impl Forwarder {
    pub async fn to(server: u16) -> Self {
        let here = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let here = here.await.unwrap();
        let port = here.local_addr().unwrap().port();
        let (server, target) = tokio::sync::watch::channel(server);
        tokio::spawn(forward(here, target));
        Self { port, server }
    }

    pub fn lead_to(&self, server: u16) {
        self.server.send(server).unwrap();
    }
}

async fn forward(here: tokio::net::UdpSocket, mut target: tokio::sync::watch::Receiver<u16>) {
    let mut client = None;
    loop {
        let there = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let there = there.await.unwrap();
        let port = *target.borrow_and_update();
        there.connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let (mut up, mut down) = ([0; 2048], [0; 2048]);
        loop {
            tokio::select! {
                // What is sent after `lead_to` goes to the new server.
                biased;
                changed = target.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Ok((length, from)) = here.recv_from(&mut up) => {
                    // A datagram that isn't QUIC probes whether the port is open.
                    if length > 1 {
                        client = Some(from);
                        let _ = there.send(&up[..length]).await;
                    }
                }
                Ok(length) = there.recv(&mut down) => {
                    if let Some(client) = client {
                        let _ = here.send_to(&down[..length], client).await;
                    }
                }
            }
        }
    }
}

fn endpoint_config(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}

fn quic_options(certificate: &DevCertificate) -> EndpointOptions {
    let tls = ServerTls::from_dev_certificate(certificate)
        .unwrap()
        .alpn([ALPN_HTTP3])
        .tickets(Tickets::SingleUse { capacity: 10 })
        .unwrap()
        .early_data(true);
    let config = ServerConfig {
        retry: RetryPolicy::Never,
        early_data: EarlyData::Accept,
        ..ServerConfig::new(Arc::new(tls), Arc::new(TransportConfig::default()))
    };
    EndpointOptions::new(endpoint_config(1), [1; 32]).server(config)
}

fn accept<S>(endpoint: Endpoint, http3: Arc<Mutex<H3Server>>, service: S)
where
    S: WebService + Sync,
{
    tokio::spawn(async move {
        while let Some(connection) = endpoint.accept().await {
            let (server, service) = (http3.lock().unwrap().clone(), service.clone());
            tokio::spawn(async move { server.serve(connection, service).await });
        }
    });
}

fn tcp_server<S>(
    tcp: Tcp,
    certificate: &DevCertificate,
    listener: TcpListener,
    service: S,
) -> Option<RunningServer>
where
    S: WebService + Sync,
{
    let chain = vec![certificate.certificate_der()];
    let certificates = Certificates::new(chain, certificate.private_key_der()).unwrap();
    let mut config = server_config(Arc::new(certificates)).unwrap();
    let server = match tcp {
        Tcp::None => return None,
        Tcp::Plain => TcpServer::plain(),
        Tcp::Both => {
            config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP11.to_vec()];
            TcpServer::tls(Arc::new(config))
        }
        Tcp::Http1 => {
            config.alpn_protocols = vec![ALPN_HTTP11.to_vec()];
            TcpServer::tls(Arc::new(config))
        }
    };
    Some(server.serve(listener, service).unwrap())
}

/// Every name resolves to this host, except `nowhere.test`, which never resolves. Records are
/// configurable.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub record: Option<HttpsRecord>,
    pub lookups: Arc<AtomicUsize>,
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, host: &'a str, _: u16) -> Resolving<'a> {
        Box::pin(async move {
            self.lookups.fetch_add(1, Ordering::SeqCst);
            match host {
                "unknown.test" => return Err(io::ErrorKind::NotFound.into()),
                "nowhere.test" => return Ok(Resolved::default()),
                "silent.test" => std::future::pending().await,
                _ => {}
            }
            Ok(Resolved {
                addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
                https: self.record.clone(),
            })
        })
    }
}

pub fn chosen(response: &Response<ClientBody>) -> Chosen {
    *response.extensions().get::<Chosen>().unwrap()
}

pub async fn read(response: Response<ClientBody>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}
