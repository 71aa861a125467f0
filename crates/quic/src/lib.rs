//! Sans-I/O QUIC v1 (RFC 8999, 9000, 9001, 9002, 9221): endpoint, connection, spaces, paths,
//! recovery, streams, and the policy seams on which Swiftwater's systems are built.
//!
//! # Contract
//!
//! Nothing here reads a clock, opens a socket or starts a thread. A driver feeds datagrams, expired
//! timeouts and application calls, each with the current [`Instant`](swiftwater_units::Instant), and
//! takes out datagrams, timeouts and events:
//!
//! 1. [`Endpoint::route`] finds which [`Connection`] a datagram belongs to;
//! 2. [`Connection::handle_datagram`], [`Connection::handle_timeout`] or an application call changes
//!    the connection;
//! 3. then, in this order: [`Connection::poll_transmit`] until `None`, [`Connection::poll_event`]
//!    and [`Connection::poll_endpoint_event`] until `None` (the latter handed to
//!    [`Endpoint::handle_event`], and what that returns to [`Connection::handle_cid_collision`]), and at last [`Connection::poll_timeout`] is read again.
//!
//! Skipping a step of 3 delays work but corrupts nothing. A driver may take the events before it sends
//! as well, so that answers leave with the acknowledgements. "Nothing to do" is `None` or a blocked
//! outcome, never an error. Randomness comes from one seeded generator per endpoint, split per
//! connection: the same seed and the same inputs give the same outputs, bit for bit.
//!
//! A panic means a bug of this crate; no input from a peer causes one.

#![forbid(unsafe_code)]

mod ack_frequency;
mod address_shares;
mod address_token;
mod buffers;
mod cid;
mod config;
mod connection;
mod connection_ids;
mod connection_setup;
mod control;
mod control_values;
pub mod crypto;
mod datagram_size;
mod datagrams;
mod deadlines;
mod defaults;
mod endpoint;
mod error;
mod establishment;
mod events;
mod fates;
mod feedback_exchange;
mod frame_counts;
mod frame_writer;
mod handshake;
mod identity;
mod idle_memory;
mod lazy_box;
mod lifecycle;
mod liveness;
mod migration;
mod monitor;
mod multipath;
pub mod observe;
mod outbox;
mod path;
mod path_management;
pub mod policy;
mod policy_host;
mod random;
mod ranges;
mod reception;
mod recovery;
mod space;
mod statistics;
mod stats;
mod streams;
mod transmission;
mod transmit;
mod zero_rtt_limits;

pub use address_shares::{AddressShares, ClientNetwork, ShareError};
pub use address_token::UsedTokens;
pub use cid::{
    ConnectionIdGenerator, QuicLbCids, QuicLbCodec, QuicLbError, QuicLbFormat, QuicLbId,
    RandomCids, Worker, WorkerCids,
};
pub use config::{
    AcceptDecision, AcceptPolicy, AckFrequencyConfig, ClientConfig, EarlyData, EndpointConfig,
    Incoming, MtuDiscovery, MultipathConfig, MultipathVersions, PreferredAddresses, PtoLimit,
    RetryPolicy, ServerConfig, TransportConfig,
};
pub use connection::Connection;
pub use datagrams::{DatagramOptions, ReceivedDatagram};
pub use endpoint::{ConnectionHandle, Endpoint, EndpointStats, Routed};
pub use error::{
    AbandonPathError, ConnectError, ConnectionError, MigrateError, OpenPathError, ReadError,
    SendDatagramError, StreamPathError, TransportError, Violation, WriteError,
};
pub use events::{CidCollision, EndpointEvent, Event};
pub use frame_counts::FrameCounts;
pub use observe::{DatagramFate, EarlyDataOutcome, EcnState};
pub use path::MtuState;
pub use ranges::RangeSet;
pub use space::Arrivals;
pub use stats::{ConnectionStats, PathStats};
pub use streams::{
    Chunk, Expiry, Priority, RangeHints, ReadChunk, ReadOutcome, RecvStream, RepairStats,
    SendStream, StreamEvent, StreamHasher, StreamMap,
};
pub use swiftwater_congestion as congestion;
pub use swiftwater_units as units;
pub use swiftwater_wire as wire;
pub use transmit::{DatagramMeta, EcnCodepoint, LocalAddress, PathAddress, SocketId, Transmit};
pub use zero_rtt_limits::EarlyLimits;
