//! QUIC within tunnels: an endpoint whose datagrams go through a proxy, for QUIC connections of this program.
//!
//! - [`TunnelCarrier`]: carries the datagrams of any endpoint through a proxy, each target's in a tunnel of its own.
//! - [`TunnelEndpoint`]: an endpoint with such a carrier, and connections to targets.
//! - [`ProxyResolver`]: lets a client of HTTP leave names to the proxy.
//!
//! If the client asked for reports
//! ([`TunnelClient::with_reports`](super::TunnelClient::with_reports)), the QUIC connections get the numbers of datagrams
//! and the reports, which the policy `tecc` uses.

mod carrier;
mod resolver;
mod target_names;
mod tunnel_flow;

use std::sync::Arc;

use swiftwater_net::quic::ClientConfig;
use swiftwater_net::{BindError, Connection, Endpoint, EndpointOptions};

pub use self::carrier::TunnelCarrier;
pub use self::resolver::ProxyResolver;
use super::error::EndpointConnectError;
use super::tunnel_client::TunnelClient;
use crate::target::Target;

/// A QUIC endpoint over a [`TunnelCarrier`]. Clones share it.
#[derive(Clone, Debug)]
pub struct TunnelEndpoint {
    endpoint: Endpoint,
    carrier: Arc<TunnelCarrier>,
}

impl TunnelEndpoint {
    /// An endpoint through the proxy of `client`. Of `options`, those for sockets have no effect. Must be called inside
    /// a tokio runtime.
    ///
    /// # Errors
    ///
    /// Outside a runtime.
    pub fn new(client: TunnelClient, options: &EndpointOptions) -> Result<Self, BindError> {
        let carrier = Arc::new(TunnelCarrier::new(client));
        let endpoint = Endpoint::over(Arc::clone(&carrier) as _, options)?;
        Ok(Self { endpoint, carrier })
    }

    /// The endpoint, for a client of HTTP with [`TunnelEndpoint::resolver`], or connections to IP addresses.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A resolver that leaves names to the proxy. For clients over this endpoint only.
    pub fn resolver(&self) -> ProxyResolver {
        ProxyResolver::new(Arc::clone(&self.carrier))
    }

    /// Connects to `target`, which must prove to be `server_name`.
    ///
    /// # Errors
    ///
    /// If the proxy refuses the tunnel, or the handshake fails.
    pub async fn connect(
        &self,
        config: &ClientConfig,
        target: &Target,
        server_name: &str,
    ) -> Result<Connection, EndpointConnectError> {
        let address = self.carrier.address_of(target);
        let connecting = self.endpoint.connect(config, address, server_name)?;
        tokio::select! {
            biased;
            connected = connecting => Ok(connected?),
            refusal = self.carrier.refusal(address) => Err(EndpointConnectError::Tunnel(refusal)),
        }
    }
}
