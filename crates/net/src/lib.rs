//! Drives [`swiftwater_quic`] over real UDP sockets with tokio, and emulates links between real
//! programs.
//!
//! - [`Endpoint`]: one UDP socket with any number of connections, client and server. One task (the
//!   worker) owns the socket and does all protocol work, in batches: GRO slices in, GSO slices out,
//!   ECN marks and local addresses both ways.
//! - [`Connection`], [`SendStream`], [`RecvStream`]: what applications hold. They work on the
//!   connection directly, under its lock, and tell the worker afterwards; data are copied once.
//! - [`relay`]: puts any UDP program behind an emulated link.
//!
//! Memory is bounded by configuration: stream data by flow control, datagrams by their queue,
//! connections by the endpoint's limits and the backlog of [`Endpoint::accept`]. A slow reader slows
//! its peer and nobody else.
//!
//! No protocol logic lives here, and no TLS: both come in through `swiftwater_quic`'s configuration.

#![forbid(unsafe_code)]

mod clock;
mod connection;
mod endpoint;
mod endpoint_shared;
mod error;
mod inbox;
mod outgoing;
mod receive_errors;
mod recv_stream;
pub mod relay;
mod send_stream;
mod shared;
mod socket;
mod timers;
mod worker;

pub use connection::{Connecting, Connection};
pub use endpoint::{Endpoint, EndpointOptions, EndpointStats};
pub use error::{BindError, ReadExactError, ReadToEndError};
pub use recv_stream::RecvStream;
pub use send_stream::SendStream;
pub use swiftwater_quic as quic;
