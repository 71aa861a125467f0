//! A proxy on loopback, targets of several kinds, and a client of the proxy.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, H3Server, SendRequest};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{
    ClientConfig, EndpointConfig, RetryPolicy, ServerConfig, TransportConfig,
};
use swiftwater_net::{Connection, Endpoint, EndpointOptions};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, ServerTls};
use swiftwater_tunnel::client::endpoint::TunnelEndpoint;
use swiftwater_tunnel::client::{Connect, Connecting, OpenError, TcpTunnel, TunnelClient};
use swiftwater_tunnel::policy::{Ports, TargetPolicy};
use swiftwater_tunnel::proxy::{
    Access, ProxyConfig, ProxyStats, Resolve, Resolving, Token, TunnelProxy,
};
use swiftwater_tunnel::target::{Target, Template};
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tower::{Service, service_fn};

pub const NAME: &str = "localhost";
pub const SECRET: &str = "a-secret-of-the-test";

/// Fails a test that hangs; far longer than any of them takes.
pub async fn guard<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("the test hangs")
}

pub fn token() -> Token {
    Token::new("alice", SECRET).unwrap()
}

/// A proxy for alice that reaches loopback addresses at all ports.
pub fn config() -> ProxyConfig {
    ProxyConfig {
        policy: TargetPolicy {
            ports: Ports::all(),
            allowed: vec!["127.0.0.0/8".parse().unwrap()],
            denied: Vec::new(),
        },
        ..ProxyConfig::new(Access::Tokens(Arc::new([token()])))
    }
}

/// Resolves the names of the test.
pub struct Names(pub BTreeMap<&'static str, Vec<SocketAddr>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str, _port: u16) -> Resolving<'a> {
        Box::pin(async move {
            if name == "slow.example" {
                std::future::pending::<()>().await;
            }
            let found = self.0.get(name).cloned();
            found.ok_or_else(|| io::Error::other("no such name"))
        })
    }
}

pub struct Stage {
    pub proxy: TunnelProxy,
    pub server_end: Endpoint,
    pub client_end: Endpoint,
    pub client_config: ClientConfig,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(config())
    }

    pub fn with(config: ProxyConfig) -> Self {
        Self::serving(TunnelProxy::new(config))
    }

    pub fn serving(proxy: TunnelProxy) -> Self {
        let transport = TransportConfig {
            initial_max_datagram_size: 1252,
            ..TransportConfig::default()
        };
        Self::over(transport, proxy)
    }

    /// Both ends have this `transport`.
    pub fn over(transport: TransportConfig, proxy: TunnelProxy) -> Self {
        Self::with_tls(transport, proxy, |tls| tls, |tls| tls)
    }

    /// The same, with changes of the TLS of server and client.
    pub fn with_tls(
        transport: TransportConfig,
        proxy: TunnelProxy,
        server: impl FnOnce(ServerTls) -> ServerTls,
        client: impl FnOnce(ClientTls) -> ClientTls,
    ) -> Self {
        let certificate = DevCertificate::generate([NAME]).unwrap();
        let tls = ServerTls::from_dev_certificate(&certificate)
            .unwrap()
            .alpn([ALPN_HTTP3]);
        let transport = Arc::new(transport);
        let server_config = ServerConfig {
            retry: RetryPolicy::Never,
            ..ServerConfig::new(Arc::new(server(tls)), Arc::clone(&transport))
        };
        let tls = ClientTls::with_roots([certificate.certificate_der()])
            .unwrap()
            .alpn([ALPN_HTTP3]);
        let client_config = ClientConfig {
            crypto: Arc::new(client(tls)),
            transport,
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server_config);
        let server_end = Endpoint::bind(any, options).unwrap();
        let client_end = Endpoint::client(any, endpoint_config(2), [2; 32]).unwrap();
        let (acceptor, service) = (server_end.clone(), proxy.clone());
        tokio::spawn(async move {
            let server = H3Server::default();
            while let Some(connection) = acceptor.accept().await {
                let (server, service) = (server.clone(), service.clone());
                tokio::spawn(async move { server.serve(connection, service).await });
            }
        });
        Self {
            proxy,
            server_end,
            client_end,
            client_config,
        }
    }

    pub async fn connect(&self) -> SendRequest {
        self.connector().connect().await.unwrap()
    }

    fn connector(&self) -> Connector {
        self.connector_to(self.server_end.local_addr())
    }

    /// Connects to the proxy at another address, such as that of a relay.
    pub fn connector_to(&self, to: SocketAddr) -> Connector {
        Connector {
            end: self.client_end.clone(),
            config: self.client_config.clone(),
            to,
        }
    }

    pub fn client(&self) -> TunnelClient {
        self.client_with(Some(&token()))
    }

    pub fn client_with(&self, token: Option<&Token>) -> TunnelClient {
        let template = Template::new(NAME).unwrap();
        TunnelClient::new(template, token, self.connector())
    }

    /// Waits until the proxy's counters are as wanted.
    pub async fn until(&self, wanted: impl Fn(&ProxyStats) -> bool) -> ProxyStats {
        loop {
            let stats = self.proxy.stats();
            if wanted(&stats) {
                return stats;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub fn endpoint_config(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}

pub struct Connector {
    end: Endpoint,
    config: ClientConfig,
    to: SocketAddr,
}

impl Connect for Connector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connection = self.end.connect(&self.config, self.to, NAME)?.await?;
            Ok(SendRequest::new(connection, h3::Config::default()))
        })
    }
}

