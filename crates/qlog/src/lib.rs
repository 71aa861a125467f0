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
//! Tools of the drafts' early years, qvis among them, read qlog 0.3 and need a conversion.
//!
//! What is not in the logs, because observers don't hear of it: addresses and connection IDs,
//! transport parameters, the frames of received packets, the kinds of small control frames, DATAGRAM
//! frames and padding. No payload and no secret is ever written.

#![forbid(unsafe_code)]

mod close;
mod directory;
mod factory;
mod frames;
mod header;
mod log;
mod metrics;
mod observer;
mod packets;
mod repair;
mod text;

pub use directory::DirectoryFactory;
pub use factory::{Sink, SinkFactory};
pub use header::{EVENT_SCHEMAS, TraceInfo};
pub use log::Limits;
pub use observer::QlogObserver;
