//! A proxy for UDP (CONNECT-UDP) between this program and servers: its flags, and the connection to it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use swiftwater::{Client, ClientBuilder};
use swiftwater_tunnel::client::{TunnelCarrier, TunnelClient};
use swiftwater_tunnel::target::Template;

use crate::cli::TrustArgs;
use crate::exit::Failure;
use crate::identity::read_certificates;
use crate::multipath::PathArgs;
use crate::proxy_connector::{
    HttpVersion, ProxyConnector, ProxyTrust, parse_template, read_identity, read_token,
};
use crate::transport::{Trust, Tuning};

/// The flags of commands whose QUIC connections may go through a proxy.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Proxy")]
pub struct UdpProxyArgs {
    /// The proxy.
    #[arg(
        long,
        value_name = "PROXY",
        value_parser = parse_template,
        help = "Lead HTTP/3 through this proxy for UDP (CONNECT-UDP), which resolves the names: HOST[:PORT], or its URI \
                template (RFC 9298); without TCP"
    )]
    pub proxy: Option<Template>,

    /// File whose first line is the token for the proxy, or the name of the user and the token
    #[arg(long, value_name = "FILE", requires = "proxy")]
    pub proxy_token_file: Option<PathBuf>,

    /// Certificate chain, PEM, for a proxy that asks for one
    #[arg(long, value_name = "FILE", requires_all = ["proxy", "proxy_key"])]
    pub proxy_cert: Option<PathBuf>,

    /// Private key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "proxy_cert")]
    pub proxy_key: Option<PathBuf>,

    /// Trust the certificates in this PEM file and those they signed for the proxy [default: as for servers]
    #[arg(long, value_name = "FILE", requires = "proxy")]
    pub proxy_ca: Option<PathBuf>,

    /// Don't check the proxy's certificate
    #[arg(long, requires = "proxy", conflicts_with = "proxy_ca")]
    pub proxy_insecure: bool,

    /// Version of HTTP to the proxy: auto is HTTP/3, and HTTP/2 or HTTP/1.1 if that has no connection after 3 s
    #[arg(
        long,
        value_name = "VERSION",
        value_enum,
        default_value_t,
        requires = "proxy"
    )]
    pub proxy_http_version: HttpVersion,

    /// Ask the proxy to repair losses on its way to here and to report, and pass the reports on to the server (TECC); it
    /// needs a proxy and a server that know how, such as 'tunnel serve' and 'serve --tecc'. Over HTTP/3 only
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
    /// Whether connections go through a proxy.
    pub(crate) fn is_used(&self) -> bool {
        self.proxy.is_some()
    }

    /// The proxy, if there is one, with these `paths` to it. Must be called inside the runtime.
    pub(crate) fn open(
        &self,
        trust: &Trust,
        trust_args: &TrustArgs,
        tuning: &Tuning,
        paths: &PathArgs,
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
        let identity = read_identity(self.proxy_cert.as_deref(), self.proxy_key.as_deref())?;
        let time_limit = trust_args.connect_timeout;
        let connector = ProxyConnector::new(
            template,
            self.proxy_http_version,
            &ProxyTrust { trust, identity },
            time_limit,
            tuning,
            paths,
        )?;
        let client = connector.quic.clone();
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
