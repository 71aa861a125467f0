//! Connections to a proxy for UDP and TCP, and the token that it wants.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use swiftwater::Client;
use swiftwater::net::DatagramCarrier as _;
use swiftwater::tls::rustls::ClientConfig;
use swiftwater_http::h3;
use swiftwater_http::tcp::{ALPN_HTTP2, ALPN_HTTP11};
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_tunnel::client::{
    Connect, Connecting, ConnectingTcp, HttpVersions, TcpConnection, TunnelCarrier,
};
use swiftwater_tunnel::proxy::Token;
use swiftwater_tunnel::target::{Target, Template};
use swiftwater_tunnel::transport::{fit_packets_of_tunnels, for_client};
use tokio::time::{sleep, timeout};

use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::transport::{Trust, Tuning, build_failure, client, client_failure, connect};

/// How long QUIC gets before TCP is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// In this time the first of two proxies finds out that its way to here carries more than the packets of the start. What
/// the second sends before that is lost, and it would take that for the limit of its path.
const LEAST_SETTLING: Duration = Duration::from_secs(1);

/// The same in round trips.
const SETTLING_ROUND_TRIPS: u32 = 10;

/// The largest file with a token, bytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;

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

/// Connects to the proxy.
pub(crate) struct ProxyConnector {
    pub(crate) quic: Client,
    tls: Arc<ClientConfig>,
    host: String,
    port: u16,
    versions: HttpVersions,
    time_limit: Duration,
    /// Whether connections that carry tunnels lead through it.
    carries_tunnels: bool,
    /// What leads to the proxy; `None` for a socket.
    carrier: Option<Arc<TunnelCarrier>>,
}

/// Which of the proxies of a chain is connected to.
#[derive(Clone)]
pub(crate) enum Place {
    /// The only one.
    Only,
    /// The first one, whose tunnels carry the connection to the next.
    First,
    /// One behind the proxy of this carrier.
    Behind(Arc<TunnelCarrier>),
}

impl ProxyConnector {
    /// A connector to the proxy that `template` names. Must be called inside the runtime.
    pub(crate) fn new(
        template: &Template,
        version: HttpVersion,
        trust: &Trust,
        time_limit: Duration,
        tuning: &Tuning,
    ) -> Result<Self, Failure> {
        Self::at(&Place::Only, template, version, trust, time_limit, tuning)
    }

    /// The same at a place in a chain. Behind another proxy there is only HTTP/3.
    pub(crate) fn at(
        place: &Place,
        template: &Template,
        version: HttpVersion,
        trust: &Trust,
        time_limit: Duration,
        tuning: &Tuning,
    ) -> Result<Self, Failure> {
        let proxy = template.proxy();
        let (host, port) = proxy.map_err(|error| Failure::new(Exit::Usage, error))?;
        let builder = client(trust, ALPN_HTTP3, tuning).transport(|transport| {
            for_client(transport);
            if matches!(place, Place::First) {
                fit_packets_of_tunnels(transport);
            }
            transport.handshake_timeout = time_limit;
        });
        let (builder, carrier) = match place {
            Place::Behind(carrier) => (
                builder.carrier(Arc::clone(carrier) as _),
                Some(Arc::clone(carrier)),
            ),
            Place::Only | Place::First => (builder, None),
        };
        let tls = builder.tls_over_tcp();
        let mut tls = tls.map_err(|error| build_failure(&error))?;
        let (versions, names) = match version {
            HttpVersion::Auto if carrier.is_some() => (HttpVersions::Http3, Vec::new()),
            HttpVersion::H2 | HttpVersion::H1 if carrier.is_some() => {
                return Err(Failure::new(
                    Exit::Usage,
                    "through another proxy there is only HTTP/3 to the proxy",
                ));
            }
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
            carrier,
            carries_tunnels: matches!(place, Place::First),
        })
    }
}

impl Connect for ProxyConnector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected = match &self.carrier {
                None => connect(&self.quic, &self.host, self.port).await,
                Some(carrier) => {
                    let address = carrier.address_of(&Target::new(&self.host, self.port)?);
                    tokio::select! {
                        connected = self.quic.connect_any(vec![address], &self.host) => {
                            connected.map_err(|error| client_failure(&error, &self.host))
                        }
                        refused = carrier.refusal(address) => return Err(refused.into()),
                    }
                }
            };
            let connection = connected.map_err(|failure| failure.to_string())?;
            if self.carries_tunnels {
                let stats = connection.stats();
                let rtt = stats
                    .paths
                    .first()
                    .map_or(Duration::ZERO, |path| path.smoothed_rtt);
                sleep((rtt * SETTLING_ROUND_TRIPS).max(LEAST_SETTLING)).await;
            }
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

/// Reads the name of a proxy, or its template.
pub(crate) fn parse_template(text: &str) -> Result<Template, String> {
    Template::new(text).map_err(|error| error.to_string())
}

/// The token in the first line of a file, which may follow the name of the user.
pub(crate) fn read_token(file: &Path) -> Result<Token, Failure> {
    let failure = |why: String| {
        Failure::new(
            Exit::LocalFile,
            format_args!("token {}: {why}", file.display()),
        )
    };
    let bytes =
        read_limited(file, MAX_TOKEN_FILE).map_err(|error| failure(plain_io_error(&error)))?;
    let text = String::from_utf8(bytes).map_err(|_| failure("it is not UTF-8".to_owned()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    let (user, secret) = line.split_once(char::is_whitespace).unwrap_or(("", line));
    Token::new(user, secret.trim_start()).map_err(|error| failure(error.to_string()))
}
