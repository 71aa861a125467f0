//! Connections to a proxy for UDP and TCP, and the token that it wants.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use swiftwater::Client;
use swiftwater::tls::rustls::ClientConfig;
use swiftwater_http::h3;
use swiftwater_http::tcp::{ALPN_HTTP2, ALPN_HTTP11};
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_tunnel::client::{Connect, Connecting, ConnectingTcp, HttpVersions, TcpConnection};
use swiftwater_tunnel::proxy::Token;
use swiftwater_tunnel::target::Template;
use swiftwater_tunnel::transport::for_client;
use tokio::time::timeout;

use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::identity::Identity;
use crate::multipath::{PathArgs, PathManagers};
use crate::transport::{Trust, Tuning, build_failure, client, connect, connection_failure};

/// How long QUIC gets before TCP is tried.
const PATIENCE: Duration = Duration::from_secs(3);

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
    has_identity: bool,
    /// Keeps several paths to the proxy, if they were asked for.
    paths: Option<PathManagers>,
}

/// Whom a connection to the proxy trusts, and how it proves who the user is.
pub(crate) struct ProxyTrust {
    pub(crate) trust: Trust,
    /// The user's certificate, if there is one.
    pub(crate) identity: Option<Identity>,
}

impl ProxyConnector {
    /// A connector to the proxy that `template` names, over these `paths`. Must be called inside the runtime.
    pub(crate) fn new(
        template: &Template,
        version: HttpVersion,
        trust: &ProxyTrust,
        time_limit: Duration,
        tuning: &Tuning,
        paths: &PathArgs,
    ) -> Result<Self, Failure> {
        let proxy = template.proxy();
        let (host, port) = proxy.map_err(|error| Failure::new(Exit::Usage, error))?;
        if paths.is_used() && matches!(version, HttpVersion::H2 | HttpVersion::H1) {
            let text = "--path, --max-paths, --scheduler and --multipath-version are for HTTP/3";
            return Err(Failure::new(Exit::Usage, text));
        }
        let mut builder = client(&trust.trust, ALPN_HTTP3, tuning).transport(|transport| {
            for_client(transport);
            transport.handshake_timeout = time_limit;
        });
        builder = paths.apply(builder, Some(&host))?;
        if let Some(identity) = &trust.identity {
            builder = builder.identity_pem(&identity.chain, &identity.key);
        }
        let tls = builder.tls_over_tcp();
        let mut tls = tls.map_err(|error| build_failure(&error))?;
        let (versions, names) = match version {
            HttpVersion::Auto => (
                HttpVersions::Http3OrTcp(PATIENCE.min(time_limit)),
                vec![ALPN_HTTP2, ALPN_HTTP11],
            ),
            HttpVersion::H3 => (HttpVersions::Http3, Vec::new()),
            HttpVersion::H2 => (HttpVersions::Tcp, vec![ALPN_HTTP2]),
            HttpVersion::H1 => (HttpVersions::Tcp, vec![ALPN_HTTP11]),
        };
        tls.alpn_protocols = names.into_iter().map(<[u8]>::to_vec).collect();
        let quic = builder.build().map_err(|error| build_failure(&error))?;
        let paths =
            (paths.is_used()).then(|| PathManagers::new(quic.endpoint().clone(), paths.policy()));
        Ok(Self {
            quic,
            tls: Arc::new(tls),
            host,
            port,
            versions,
            time_limit,
            has_identity: trust.identity.is_some(),
            paths,
        })
    }
}

impl Connect for ProxyConnector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected = connect(&self.quic, &self.host, self.port).await;
            let connection = connected.map_err(|failure| failure.to_string())?;
            if let Some(paths) = &self.paths {
                paths.attend(&connection, []);
            }
            if self.has_identity {
                // A server judges the certificate after the client's part of the handshake.
                let confirmed = connection.handshake_confirmed().await;
                let target = format!("{}:{}", self.host, self.port);
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

/// The user's certificate, if the files of it and its key are given.
pub(crate) fn read_identity(
    cert: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<Identity>, Failure> {
    match (cert, key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key).map(Some),
        _ => Ok(None),
    }
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
