//! For libraries without several paths in a connection.

use clap::Args;

use crate::quic::{Connection, EndpointConfig, TransportConfig};

/// There is one path.
#[derive(Args, Clone, Debug)]
pub(crate) struct Paths {}

#[allow(
    clippy::unused_self,
    reason = "the same calls as for those with several paths"
)]
impl Paths {
    /// Nothing.
    pub(crate) fn configure_endpoint(&self, _endpoint: &mut EndpointConfig) {}

    /// Nothing.
    pub(crate) fn configure_transport(&self, _transport: &mut TransportConfig) {}

    /// Nothing.
    pub(crate) fn attend(&self, _connection: &Connection) {}
}
