//! Packet schedulers and re-injectors, one file per system.
//!
//! The seams, their views and the behaviour of the RFCs live in `swiftwater_quic::policy`; here live
//! the systems that fill the seams, and the names by which users select them. A policy decides on
//! plain values and never touches the connection.
//!
//! Only the single-path scheduler is here yet. Each system that arrives gets a file of its name:
//! `autorec.rs`, `xlink.rs`, `chorus.rs` ...

#![forbid(unsafe_code)]

mod registry;
mod single_path;

pub use registry::{UnknownPolicies, by_name, names};
pub use single_path::SinglePathPolicies;
