//! Proxies one behind the other: the connection to each but the first goes through a tunnel of the one before it, so that
//! each knows its neighbours only.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Version;
use swiftwater::Client;
use swiftwater_tunnel::client::TunnelClient;
use swiftwater_tunnel::target::Target;

use super::connector::{ConnectorSettings, ProxyConnector, Through, Way};
use super::hop::{Extension, ProxyHop};
use crate::exit::{Exit, Failure};
use crate::multipath::PathArgs;
use crate::transport::{CloseReason, Tuning, hang_up};

/// The most proxies of a chain. Each needs some fifty bytes of a packet, and QUIC 1200 in the innermost one.
const MAX_PROXIES: usize = 4;

/// What holds for all connections to proxies.
pub(crate) struct ChainSettings<'a> {
    /// For each connection.
    pub(crate) time_limit: Duration,
    pub(crate) tuning: &'a Tuning,
    /// To the first proxy.
    pub(crate) paths: &'a PathArgs,
}

/// Proxies, and tunnels through all of them.
pub(crate) struct ProxyChain {
    /// Those before the last one, the nearest first.
    before: Vec<Proxy>,
    last: Proxy,
}

struct Proxy {
    /// Its host and port.
    name: String,
    host: String,
    port: u16,
    quic: Client,
    tunnels: TunnelClient,
    /// Where it is, once that is fixed.
    addresses: Arc<OnceLock<Vec<SocketAddr>>>,
}

impl ProxyChain {
    /// A chain that ends with the proxy `last`; of those `before` it, the nearest is the first. Nothing is connected yet.
    /// Must be called inside the runtime.
    pub(crate) fn new(
        before: &[ProxyHop],
        last: &ProxyHop,
        settings: &ChainSettings<'_>,
    ) -> Result<Self, Failure> {
        if before.len() >= MAX_PROXIES {
            let text = format_args!("a chain has {MAX_PROXIES} proxies at most");
            return Err(Failure::new(Exit::Usage, text));
        }
        let mut behind = before.len();
        let mut way = Way::Paths(settings.paths);
        let mut opened = Vec::new();
        for (place, hop) in (1..).zip(before) {
            let proxy = Proxy::new(hop, way, settings, behind)?;
            let (name, tunnels) = (proxy.name.clone(), proxy.tunnels.clone());
            way = Way::Proxy(Through::new(name, tunnels, place));
            opened.push(proxy);
            behind -= 1;
        }
        Ok(Self {
            before: opened,
            last: Proxy::new(last, way, settings, behind)?,
        })
    }

    /// Tunnels through all proxies.
    pub(crate) fn tunnels(&self) -> &TunnelClient {
        &self.last.tunnels
    }

    /// Host and port of the last proxy.
    pub(crate) fn last(&self) -> &str {
        &self.last.name
    }

    /// Host and port of those before it, the nearest first.
    pub(crate) fn before(&self) -> Vec<&str> {
        self.before.iter().map(|proxy| &*proxy.name).collect()
    }

    /// Host and port of the nearest one, to which all packets go.
    pub(crate) fn nearest(&self) -> (&str, u16) {
        let nearest = self.before.first().unwrap_or(&self.last);
        (&nearest.host, nearest.port)
    }

    /// Connects to the nearest proxy at these addresses only, and looks its name up no more. The first call counts.
    pub(crate) fn fix_addresses(&self, addresses: Vec<SocketAddr>) {
        let nearest = self.before.first().unwrap_or(&self.last);
        let _ = nearest.addresses.set(addresses);
    }

    /// The number of proxies.
    pub(crate) fn len(&self) -> usize {
        self.before.len() + 1
    }

    /// Connects to all of them; returns the last one's version of HTTP.
    pub(crate) async fn connected(&self) -> Result<Version, Failure> {
        for proxy in &self.before {
            let connected = proxy.connected().await;
            connected.map_err(|failure| failure.context(format_args!("proxy {}", proxy.name)))?;
        }
        self.last.connected().await
    }

    /// Ends all connections, the innermost first.
    pub(crate) async fn hang_up(&self) {
        for proxy in self.before.iter().chain([&self.last]).rev() {
            proxy.tunnels.close().await;
            hang_up(&proxy.quic, CloseReason::Done).await;
        }
    }
}

impl Proxy {
    /// The proxy `hop`, with this number of them `behind` it.
    fn new(
        hop: &ProxyHop,
        way: Way<'_>,
        settings: &ChainSettings<'_>,
        behind: usize,
    ) -> Result<Self, Failure> {
        let template = hop.template.clone();
        let proxy = template.proxy();
        let (host, port) = proxy.map_err(|error| Failure::new(Exit::Usage, error))?;
        let target = Target::new(&host, port);
        let target = target.map_err(|error| Failure::new(Exit::Usage, error))?;
        let settings = ConnectorSettings {
            time_limit: settings.time_limit,
            tuning: settings.tuning,
            nested: u16::try_from(behind + 1).unwrap_or(u16::MAX),
        };
        let connector = ProxyConnector::new(hop, way, &settings)?;
        let (quic, token) = (connector.quic.clone(), hop.token.as_ref());
        let addresses = Arc::clone(&connector.addresses);
        Ok(Self {
            name: target.to_string(),
            host,
            port,
            quic,
            addresses,
            tunnels: match hop.extension {
                Extension::None => TunnelClient::new(template, token, connector),
                Extension::Repair => TunnelClient::with_repair(template, token, connector),
                Extension::RepairAndReports => {
                    TunnelClient::with_reports(template, token, connector)
                }
                Extension::Forwarding(transform) => {
                    let transforms = [transform.get()];
                    TunnelClient::with_forwarding(template, token, connector, &transforms)
                }
            },
        })
    }

    async fn connected(&self) -> Result<Version, Failure> {
        let connected = self.tunnels.connected().await;
        connected.map_err(|error| Failure::new(Exit::Connection, error))
    }
}
