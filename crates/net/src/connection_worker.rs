//! What a connection needs of the worker that drives it. The worker's side implements it, so that the
//! connection's modules depend on no other of the endpoint's.

use std::net::SocketAddr;

use swiftwater_quic::SocketId;
use swiftwater_units::Instant;
use tokio::runtime::Handle as Runtime;

/// The worker of a connection.
pub(crate) trait ConnectionWorker: Send + Sync {
    /// The present time on the endpoint's clock.
    fn now(&self) -> Instant;

    /// Notifies the worker of a change that the application made to connection `index`.
    fn touch(&self, index: usize);

    /// The address to which `socket` is bound; `None` if the endpoint has no such socket.
    fn socket_address(&self, socket: SocketId) -> Option<SocketAddr>;

    /// The address of the socket by which new connections leave.
    fn local_address(&self) -> SocketAddr;

    /// Where the worker runs.
    fn runtime(&self) -> Runtime;
}
