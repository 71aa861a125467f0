//! Proxies for UDP (CONNECT-UDP) between this program and servers: their flags, and the connections to them.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use swiftwater::ClientBuilder;
use swiftwater_tunnel::client::TunnelCarrier;
use swiftwater_tunnel::target::Template;

use super::chain::{ChainSettings, ProxyChain};
use super::connector::HttpVersion;
use super::credentials::{read_identity, read_token};
use super::hop::{
    Extension, ForwardingTransform, HOP_FORM, HopArg, ProxyHop, parse_template, trust_of,
};
use crate::exit::Failure;
use crate::transport::Trust;

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

    /// Lead the connection to the proxy through this one, and those of further ones; repeatable, the nearest first
    #[arg(long, value_name = HOP_FORM, requires = "proxy")]
    pub proxy_via: Vec<HopArg>,

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
    #[arg(long, requires = "proxy", conflicts_with = "proxy_forwarding")]
    pub tecc: bool,

    /// Ask the proxy to forward packets beside the connection to it, without its encryption, congestion control and loss
    /// recovery: 'scramble' hides from who sees both sides of the proxy which packets are the same, 'identity' does not.
    /// Over HTTP/3 only
    #[arg(long, value_name = "TRANSFORM", value_enum, requires = "proxy",
          num_args = 0..=1, require_equals = true, default_missing_value = "scramble")]
    pub proxy_forwarding: Option<ForwardingTransform>,
}

/// The connections to proxies, and what goes through them.
pub(crate) struct UdpProxy {
    /// The proxies.
    pub(crate) chain: ProxyChain,
    /// Carries the datagrams of other connections.
    pub(crate) carrier: Arc<TunnelCarrier>,
    is_tecc: bool,
}

impl UdpProxyArgs {
    /// Whether connections go through a proxy.
    pub(crate) fn is_used(&self) -> bool {
        self.proxy.is_some()
    }

    /// The proxies, if there are any; trusted as servers are (`trust`) unless flags say otherwise. Must be called inside
    /// the runtime.
    pub(crate) fn open(
        &self,
        trust: &Trust,
        settings: &ChainSettings<'_>,
    ) -> Result<Option<UdpProxy>, Failure> {
        let Some(template) = &self.proxy else {
            return Ok(None);
        };
        let token = self.proxy_token_file.as_deref().map(read_token);
        let last = ProxyHop {
            template: template.clone(),
            version: self.proxy_http_version,
            token: token.transpose()?,
            trust: trust_of(self.proxy_insecure, self.proxy_ca.as_deref(), trust)?,
            identity: read_identity(self.proxy_cert.as_deref(), self.proxy_key.as_deref())?,
            extension: match self.proxy_forwarding {
                Some(transform) => Extension::Forwarding(transform),
                None if self.tecc => Extension::RepairAndReports,
                None => Extension::None,
            },
        };
        let before = self.proxy_via.iter().map(|hop| hop.read(trust));
        let before = before.collect::<Result<Vec<_>, _>>()?;
        let chain = ProxyChain::new(&before, &last, settings)?;
        Ok(Some(UdpProxy {
            carrier: Arc::new(TunnelCarrier::new(chain.tunnels().clone())),
            chain,
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
