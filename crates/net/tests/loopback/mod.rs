//! Endpoints on loopback for tests.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_net::quic::{
    ClientConfig, EndpointConfig, RetryPolicy, ServerConfig, TransportConfig,
};
use swiftwater_net::{Connection, Endpoint, EndpointOptions};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, ServerTls};

pub const NAME: &str = "localhost";
pub const LOOPBACK: &str = "127.0.0.1:0";

/// Fails a test that hangs; far longer than any of them takes.
pub async fn guard<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("the test hangs")
}

/// A server, a client, and what the client needs to connect.
pub struct Pair {
    pub server: Endpoint,
    pub client: Endpoint,
    pub config: ClientConfig,
}

pub fn endpoint_config(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}

pub fn configs(transport: TransportConfig) -> (ServerConfig, ClientConfig) {
    configs_with(transport.clone(), transport)
}

pub fn configs_with(
    server: TransportConfig,
    client: TransportConfig,
) -> (ServerConfig, ClientConfig) {
    let certificate = DevCertificate::generate([NAME, "127.0.0.1", "::1"]).unwrap();
    let tls = ServerTls::from_dev_certificate(&certificate)
        .unwrap()
        .alpn(["test"]);
    let server = ServerConfig {
        retry: RetryPolicy::Never,
        address_token_lifetime: Duration::from_secs(3600),
        ..ServerConfig::new(Arc::new(tls), Arc::new(server))
    };
    let tls = ClientTls::with_roots([certificate.certificate_der()])
        .unwrap()
        .alpn(["test"]);
    let client = ClientConfig {
        crypto: Arc::new(tls),
        transport: Arc::new(client),
    };
    (server, client)
}

impl Pair {
    /// The defaults, except that attempts without an answer are over sooner.
    pub fn new() -> Self {
        Self::with(TransportConfig {
            initial_rtt: Duration::from_millis(50),
            ..TransportConfig::default()
        })
    }

    pub fn with(transport: TransportConfig) -> Self {
        let (server, config) = configs(transport);
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        Self::on(LOOPBACK, LOOPBACK, options, config)
    }

    pub fn on(server: &str, client: &str, options: EndpointOptions, config: ClientConfig) -> Self {
        let server = Endpoint::bind(server.parse().unwrap(), options).unwrap();
        let client =
            Endpoint::client(client.parse().unwrap(), endpoint_config(2), [2; 32]).unwrap();
        Self {
            server,
            client,
            config,
        }
    }

    /// Client's and server's handle of a new connection.
    pub async fn connect(&self) -> (Connection, Connection) {
        self.connect_to(self.server.local_addr()).await
    }

    pub async fn connect_to(&self, address: SocketAddr) -> (Connection, Connection) {
        let connecting = self.client.connect(&self.config, address, NAME).unwrap();
        let (client, server) = tokio::join!(connecting, self.server.accept());
        (client.unwrap(), server.unwrap())
    }

    /// Closes both ends and waits until nothing is left.
    pub async fn shut_down(self) {
        self.client.close(0, b"");
        self.server.close(0, b"");
        tokio::join!(self.client.wait_idle(), self.server.wait_idle());
        assert_eq!(self.client.stats().connections, 0);
        assert_eq!(self.server.stats().connections, 0);
    }
}

/// `len` bytes that look random and differ by `seed`.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// Sends back whatever arrives on bidirectional streams, until the connection ends.
pub async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(Some(n)) = recv.read(&mut buffer).await {
                if send.write_all(&buffer[..n]).await.is_err() {
                    return;
                }
            }
            let _ = send.finish();
            let _ = send.stopped().await;
        });
    }
}
