//! An observer that writes the events of a connection in qlog format, for tools and scripts.
//!
//! A log is a JSON text sequence (RFC 7464, `.sqlog`) after the drafts
//! `draft-ietf-quic-qlog-main-schema-14` and `draft-ietf-quic-qlog-quic-events-13`: a header, then one
//! record per event. Each connection has a separate log. Events that the drafts don't define are in
//! the namespace `swiftwater`, which `schema/swiftwater.cddl` of this crate defines: lost data,
//! replicas, recovered data, and the redundancy level of a re-injector.
//!
//! Only `directory` does I/O: [`DirectoryFactory`] creates files and reads the wall clock for their
//! names. Everything else writes to a given `io::Write` and uses only the time of the observations;
//! [`SinkFactory`] logs to memory, a pipe or a simulation.
//!
//! Records are collected and written about 16 KiB at a time, on the thread that drives the
//! connection. A log that can't be written ends with one warning and does not affect the
//! connection.
//!
//! # Compatible readers
//!
//! Readers of the drafts, and [qvis](https://qvis.quictools.info), which supports qlog 0.3 only: each
//! file is valid for both. The current schema permits additional members, and each record has those
//! that qlog 0.3 requires: `qlog_version` and `qlog_format` in the header, `category` in events,
//! `length` in frames, `owner` in parameters. One event is written twice, `recovery:metrics_updated`
//! for the older reader, since it has another type name there. Names and fields of the current drafts
//! are never altered.
//!
//! # Content
//!
//! Packets sent and received with all their frames, dropped, buffered and lost, each with its cause;
//! the transport parameters of both ends; versions, ALPN, keys, connection IDs, paths, MTU, ECN,
//! streams, metrics and states of recovery, the timer of loss detection. The loss detection timer of
//! a path is written after a batch of packets, not for each packet. At both ends the `group_id` is
//! the original destination connection ID.
//!
//! Not included: UDP datagrams (`datagram_id`, `udp_datagrams_*`), the spin bit, movements of data
//! between layers. Payloads, keys and reset tokens are never written.

#![forbid(unsafe_code)]

mod close;
mod connectivity;
mod directory;
mod factory;
mod frames;
mod header;
mod log;
mod metrics;
mod names;
mod observer;
mod packets;
mod repair;
mod state;
mod text;

pub use directory::DirectoryFactory;
pub use factory::{Sink, SinkFactory};
pub use header::{EVENT_SCHEMAS, TraceInfo};
pub use log::Limits;
pub use observer::QlogObserver;
