//! Hosts of a tunnel: the proxy at a router, the client at the exit, and behind it the host with the connection in the
//! tunnel.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::{ClientConfig, RepairStats, RetryPolicy, ServerConfig, TransportConfig};
use swiftwater_sim::apps::{TunnelClient, TunnelProxy, TunnelStats};
use swiftwater_sim::{HostId, Network, SimError};
use swiftwater_units::{ByteCount, Instant};

use super::topology::{Attached, Topology};
use crate::scenario::{FlowSpec, Setup, TunnelSpec};

/// What the tunnel adds to a packet at most, bytes: header and tag of QUIC, type and length of the frame, identifier of
/// the stream, context and number.
const OVERHEAD: u16 = 50;

/// The tunnels of a group.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    proxies: Vec<HostId>,
}

/// What becomes of the end of a flow that is in a tunnel.
#[derive(Clone, Debug)]
pub(super) struct TunnelEnd {
    /// The host with the connection in the tunnel.
    pub(super) receiver: Attached,
    /// The address that stands for the server there.
    pub(super) local: SocketAddr,
}

/// Packet protection of both ends.
type Crypto = (Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>);

impl Tunnels {
    /// Adds a tunnel for a member of `flow` whose server is `sender`; it opens at `start`.
    pub(super) fn add(
        &mut self,
        topology: &mut Topology,
        setup: &Setup,
        (flow, spec): (&FlowSpec, &TunnelSpec),
        sender: &Attached,
        crypto: &Crypto,
        start: Instant,
    ) -> Result<TunnelEnd, SimError> {
        let transport = Arc::new(transport(setup, spec));
        let client = ClientConfig {
            crypto: crypto.0.clone(),
            transport: transport.clone(),
        };
        let server = ServerConfig {
            retry: RetryPolicy::Never,
            address_token_lifetime: Duration::ZERO,
            ..ServerConfig::new(crypto.1.clone(), transport)
        };
        // The second interface of the proxy is that of UDP.
        let places = [spec.router, spec.router];
        let proxy = topology.add_host(flow, places, Some(Arc::new(server)))?;
        topology.read_raw(&proxy, 1);
        let app = TunnelProxy::new(spec.config, sender.address());
        topology.network.install(proxy.host, app);
        self.proxies.push(proxy.host);

        let end = topology.add_host(flow, [flow.exit], None)?;
        let app = TunnelClient::new(spec.config, client, proxy.address(), start);
        topology.network.install(end.host, app);
        let (receiver, local) = topology.add_behind(&end)?;
        Ok(TunnelEnd { receiver, local })
    }

    /// Counters of the proxies so far.
    pub(super) fn stats<'n>(
        &self,
        network: &'n Network,
    ) -> impl Iterator<Item = TunnelStats> + use<'n> {
        let proxies = self.proxies.clone().into_iter();
        proxies
            .filter_map(|host| network.application::<TunnelProxy>(host))
            .map(TunnelProxy::stats)
    }

    /// What loss recovery of the proxies did for streams so far.
    pub(super) fn recovery<'n>(
        &self,
        network: &'n Network,
    ) -> impl Iterator<Item = RepairStats> + use<'n> {
        let proxies = self.proxies.clone().into_iter();
        proxies.map(|host| network.totals(host).repair)
    }
}

/// Settings of the connection between proxy and client.
fn transport(setup: &Setup, spec: &TunnelSpec) -> TransportConfig {
    // More than any window: congestion control limits what is in flight.
    let window = ByteCount::new(64 << 20);
    TransportConfig {
        controller: Arc::clone(&spec.controller),
        policies: Arc::clone(&spec.recovery),
        initial_max_datagram_size: setup.datagram_size + OVERHEAD + spec.report_room,
        mtu_discovery: None,
        max_idle_timeout: None,
        stream_receive_window: window,
        max_stream_receive_window: window,
        receive_window: window,
        max_receive_window: window,
        // What the stream accepts waits: a little more than is in flight at most.
        send_window: ByteCount::new(1 << 20),
        ..TransportConfig::default()
    }
}
