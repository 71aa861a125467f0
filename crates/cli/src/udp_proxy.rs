//! A proxy for UDP (CONNECT-UDP) between this program and servers: its flags, and the connection to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use swiftwater::{Client, ClientBuilder};
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_tunnel::client::{Connect, Connecting, TunnelCarrier, TunnelClient};
use swiftwater_tunnel::proxy::Token;
use swiftwater_tunnel::target::Template;
use swiftwater_tunnel::transport::for_client;

use crate::cli::TrustArgs;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::identity::read_certificates;
use crate::transport::{Trust, Tuning, build_failure, client, connect};

/// The largest file with a token, bytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;

/// The flags of commands whose QUIC connections may go through a proxy.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Proxy")]
pub struct UdpProxyArgs {
    /// The proxy.
    #[arg(
        long,
        value_name = "PROXY",
        value_parser = parse_template,
        conflicts_with = "path",
        help = "Lead HTTP/3 through this proxy for UDP (CONNECT-UDP), which resolves the names: HOST[:PORT], or its URI \
                template (RFC 9298); without TCP"
    )]
    pub proxy: Option<Template>,

    /// File whose first line is the token for the proxy, or the name of the user and the token
    #[arg(long, value_name = "FILE", requires = "proxy")]
    pub proxy_token_file: Option<PathBuf>,

    /// Trust the certificates in this PEM file and those they signed for the proxy [default: as for servers]
    #[arg(long, value_name = "FILE", requires = "proxy")]
    pub proxy_ca: Option<PathBuf>,

    /// Don't check the proxy's certificate
    #[arg(long, requires = "proxy", conflicts_with = "proxy_ca")]
    pub proxy_insecure: bool,

    /// Ask the proxy to repair losses on its way to here and to report, and pass the reports on to the server (TECC); it
    /// needs a proxy and a server that know how, such as 'tunnel serve' and 'serve --tecc'
    #[arg(long, requires = "proxy")]
    pub tecc: bool,
}

/// The connection to a proxy, and what goes through it.
pub(crate) struct UdpProxy {
    /// What connects to the proxy.
    pub(crate) client: Client,
    /// Carries the datagrams of other connections.
    pub(crate) carrier: Arc<TunnelCarrier>,
    is_tecc: bool,
}

impl UdpProxyArgs {
    /// The proxy, if there is one. Must be called inside the runtime.
    pub(crate) fn open(
        &self,
        trust: &Trust,
        trust_args: &TrustArgs,
        tuning: &Tuning,
    ) -> Result<Option<UdpProxy>, Failure> {
        let Some(template) = &self.proxy else {
            return Ok(None);
        };
        let token = self
            .proxy_token_file
            .as_deref()
            .map(read_token)
            .transpose()?;
        let trust = match &self.proxy_ca {
            _ if self.proxy_insecure => Trust::Anybody,
            Some(path) => Trust::Roots(read_certificates(path)?),
            None => trust.clone(),
        };
        let (client, connector) = ProxyConnector::new(template, &trust, trust_args, tuning)?;
        let (template, token) = (template.clone(), token.as_ref());
        let tunnels = if self.tecc {
            TunnelClient::with_reports(template, token, connector)
        } else {
            TunnelClient::new(template, token, connector)
        };
        Ok(Some(UdpProxy {
            client,
            carrier: Arc::new(TunnelCarrier::new(tunnels)),
            is_tecc: self.tecc,
        }))
    }
}

impl UdpProxy {
    /// Leads a client's connections through the proxy.
    pub(crate) fn apply(&self, builder: ClientBuilder) -> ClientBuilder {
        let builder = builder.carrier(Arc::clone(&self.carrier) as _);
        if self.is_tecc {
            builder.tecc()
        } else {
            builder
        }
    }
}

/// Connects to the proxy.
pub(crate) struct ProxyConnector {
    client: Client,
    host: String,
    port: u16,
}

impl ProxyConnector {
    /// A connector to the proxy that `template` names, and the client that it uses.
    pub(crate) fn new(
        template: &Template,
        trust: &Trust,
        trust_args: &TrustArgs,
        tuning: &Tuning,
    ) -> Result<(Client, Self), Failure> {
        let (host, port) = template
            .proxy()
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        let client = client(trust, ALPN_HTTP3, tuning)
            .transport(|transport| {
                for_client(transport);
                transport.handshake_timeout = trust_args.connect_timeout;
            })
            .build()
            .map_err(|error| build_failure(&error))?;
        let connector = Self {
            client: client.clone(),
            host,
            port,
        };
        Ok((client, connector))
    }
}

impl Connect for ProxyConnector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected = connect(&self.client, &self.host, self.port).await;
            let connection = connected.map_err(|failure| failure.to_string())?;
            Ok(SendRequest::new(connection, h3::Config::default()))
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
