//! Extended CONNECT requests (RFC 9220) that use HTTP datagrams (RFC 9297): CONNECT-UDP, CONNECT-IP and
//! others. WebTransport, which has streams besides, is in [`webtransport`](super::webtransport).
//!
//! - [`HttpDatagrams`]: the datagrams of one request, at either end. A service finds them in the extensions of
//!   an extended CONNECT request.
//! - [`SendRequest::connect`](super::SendRequest::connect): sends such a request at a client.

mod client;
mod datagrams;
mod flows;

pub use client::{ConnectContent, PendingConnect, RecvContent, SendContent};
pub use datagrams::{DatagramsEnded, HttpDatagrams};

pub(super) use flows::DatagramFlows;