/// A client of a proxy that can't be reached.
pub fn no_proxy() -> TunnelClient {
    struct Nowhere;
    impl Connect for Nowhere {
        fn connect(&self) -> Connecting<'_> {
            Box::pin(async { Err("nobody answers".into()) })
        }
    }
    TunnelClient::new(Template::new(NAME).unwrap(), None, Nowhere)
}

/// A target that sends everything back.
pub async fn echo() -> Target {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_535];
        loop {
            let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
            let _ = socket.send_to(&buffer[..len], from).await;
        }
    });
    target(address)
}

pub fn target(address: SocketAddr) -> Target {
    Target::new(&address.ip().to_string(), address.port()).unwrap()
}

/// A server of HTTP/3 whose responses are `content`, and the configuration of its clients.
pub fn origin(content: Bytes, transport: TransportConfig) -> (Endpoint, ClientConfig) {
    origin_at("127.0.0.1:0".parse().unwrap(), content, transport)
}

/// The same at `address`.
pub fn origin_at(
    address: SocketAddr,
    content: Bytes,
    transport: TransportConfig,
) -> (Endpoint, ClientConfig) {
    let service = service_fn(move |_: Request<Body>| {
        let content = content.clone();
        async move { Ok::<_, Infallible>(Response::new(Body::full(content))) }
    });
    serving_at(address, service, transport)
}

/// A server of HTTP/3 with this `service`, and the configuration of its clients.
pub fn serving<S>(service: S, transport: TransportConfig) -> (Endpoint, ClientConfig)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    serving_at("127.0.0.1:0".parse().unwrap(), service, transport)
}

fn serving_at<S>(
    address: SocketAddr,
    service: S,
    transport: TransportConfig,
) -> (Endpoint, ClientConfig)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let certificate = DevCertificate::generate([NAME]).unwrap();
    let tls = ServerTls::from_dev_certificate(&certificate)
        .unwrap()
        .alpn([ALPN_HTTP3]);
    let config = ServerConfig::new(Arc::new(tls), Arc::new(transport));
    let options = EndpointOptions::new(endpoint_config(3), [3; 32]).server(config);
    let endpoint = Endpoint::bind(address, options).unwrap();
    let acceptor = endpoint.clone();
    tokio::spawn(async move {
        while let Some(connection) = acceptor.accept().await {
            let service = service.clone();
            tokio::spawn(async move { H3Server::default().serve(connection, service).await });
        }
    });
    let tls = ClientTls::with_roots([certificate.certificate_der()])
        .unwrap()
        .alpn([ALPN_HTTP3]);
    let config = ClientConfig {
        crypto: Arc::new(tls),
        transport: Arc::default(),
    };
    (endpoint, config)
}

/// A target for TCP that serves one connection, and the result.
pub async fn tcp_target<T, F>(
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (Target, JoinHandle<T>)
where
    T: Send + 'static,
    F: Future<Output = T> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move { serve(listener.accept().await.unwrap().0).await });
    (target(address), served)
}

/// A target for TCP that sends everything back, on any number of connections.
pub async fn tcp_echo() -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                tokio::io::copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });
    target(address)
}

/// Bytes that differ from place to place.
pub fn content(len: u32) -> Vec<u8> {
    (0..len)
        .map(|n| (n.wrapping_mul(7919) >> 5) as u8)
        .collect()
}

/// Sends `content` through a tunnel to a target that sends everything back, and returns what comes.
pub async fn sent_back(tunnel: TcpTunnel, content: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = split(tunnel);
    let sending = async {
        writer.write_all(content).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let ((), read) = tokio::join!(sending, reader.read_to_end(&mut received));
    read.unwrap();
    received
}

/// The status and the Proxy-Status with which the proxy refused a tunnel.
#[track_caller]
pub fn refused<T: Debug>(opened: Result<T, OpenError>) -> (StatusCode, String) {
    match opened {
        Err(OpenError::Refused {
            status,
            proxy_status,
        }) => (status, proxy_status.unwrap_or_default()),
        other => panic!("not refused: {other:?}"),
    }
}

/// An endpoint of this program whose connections are in tunnels of `client`.
pub fn endpoint(client: TunnelClient) -> TunnelEndpoint {
    TunnelEndpoint::new(client, &EndpointOptions::new(endpoint_config(4), [4; 32])).unwrap()
}

/// The content of an origin, on a connection to it.
pub async fn get(connection: Connection) -> Bytes {
    get_with(&SendRequest::new(connection, h3::Config::default())).await
}

/// The same for a client that is kept.
pub async fn get_with(client: &SendRequest) -> Bytes {
    let request = Request::get(format!("https://{NAME}/"));
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = client.send(request).await.unwrap();
    response.into_body().collect().await.unwrap().to_bytes()
}
