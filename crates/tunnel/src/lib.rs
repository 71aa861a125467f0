//! Tunnels over HTTP: the proxy and the client of CONNECT-UDP (RFC 9298), CONNECT-IP (RFC 9484), and CONNECT for TCP.
//!
//! - [`proxy`]: a tower service that forwards UDP and TCP for authenticated users, within a policy of targets and limits.
//! - [`client`]: tunnels through such a proxy, and local UDP addresses that lead into them.
//! - [`target`]: hosts and ports, and the URI templates that name them.
//! - [`policy`]: which targets a proxy reaches.
//! - [`ip`]: what tunnels for IP packets need without I/O: capsules, scopes, headers, ICMP.
//! - [`device`]: network interfaces that such tunnels lead into.
//! - [`context`]: the payloads of HTTP datagrams.
//! - [`forwarding`]: packets of QUIC beside the connection that carries a tunnel.
//! - [`tecc`]: repair of losses between proxy and client.
//! - [`transport`]: settings of the connections that carry tunnels.
//! - [`proxy_status`]: why a request was refused, in the Proxy-Status field (RFC 9209).
//!
//! HTTP itself, its datagrams and capsules (RFC 9297) and extended CONNECT (RFC 9220) are in
//! [`swiftwater_http`].

#![forbid(unsafe_code)]

pub mod client;
pub mod context;
pub mod device;
pub mod forwarding;
pub mod ip;
pub mod policy;
pub mod proxy;
pub mod proxy_status;
pub mod target;
pub mod tecc;
pub mod transport;

/// The value of `:protocol` in requests for UDP proxying (RFC 9298, section 3.4).
pub const CONNECT_UDP: &str = "connect-udp";

/// The value of `:protocol` in requests for IP proxying (RFC 9484, section 4.3).
pub const CONNECT_IP: &str = "connect-ip";

/// The largest UDP payload that may be proxied, bytes (RFC 9298, section 5).
pub const MAX_UDP_PAYLOAD: usize = 65_527;
