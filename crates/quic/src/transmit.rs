//! What crosses the border to the socket: datagrams in, GSO batches out.

use std::net::{IpAddr, SocketAddr};

use swiftwater_units::PathId;

/// ECN field of an IP packet (RFC 3168, section 5), where it isn't Not-ECT.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EcnCodepoint {
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// CE.
    Ce,
}

/// Where a datagram came from and how it was marked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DatagramMeta {
    /// Sender.
    pub remote: SocketAddr,
    /// Address it was sent to, if the socket tells.
    pub local_ip: Option<IpAddr>,
    /// ECN field; `None` for Not-ECT or unknown.
    pub ecn: Option<EcnCodepoint>,
}

/// One or more datagrams to send at once. They lie one after another in the lent buffer: all of
/// `segment_size` bytes except the last, which may be shorter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// Path they belong to.
    pub path: PathId,
    /// Receiver.
    pub destination: SocketAddr,
    /// Address to send from; `None` leaves it to the system.
    pub source_ip: Option<IpAddr>,
    /// ECN field to set.
    pub ecn: Option<EcnCodepoint>,
    /// Bytes in the buffer.
    pub size: usize,
    /// Size of each datagram if there is more than one.
    pub segment_size: Option<usize>,
}
