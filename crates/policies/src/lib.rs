//! Packet schedulers and re-injectors, one file or folder per system.
//!
//! The seams, their views and the behaviour of the RFCs live in `swiftwater_quic::policy`; here live
//! the systems that fill the seams, and the names by which users select them ([`by_name`],
//! [`Catalogue`]). A policy decides on plain values and never touches the connection; it reads no
//! clock, and what randomness it has comes from a seed among its parameters.

#![forbid(unsafe_code)]

pub mod art;
pub mod autorec;
pub mod autorec_plus;
mod registry;
mod single_path;

pub use art::{Art, ArtConfig};
pub use autorec::{AutoRec, AutoRecConfig};
pub use autorec_plus::{AutoRecPlus, AutoRecPlusConfig};
pub use registry::{
    Catalogue, PolicyEntry, UnknownPolicies, by_name, names, parameters, reinjector_by_name,
};
pub use single_path::{Arq, ReinjectorFactory, SinglePathPolicies};
