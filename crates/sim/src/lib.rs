//! Virtual time: many links and hosts running the real stack, deterministic.
//!
//! A [`Network`] is hosts, routers and links. Hosts run the real `swiftwater-quic` endpoint and
//! connections with real packets, protected by TLS or by the null cipher ([`Cipher`]); links are
//! those of `swiftwater-link`. Nothing waits: the network jumps from event to event, and a run of a
//! minute takes as long as its packets take to process.
//!
//! All randomness comes from one seed. The same seed and the same calls give the same run: bit for
//! bit with [`Cipher::Null`], and the same times and sizes with [`Cipher::Tls`], whose keys are
//! random. [`PacketLog`] makes that verifiable.
//!
//! - [`Pair`]: a client and a server over two links, for protocol tests.
//! - [`Dumbbell`]: flows that share a bottleneck, for experiments on congestion control.
//! - [`Application`]: the interface of programs on hosts; [`apps`] has the usual ones.
//! - [`tcp`]: TCP modelled on the kernel, on the same hosts and links as QUIC.
//!
//! ```
//! use std::time::Duration;
//! use swiftwater_sim::{Cipher, Direction, Pair};
//! use swiftwater_link::LinkConfig;
//!
//! let mut pair = Pair::builder()
//!     .seed(7)
//!     .cipher(Cipher::Null)
//!     .link(LinkConfig::default().delay(Duration::from_millis(20)))
//!     .build()?;
//! assert!(pair.connect());
//! pair.drop_next(Direction::ToServer);
//! assert!(pair.transfer(100_000, Direction::ToServer).verified);
//! # Ok::<(), swiftwater_sim::SimError>(())
//! ```
//!
//! No real clock is read and no socket is opened here. Experiments as data, sweeps and claims are
//! in `swiftwater-lab`.

#![forbid(unsafe_code)]

mod application;
pub mod apps;
mod cipher;
mod connection_id_map;
mod connection_table;
mod datagram;
mod dumbbell;
mod error;
mod event_queue;
mod fabric;
mod host;
mod log;
mod network;
mod pair;
mod path_opener;
mod pattern;
mod report;
mod routes;
mod seed;
mod tap;
pub mod tcp;
mod tcp_table;
mod totals;

pub use application::{Application, HostContext, Idle, RawDatagram};
pub use cipher::{Cipher, SERVER_NAME};
pub use datagram::DatagramNote;
pub use dumbbell::{Dumbbell, DumbbellPath, DumbbellRun, FlowSpec};
pub use error::SimError;
pub use fabric::{FabricStats, InterfaceId, LinkId, NodeId};
pub use host::HostConfig;
pub use log::{LogDetail, LogEntry, LogFate, PacketLog};
pub use network::{HostId, Network, OldAddress};
pub use pair::{Attachment, Direction, Pair, PairBuilder, TransferId, TransferReport};
pub use pattern::Pattern;
pub use report::{FlowReport, PathReport, QueueReport, Report};
pub use tap::{Captured, Recording, TapDatagram, Verdict};
pub use tcp_table::TcpHandle;
pub use totals::{HostTotals, SocketTotals};
