//! Proxies between this program and servers: their flags, the connections to them, and chains of them.
//!
//! - `hop`: what is known of one proxy, and its text on the command line.
//! - `connector`: connections to one, over several paths or through the proxy before it.
//! - `chain`: proxies one behind the other, and tunnels through all of them.
//! - `udp_proxy`: the flags of commands whose QUIC connections may go through a chain.
//! - `credentials`: the files with tokens and certificates of the user.
//!
//! What passes through tunnels is in `swiftwater_tunnel`.

mod chain;
mod connector;
mod credentials;
mod hop;
mod udp_proxy;

pub(crate) use chain::{ChainSettings, ProxyChain};
pub use connector::HttpVersion;
pub(crate) use credentials::{read_identity, read_token};
pub(crate) use hop::{Extension, HOP_FORM, ProxyHop, parse_template};
pub use hop::{ForwardingTransform, HopArg, HopArgError};
pub(crate) use udp_proxy::UdpProxy;
pub use udp_proxy::UdpProxyArgs;
