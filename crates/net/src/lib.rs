//! Drives [`swiftwater_quic`] over real UDP sockets with tokio, and emulates links between real
//! programs.
//!
//! - [`Endpoint`]: one UDP address with any number of connections, client and server. A worker (one
//!   task, or several threads that share the address) owns a socket and does all protocol work of its
//!   connections, in batches: GRO slices in, GSO slices out, ECN marks and local addresses both ways.
//! - [`Connection`], [`SendStream`], [`RecvStream`]: what applications hold. They work on the
//!   connection directly, under its lock, and notify the worker afterwards; data are copied once.
//! - [`Application`]: a protocol that runs on a connection inside its worker.
//! - [`TraceFactory`]: observations of connections, for `tracing`.
//! - [`TcpInspector`]: what Linux knows of a TCP connection, to compare it with QUIC.
//! - [`VirtualId`]: packets on the 4-tuple of a connection that are not of it, for proxies that forward.
//! - [`relay`]: puts any UDP program behind an emulated link; with the feature `tun`, on Linux, whatever
//!   takes IP packets.
//!
//! Memory is bounded by configuration: stream data by flow control, datagrams by their queue,
//! connections by the endpoint's limits and the backlog of [`Endpoint::accept`]. A slow reader slows
//! its peer and no other connection.
//!
//! No protocol logic lives here, and no TLS: both come in through `swiftwater_quic`'s configuration.

#![forbid(unsafe_code)]

mod acceptor;
mod application;
mod carrier;
mod clock;
mod connection;
mod connection_paths;
mod connection_shared;
mod connection_signals;
mod connection_state;
mod connection_table;
mod connection_virtual_ids;
mod connection_worker;
mod datagram_fates;
mod datagram_router;
mod datagrams;
mod endpoint;
mod endpoint_options;
mod endpoint_shared;
mod endpoint_stats;
mod error;
mod faults;
mod handed_over;
mod idle_release;
mod inbox;
mod migration_request;
mod outgoing;
mod path_events;
mod receive_errors;
mod recv_batch;
mod recv_stream;
pub mod relay;
mod send_stream;

mod socket;
mod socket_list;

mod tcp_statistics;
mod timers;
mod trace;
mod virtual_ids;
mod worker;
mod worker_pool;
mod worker_runtime;
mod worker_socket;
mod worker_sockets;

pub use acceptor::Acceptor;
pub use application::Application;
pub use carrier::{Carried, CarriedContent, DatagramCarrier, Refusal, is_too_large, too_large};
pub use connection::{Connecting, Connection};
pub use connection_virtual_ids::VirtualId;
pub use endpoint::Endpoint;
pub use endpoint_options::EndpointOptions;
pub use endpoint_stats::EndpointStats;
pub use error::{BindError, ReadExactError, ReadToEndError};
#[doc(hidden)]
pub use faults::SocketFaults;
pub use path_events::{PathEvent, PathEvents};
pub use recv_stream::RecvStream;
pub use send_stream::SendStream;
pub use swiftwater_quic as quic;
pub use tcp_statistics::{TcpInspector, TcpStatistics};
pub use trace::TraceFactory;
pub use virtual_ids::{VirtualIdError, VirtualIdReceiver, VirtualPacket};
