//! A local SOCKS server (RFC 1928) whose connections and datagrams go through the proxy.
//!
//! - [`SocksServer`]: the local address. CONNECT and UDP ASSOCIATE; no authentication.
//! - [`message`]: the messages.
//! - `association`: UDP of one client. `replies`: the proxy's refusals in the terms of SOCKS.

mod association;
pub mod message;
mod replies;
mod server;

pub use server::SocksServer;
