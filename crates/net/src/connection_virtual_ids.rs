//! Packets beside a connection: on its 4-tuple, with virtual connection IDs, without its protection, congestion control
//! and loss recovery (draft-ietf-masque-quic-proxy, section 6).

use std::fmt;
use std::io;
use std::sync::Arc;

use swiftwater_quic::wire::ConnectionId;
use swiftwater_quic::{EcnCodepoint, PathAddress};

use crate::connection::Connection;
use crate::connection_worker::ConnectionWorker;
use crate::socket::Parcel;
use crate::virtual_ids::{VirtualIdError, VirtualIdReceiver};

/// A virtual connection ID, which receives packets until this is dropped.
pub struct VirtualId {
    id: ConnectionId,
    worker: Arc<dyn ConnectionWorker>,
}

impl VirtualId {
    /// The ID.
    pub fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Drop for VirtualId {
    fn drop(&mut self) {
        self.worker.remove_virtual_id(&self.id);
    }
}

impl fmt::Debug for VirtualId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VirtualId").field(&self.id).finish()
    }
}

impl Connection {
    /// A new virtual connection ID, whose packets `receiver` takes. It is drawn as the endpoint's own IDs are: it is
    /// unpredictable, and load balancers and workers find this worker by it.
    ///
    /// # Errors
    ///
    /// See [`VirtualIdError`].
    pub fn issue_virtual_id(
        &self,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<VirtualId, VirtualIdError> {
        self.require_socket()?;
        let worker = &self.handle.worker;
        let id = worker.issue_virtual_id(receiver)?;
        let worker = Arc::clone(worker);
        Ok(VirtualId { id, worker })
    }

    /// The same with an ID that the peer chose. With several workers its packets are found only while they arrive at the
    /// worker of the connection.
    ///
    /// # Errors
    ///
    /// See [`VirtualIdError`].
    pub fn accept_virtual_id(
        &self,
        id: ConnectionId,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<VirtualId, VirtualIdError> {
        self.require_socket()?;
        let worker = &self.handle.worker;
        worker.accept_virtual_id(id, receiver)?;
        let worker = Arc::clone(worker);
        Ok(VirtualId { id, worker })
    }

    /// Whether the path in use has a UDP socket of the system, and not a [`DatagramCarrier`](crate::DatagramCarrier).
    pub fn has_udp_socket(&self) -> bool {
        let socket = self.path_address().local.socket;
        self.handle.worker.has_udp_socket(socket)
    }

    fn require_socket(&self) -> Result<(), VirtualIdError> {
        let has_socket = self.has_udp_socket();
        has_socket.then_some(()).ok_or(VirtualIdError::NoSocket)
    }

    /// The path in use, if it is known to lead to the peer: its address is validated (RFC 9000, section 8) and the
    /// handshake is complete.
    pub fn validated_path(&self) -> Option<PathAddress> {
        self.handle.lock().connection.validated_path()
    }

    /// Sends packets that are not of the connection on a path of it that is known to lead to the peer
    /// ([`Connection::validated_path`]): `contents` has one after the other, of `size` bytes each but for a shorter last
    /// one. They leave at once.
    ///
    /// # Errors
    ///
    /// What the system says when it takes one of them not, after those before it have left: `WouldBlock` if its buffer is
    /// full. `Unsupported` if the connection has no UDP socket.
    pub fn send_beside(
        &self,
        path: &PathAddress,
        contents: &[u8],
        size: usize,
        ecn: Option<EcnCodepoint>,
    ) -> io::Result<()> {
        let parcel = Parcel {
            destination: path.remote,
            source_ip: path.local.ip,
            ecn,
            contents,
            segment_size: Some(size),
        };
        self.handle.worker.send(path.local.socket, parcel)
    }
}
