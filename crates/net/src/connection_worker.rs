//! What a connection needs of the worker that drives it. The worker's side implements it, so that the
//! connection's modules depend on no other of the endpoint's.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_quic::SocketId;
use swiftwater_quic::wire::ConnectionId;
use swiftwater_units::Instant;
use tokio::runtime::Handle as Runtime;

use crate::socket::Parcel;
use crate::virtual_ids::{VirtualIdError, VirtualIdReceiver};

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

    /// True if `socket` is one of the system's.
    fn has_udp_socket(&self, socket: SocketId) -> bool;

    /// Sends datagrams that are of no connection, at once.
    fn send(&self, socket: SocketId, parcel: Parcel<'_>) -> io::Result<()>;

    /// A new virtual connection ID.
    fn issue_virtual_id(
        &self,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<ConnectionId, VirtualIdError>;

    /// Makes an ID a virtual one.
    fn accept_virtual_id(
        &self,
        id: ConnectionId,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<(), VirtualIdError>;

    /// Makes a virtual connection ID none.
    fn remove_virtual_id(&self, id: &ConnectionId);

    /// Where the worker runs.
    fn runtime(&self) -> Runtime;
}
