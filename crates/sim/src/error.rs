//! Errors of simulation set-ups.

use std::net::SocketAddr;

use swiftwater_congestion::UnknownEntry;
use swiftwater_link::LinkConfigError;
use thiserror::Error;

/// Why a network or scenario can't be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// A link's configuration is invalid.
    #[error("a link can't be built: {0}")]
    Link(#[from] LinkConfigError),
    /// No congestion controller has the name.
    #[error(transparent)]
    Controller(#[from] UnknownEntry),
    /// The deterministic certificate or the TLS configuration could not be created.
    #[error("TLS can't be set up: {0}")]
    Tls(#[from] swiftwater_tls::ConfigError),
    /// Two interfaces have the same address.
    #[error("the address {0} is taken by another interface")]
    AddressTaken(SocketAddr),
    /// A link does not connect the stated nodes.
    #[error("an interface's uplink must start, and its downlink end, at its host")]
    WrongLink,
    /// A scenario's number is out of range.
    #[error("{what} is out of range: {why}")]
    OutOfRange {
        /// Name of the value.
        what: &'static str,
        /// Permitted range.
        why: &'static str,
    },
}
