//! Parameters of algorithms by name, and catalogues of algorithms by name: what lets a command line, a
//! scenario or a configuration file choose `cubic:beta=0.8,hystart=off`, and lists what there is to
//! choose.
//!
//! A *specification* is a name, alone or with parameters: `cubic`, `autorec:alpha=50ms,beta=0.2`.
//! [`tunable!`] makes fields of a configuration settable by name, a [`Catalogue`] finds configurations
//! by theirs and makes of them what they configure.

#![forbid(unsafe_code)]

mod catalogue;
pub mod parameters;

pub use catalogue::{Catalogue, CatalogueEntry, Family, MadeFrom, UnknownEntry};
pub use parameters::{Parameter, ParameterError, ParameterValue, Tunable};
