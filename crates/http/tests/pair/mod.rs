//! A server and a client of HTTP/3 on loopback.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]

#[path = "../../../net/tests/support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, H3Server, RecvBody, SendRequest};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::service::WebService;
use swiftwater_net::quic::{
    ClientConfig, EarlyData, EndpointConfig, RetryPolicy, ServerConfig, TransportConfig,
};
use swiftwater_net::{Connection, Endpoint, EndpointOptions};
use swiftwater_tls::{
    ClientTls, DevCertificate, EndpointSecrets, MemorySessionStore, ServerTls, Tickets,
};

pub const NAME: &str = "localhost";

/// Fails a test that hangs; far longer than any of them takes.
pub async fn guard<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("the test hangs")
}

pub struct Pair {
    pub server: H3Server,
    pub server_end: Endpoint,
    pub client_end: Endpoint,
    pub config: ClientConfig,
    /// The client's.
    pub sessions: Arc<MemorySessionStore>,
}

fn endpoint_config(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}

impl Pair {
    /// A server at work with `service`, and a client that trusts it.
    pub fn new<S>(service: S) -> Self
    where
        S: WebService + Sync,
    {
        Self::with(H3Server::default(), TransportConfig::default(), service)
    }

    pub fn with<S>(server: H3Server, transport: TransportConfig, service: S) -> Self
    where
        S: WebService + Sync,
    {
        let certificate = DevCertificate::generate([NAME]).unwrap();
        let tls = ServerTls::from_dev_certificate(&certificate)
            .unwrap()
            .alpn([ALPN_HTTP3])
            .tickets(Tickets::SingleUse { capacity: 10 })
            .unwrap()
            .early_data(true);
        let transport = Arc::new(transport);
        let server_config = ServerConfig {
            retry: RetryPolicy::Never,
            early_data: EarlyData::Accept,
            ..ServerConfig::new(Arc::new(tls), Arc::clone(&transport))
        };
        let sessions = Arc::new(MemorySessionStore::default());
        let tls = ClientTls::with_roots([certificate.certificate_der()])
            .unwrap()
            .alpn([ALPN_HTTP3])
            .sessions(Arc::clone(&sessions) as _)
            .early_data(true);
        let config = ClientConfig {
            crypto: Arc::new(tls),
            transport,
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server_config);
        let [server_end, client_end] = {
            let _watched = watchdog::enter();
            [
                Endpoint::bind(any, options).unwrap(),
                Endpoint::client(any, endpoint_config(2), [2; 32]).unwrap(),
            ]
        };
        let pair = Self {
            server,
            server_end,
            client_end,
            config,
            sessions,
        };
        let (server, acceptor) = (pair.server.clone(), pair.server_end.clone());
        tokio::spawn(async move {
            while let Some(connection) = acceptor.accept().await {
                let (server, service) = (server.clone(), service.clone());
                tokio::spawn(async move { server.serve(connection, service).await });
            }
        });
        pair
    }

    pub async fn connection(&self) -> Connection {
        let to = self.server_end.local_addr();
        let connecting = self.client_end.connect(&self.config, to, NAME).unwrap();
        connecting.await.unwrap()
    }

    pub async fn connect(&self) -> SendRequest {
        SendRequest::new(self.connection().await, h3::Config::default())
    }
}

pub fn get(path: &str) -> Request<Body> {
    let uri = format!("https://{NAME}{path}");
    Request::get(uri).body(Body::empty()).unwrap()
}

pub fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let uri = format!("https://{NAME}{path}");
    Request::post(uri).body(Full::new(body.into())).unwrap()
}

pub async fn read(response: Response<RecvBody>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
