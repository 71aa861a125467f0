//! Connections of `tunnel connect` to the proxy.

use std::sync::Arc;
use std::time::Duration;

use swiftwater::Client;
use swiftwater::tls::rustls::ClientConfig;
use swiftwater_http::h3;
use swiftwater_http::tcp::{ALPN_HTTP2, ALPN_HTTP11};
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_tunnel::client::{Connect, Connecting, ConnectingTcp, HttpVersions, TcpConnection};
use swiftwater_tunnel::transport::for_client;
use tokio::time::timeout;

use super::args::{ConnectArgs, HttpVersion};
use crate::commands::get::trust;
use crate::exit::Failure;
use crate::transport::{build_failure, client, connect};

/// How long QUIC gets before TCP is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connects to the proxy.
pub(super) struct Connector {
    pub(super) quic: Client,
    tls: Arc<ClientConfig>,
    host: String,
    port: u16,
    versions: HttpVersions,
    time_limit: Duration,
}

impl Connector {
    pub(super) fn new(args: &ConnectArgs, host: String, port: u16) -> Result<Self, Failure> {
        let time_limit = args.trust.connect_timeout;
        let builder =
            client(&trust(&args.trust)?, ALPN_HTTP3, &args.tuning).transport(|transport| {
                for_client(transport);
                transport.handshake_timeout = time_limit;
            });
        let tls = builder.tls_over_tcp();
        let mut tls = tls.map_err(|error| build_failure(&error))?;
        let (versions, names) = match args.http_version {
            HttpVersion::Auto => (
                HttpVersions::Http3OrTcp(PATIENCE.min(time_limit)),
                vec![ALPN_HTTP2, ALPN_HTTP11],
            ),
            HttpVersion::H3 => (HttpVersions::Http3, Vec::new()),
            HttpVersion::H2 => (HttpVersions::Tcp, vec![ALPN_HTTP2]),
            HttpVersion::H1 => (HttpVersions::Tcp, vec![ALPN_HTTP11]),
        };
        tls.alpn_protocols = names.into_iter().map(<[u8]>::to_vec).collect();
        Ok(Self {
            quic: builder.build().map_err(|error| build_failure(&error))?,
            tls: Arc::new(tls),
            host,
            port,
            versions,
            time_limit,
        })
    }
}

impl Connect for Connector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected = connect(&self.quic, &self.host, self.port).await;
            let connection = connected.map_err(|failure| failure.to_string())?;
            Ok(SendRequest::new(connection, h3::Config::default()))
        })
    }

    fn versions(&self) -> HttpVersions {
        self.versions
    }

    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async move {
            let connecting = TcpConnection::over_tls(&self.host, self.port, &self.tls);
            match timeout(self.time_limit, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection in {:?}", self.time_limit).into()),
            }
        })
    }
}
