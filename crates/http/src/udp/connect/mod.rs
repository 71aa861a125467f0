//! CONNECT requests: extended ones (RFC 9220) that use HTTP datagrams (RFC 9297), such as CONNECT-UDP and
//! CONNECT-IP, and those for TCP (RFC 9114, section 4.4). WebTransport, which has streams besides, is in [`webtransport`](super::webtransport).
//!
//! - [`HttpDatagrams`]: the datagrams of one request, at either end. A service finds them in the extensions of
//!   an extended CONNECT request.
//! - [`SendRequest::connect`](super::SendRequest::connect): sends such a request at a client;
//!   [`SendRequest::connect_host`](super::SendRequest::connect_host): one for TCP.
//! - [`ConnectStream`]: the content of an accepted request as a byte stream.

mod client;
mod datagrams;
mod flows;
mod stream;

pub use client::{ConnectContent, PendingConnect, RecvContent, SendContent};
pub use datagrams::{DatagramBatch, DatagramsEnded, HttpDatagrams};
pub use stream::ConnectStream;

pub(super) use flows::DatagramFlows;
