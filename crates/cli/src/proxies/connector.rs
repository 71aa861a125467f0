//! Connections to a proxy: over UDP and TCP, over several paths, or through the proxy before it.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::ValueEnum;
use swiftwater::Client;
use swiftwater::tls::rustls::ClientConfig;
use swiftwater_http::h3;
use swiftwater_http::tcp::{ALPN_HTTP2, ALPN_HTTP11};
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_http::web::body::BoxError;
use swiftwater_tunnel::client::{
    Connect, Connecting, ConnectingTcp, HttpVersions, TcpConnection, TunnelCarrier, TunnelClient,
};
use swiftwater_tunnel::target::Target;
use swiftwater_tunnel::transport::{fit_nested_packets, for_client};
use tokio::time::timeout;

use super::hop::ProxyHop;
use crate::exit::{Exit, Failure};
use crate::multipath::{PathArgs, PathManagers};
use crate::transport::{
    Tuning, build_failure, client, client_failure, connect, connection_failure,
};

/// How long QUIC gets for each proxy that must be connected before TCP is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// The version of HTTP to the proxy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum HttpVersion {
    /// HTTP/3, or what there is without UDP.
    #[default]
    Auto,
    /// HTTP/3.
    H3,
    /// HTTP/2.
    H2,
    /// HTTP/1.1.
    H1,
}

/// The way to a proxy.
pub(super) enum Way<'a> {
    /// Over these paths.
    Paths(&'a PathArgs),
    /// Through the proxy before it.
    Proxy(Through),
}

/// A proxy that connections to another one go through.
pub(super) struct Through {
    /// Its host and port.
    name: String,
    tunnels: TunnelClient,
    carrier: Arc<TunnelCarrier>,
    /// Its place, the nearest is 1.
    place: u32,
}

/// What holds for the connections to all proxies of a chain.
pub(super) struct ConnectorSettings<'a> {
    pub(super) time_limit: Duration,
    pub(super) tuning: &'a Tuning,
    /// Connections of QUIC, one within the other, inside the one to the proxy.
    pub(super) nested: u16,
}

/// Connects to the proxy.
pub(super) struct ProxyConnector {
    pub(super) quic: Client,
    tls: Arc<ClientConfig>,
    target: Target,
    host: String,
    versions: HttpVersions,
    time_limit: Duration,
    has_identity: bool,
    /// The addresses to connect to, once they are fixed; until then the name is looked up each time.
    pub(super) addresses: Arc<OnceLock<Vec<SocketAddr>>>,
    /// Keeps several paths to the proxy, if they were asked for.
    paths: Option<PathManagers>,
    through: Option<Through>,
}

impl Through {
    /// Through the proxy of `tunnels`, which is called `name`; the nearest has the `place` 1. Must be called inside the runtime.
    pub(super) fn new(name: String, tunnels: TunnelClient, place: u32) -> Self {
        Self {
            place,
            name,
            carrier: Arc::new(TunnelCarrier::new(tunnels.clone())),
            tunnels,
        }
    }

    /// Why there is no connection through the proxy.
    fn failure(&self, why: impl Display) -> BoxError {
        format!("through {}: {why}", self.name).into()
    }

    /// A connection of `client`, whose datagrams the carrier carries, to `target`.
    async fn connect(
        &self,
        client: &Client,
        target: &Target,
        host: &str,
    ) -> Result<swiftwater::Connection, BoxError> {
        // Else its failure would be a timeout here.
        let connected = self.tunnels.connected().await;
        connected.map_err(|error| self.failure(error.0))?;
        let address = self.carrier.address_of(target);
        tokio::select! {
            biased;
            connected = client.connect_any(vec![address], host) => {
                connected.map_err(|error| self.failure(client_failure(&error, &target.to_string())))
            }
            refusal = self.carrier.refusal(address) => Err(self.failure(refusal)),
        }
    }
}

