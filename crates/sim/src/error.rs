//! What can be wrong with a simulation before it runs.

use std::net::SocketAddr;

use swiftwater_congestion::UnknownController;
use swiftwater_link::LinkConfigError;
use thiserror::Error;

/// A network or scenario can't be built as described.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// A link's configuration is invalid.
    #[error("a link can't be built: {0}")]
    Link(#[from] LinkConfigError),
    /// No congestion controller has the name.
    #[error(transparent)]
    Controller(#[from] UnknownController),
    /// The deterministic certificate or the TLS configuration could not be made.
    #[error("TLS can't be set up: {0}")]
    Tls(#[from] swiftwater_tls::ConfigError),
    /// Two interfaces would have the same address.
    #[error("the address {0} is taken by another interface")]
    AddressTaken(SocketAddr),
    /// A link doesn't lead where it was said to.
    #[error("an interface's uplink must start, and its downlink end, at its host")]
    WrongLink,
    /// A scenario's number is out of range.
    #[error("{what} is out of range: {why}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// What is allowed.
        why: &'static str,
    },
}
