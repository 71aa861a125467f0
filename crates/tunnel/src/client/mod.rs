//! The client: tunnels for UDP through a proxy, all over one connection to it.
//!
//! - [`TunnelClient`]: opens tunnels, connects to the proxy when it needs to.
//! - [`UdpTunnel`]: datagrams to and from one target.
//! - [`LocalForward`]: a local UDP address whose peers each get a tunnel to the same target, for programs that
//!   know nothing of proxies.
//! - [`TunnelEndpoint`]: QUIC connections of this program through the proxy.

pub mod endpoint;
mod error;
mod local_forward;
mod tunnel_client;
mod udp_tunnel;

pub use endpoint::{ProxyResolver, TunnelCarrier, TunnelEndpoint};
pub use error::{ConnectError, EndpointConnectError, OpenError, TunnelError};
pub use local_forward::{ForwardStats, LocalForward};
pub use tunnel_client::{Connect, Connecting, TunnelClient};
pub use udp_tunnel::{FromTunnel, OpeningTunnel, UdpSender, UdpTunnel};
