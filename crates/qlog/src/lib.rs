//! An observer that writes qlog: what happened on a connection, for tools and for scripts of one's
//! own.
//!
//! A log is a JSON text sequence (RFC 7464, `.sqlog`) after the drafts
//! `draft-ietf-quic-qlog-main-schema-14` and `draft-ietf-quic-qlog-quic-events-13`: a header, then one
//! record per event. Each connection has a log of its own. What the drafts have no words for stands in
//! the namespace `swiftwater`, which `schema/swiftwater.cddl` of this crate defines: data that was
//! lost, replicas, data that arrived after repair, and how much a re-injector repeats.
//!
//! Only `directory` does I/O: [`DirectoryFactory`] makes files and reads the wall clock for their
//! names. All else writes to whatever `io::Write` it is given and knows no time but that of the
//! observations; [`SinkFactory`] is the way to log into memory, a pipe or a simulation.
//!
//! Records are collected and written about 16 KiB at a time, on the thread that drives the
//! connection. A log that can't be written ends with one warning; the connection never notices.
//!
//! # What reads it
//!
//! The drafts' own readers, and [qvis](https://qvis.quictools.info), which knows qlog 0.3 only: each
//! file is both. The current schema permits further members, and each record has those that qlog 0.3
//! asks for: `qlog_version` and `qlog_format` in the header, `category` in events, `length` in frames,
//! `owner` in parameters. One event is written twice, `recovery:metrics_updated` for the older reader,
//! since it has another type name there. Names and fields of the current drafts are never altered.
//!
//! # What is in it
//!
//! Packets sent and received with all their frames, dropped, put aside and lost, each with why; the
//! transport parameters of both ends; versions, ALPN, keys, connection IDs, paths, MTU, ECN, streams,
//! metrics and states of recovery, the timer of loss detection. What a path's timer waits for is
//! written when all was sent that could be, not for each packet. At both ends the `group_id` is the
//! original destination connection ID.
//!
//! Not in it: UDP datagrams (`datagram_id`, `udp_datagrams_*`), the spin bit, movements of data between
//! layers. No payload, no key and no reset token is ever written.

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