impl ProxyConnector {
    /// A connector to the proxy `hop`. Must be called inside the runtime.
    pub(super) fn new(
        hop: &ProxyHop,
        way: Way<'_>,
        settings: &ConnectorSettings<'_>,
    ) -> Result<Self, Failure> {
        let usage = |error: &dyn Display| Failure::new(Exit::Usage, error);
        let time_limit = settings.time_limit;
        let (host, port) = (hop.template.proxy()).map_err(|error| usage(&error))?;
        let target = Target::new(&host, port).map_err(|error| usage(&error))?;
        let builder = client(&hop.trust, ALPN_HTTP3, settings.tuning).transport(|transport| {
            for_client(transport);
            fit_nested_packets(transport, settings.nested);
            transport.handshake_timeout = time_limit;
        });
        let mut several = None;
        let (mut builder, through) = match way {
            Way::Paths(paths) if paths.is_used() => {
                if matches!(hop.version, HttpVersion::H2 | HttpVersion::H1) {
                    let text =
                        "--path, --max-paths, --scheduler and --multipath-version are for HTTP/3";
                    return Err(Failure::new(Exit::Usage, text));
                }
                several = Some(paths.policy());
                (paths.apply(builder, Some(&host))?, None)
            }
            Way::Paths(_) => (builder, None),
            Way::Proxy(through) => (
                builder.carrier(Arc::clone(&through.carrier) as _),
                Some(through),
            ),
        };
        if let Some(identity) = &hop.identity {
            builder = builder.identity_pem(&identity.chain, &identity.key);
        }
        let before = through.as_ref().map_or(0, |through| through.place);
        let patience = PATIENCE.min(time_limit) * (before + 1);
        let tls = builder.tls_over_tcp();
        let mut tls = tls.map_err(|error| build_failure(&error))?;
        let (versions, names) = match hop.version {
            HttpVersion::Auto => (
                HttpVersions::Http3OrTcp(patience),
                vec![ALPN_HTTP2, ALPN_HTTP11],
            ),
            HttpVersion::H3 => (HttpVersions::Http3, Vec::new()),
            HttpVersion::H2 => (HttpVersions::Tcp, vec![ALPN_HTTP2]),
            HttpVersion::H1 => (HttpVersions::Tcp, vec![ALPN_HTTP11]),
        };
        tls.alpn_protocols = names.into_iter().map(<[u8]>::to_vec).collect();
        let quic = builder.build().map_err(|error| build_failure(&error))?;
        Ok(Self {
            paths: several.map(|policy| PathManagers::new(quic.endpoint().clone(), policy)),
            quic,
            tls: Arc::new(tls),
            target,
            host,
            versions,
            time_limit,
            has_identity: hop.identity.is_some(),
            addresses: Arc::default(),
            through,
        })
    }

    async fn connect_quic(&self) -> Result<swiftwater::Connection, BoxError> {
        if let Some(through) = &self.through {
            return through.connect(&self.quic, &self.target, &self.host).await;
        }
        let connected = match self.addresses.get() {
            Some(addresses) => {
                let connected = self.quic.connect_any(addresses.clone(), &self.host).await;
                connected.map_err(|error| client_failure(&error, &self.target.to_string()))
            }
            None => connect(&self.quic, &self.host, self.target.port()).await,
        };
        let connection = connected.map_err(|failure| failure.to_string())?;
        if let Some(paths) = &self.paths {
            paths.attend(&connection, []);
        }
        Ok(connection)
    }

    async fn connect_by_tcp(&self) -> Result<TcpConnection, BoxError> {
        let Some(through) = &self.through else {
            return match self.addresses.get() {
                Some(known) => TcpConnection::over_tls_to(&**known, &self.host, &self.tls).await,
                None => TcpConnection::over_tls(&self.host, self.target.port(), &self.tls).await,
            };
        };
        let opened = through.tunnels.open_tcp(&self.target).await;
        let tunnel = opened.map_err(|error| through.failure(error))?;
        let secure = TcpConnection::over_tls_within(tunnel, &self.host, &self.tls).await;
        secure.map_err(|error| through.failure(error))
    }
}

impl Connect for ProxyConnector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connection = self.connect_quic().await?;
            if self.has_identity {
                // A server judges the certificate after the client's part of the handshake.
                let confirmed = connection.handshake_confirmed().await;
                let target = self.target.to_string();
                confirmed.map_err(|error| connection_failure(&error, &target).to_string())?;
            }
            Ok(SendRequest::new(connection, h3::Config::default()))
        })
    }

    fn versions(&self) -> HttpVersions {
        self.versions
    }

    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async move {
            match timeout(self.time_limit, self.connect_by_tcp()).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection in {:?}", self.time_limit).into()),
            }
        })
    }
}
