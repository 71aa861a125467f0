//! The client: tunnels for UDP, IP and TCP through a proxy, all over one connection to it.
//!
//! - [`TunnelClient`]: opens tunnels, connects to the proxy when it needs to. [`Connect`] makes the connections,
//!   [`HttpVersions`] says of which versions of HTTP; [`TcpConnection`]: one for HTTP/2 or HTTP/1.1.
//! - [`UdpTunnel`]: datagrams to and from one target; [`TcpTunnel`]: a TCP connection to one; [`IpTunnel`]: IP packets.
//! - With the feature `tun`, on Linux, `interface::IpInterface`: a network interface that leads into an [`IpTunnel`].
//! - [`TunnelEndpoint`]: QUIC connections of this program through the proxy.
//! - For programs that know nothing of tunnels: [`LocalForward`], a local UDP address whose peers each get a tunnel to
//!   the same target; [`LocalTcpForward`], the same for TCP.
//! - For programs that know proxies: [`SocksServer`] (SOCKS 5, TCP and UDP), [`HttpConnectServer`] (HTTP/1.1 CONNECT).

mod capsule_stream;
mod content;
mod counted;
mod datagram_relay;
mod datagram_relays;
pub mod endpoint;
mod error;
mod forwarding;
mod http_connect;
#[cfg(all(target_os = "linux", feature = "tun"))]
pub mod interface;
mod ip_tunnel;
mod link;
mod listener;
mod local_forward;
mod local_tcp_forward;
pub mod socks;
mod tcp_connection;
mod tcp_link;
mod tcp_tunnel;
mod tls_alert;
mod tunnel_client;
mod udp_tunnel;

use std::time::Duration;

pub use datagram_relay::ForwardStats;
pub use endpoint::{ProxyResolver, TunnelCarrier, TunnelEndpoint};
pub use error::{ConnectError, EndpointConnectError, OpenError, SendPacketError, TunnelError};
pub use http_connect::HttpConnectServer;
pub use ip_tunnel::{FromIpTunnel, IpSender, IpTunnel};
pub use link::HttpVersions;
pub use listener::{ListenerLimits, ListenerStats};
pub use local_forward::LocalForward;
pub use local_tcp_forward::LocalTcpForward;
pub use socks::SocksServer;
pub use tcp_connection::{ConnectingTcp, TcpConnection};
pub use tcp_tunnel::{ByteStream, TcpTunnel};
pub use tunnel_client::{Connect, Connecting, TunnelClient};
pub use udp_tunnel::{FromTunnel, OpeningTunnel, UdpSender, UdpTunnel};

/// For so long no tunnel to a target is asked for again after a refusal.
const REFUSED_FOR: Duration = Duration::from_secs(1);
