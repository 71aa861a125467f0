//! A UDP tunnel over QUIC: a proxy and a client, each on a host with two interfaces, the first of the connection between
//! them, the second of UDP. The second one of the client is a local address that stands for the server.
//!
//! ```text
//! server --- UDP -- proxy == QUIC == client -- UDP --- host with the connection in the tunnel
//! ```
//!
//! Datagrams have the form and size of those of UDP proxying over HTTP/3 (RFC 9298 and RFC 9297): a byte for the
//! stream, a context, a number if the tunnel repairs. In forwarded mode (draft-ietf-masque-quic-proxy-08) packets with a
//! short header pass beside the connection as they are, but for virtual connection IDs, once theirs are registered; the
//! draft's scrambling, which changes neither sizes nor times, is left out. HTTP itself, its request and its fields, is left out. What the
//! proxy keeps, repairs and reports are the parts of `swiftwater-tecc`.

mod client;
mod forwarding;
mod proxy;
mod registration;
mod segments;
mod wire;

pub use client::TunnelClient;
pub use proxy::{TunnelProxy, TunnelStats};

use swiftwater_quic::SocketId;
use swiftwater_tecc::RepairLimits;

/// Interface of the connection between client and proxy.
const QUIC: SocketId = SocketId(0);
/// Interface of UDP.
const UDP: SocketId = SocketId(1);

/// What carries UDP payloads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carriage {
    /// Datagrams (RFC 9221).
    Datagrams,
    /// One stream in each direction, each payload after its length: reliable and in order.
    Stream,
    /// Packets of QUIC with a short header are datagrams of their own beside the connection, with neither its encryption
    /// nor its congestion control, from about a round trip after their connection ID was seen on: the virtual ID that
    /// replaces it is agreed on in a stream. Everything else goes as [`Carriage::Datagrams`]. The connection
    /// sees nothing of them: if it has an idle timeout, it needs a keep-alive interval.
    Forwarded,
}

/// Settings of a tunnel, those of both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TunnelConfig {
    /// What carries UDP payloads.
    pub carriage: Carriage,
    /// The proxy sends lost datagrams again, within these limits ([`RepairLimits::with_reports`] of them if it reports); only
    /// with [`Carriage::Datagrams`].
    pub repair: Option<RepairLimits>,
    /// The proxy reports, and the client passes the reports on; only with `repair`.
    pub reports: bool,
    /// Share of the reports that are lost on the way to the client beside those that the network loses, 0 to 1.
    pub report_loss: f64,
}
