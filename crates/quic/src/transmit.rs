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

/// A local socket, by the number that the driver gave it. A driver with a single socket leaves it at
/// the default, 0.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SocketId(pub u16);

/// The local end of a path: a local socket, and the address there if it is known.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct LocalAddress {
    /// The socket.
    pub socket: SocketId,
    /// The IP address; `None` leaves it to the system.
    pub ip: Option<IpAddr>,
}

impl LocalAddress {
    /// Whatever address the system picks on this socket.
    pub const fn any(socket: SocketId) -> Self {
        Self { socket, ip: None }
    }

    /// True if `other` is the same where both are known.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.socket == other.socket
            && (self.ip.is_none() || other.ip.is_none() || self.ip == other.ip)
    }
}

/// Both ends of a path.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PathAddress {
    /// The peer's.
    pub remote: SocketAddr,
    /// The local end.
    pub local: LocalAddress,
}

impl PathAddress {
    /// True if `other` is the same as far as both are known.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.remote == other.remote && self.local.matches(&other.local)
    }

    /// True if `other` differs in a port at most (RFC 9000, section 9.4): it probably lies behind the
    /// same network path. For an unknown local address that can't be decided.
    pub(crate) fn is_same_host(&self, other: &Self) -> bool {
        let same_local = self.local == other.local
            || (self.local.ip.is_some() && self.local.ip == other.local.ip);
        self.remote.ip() == other.remote.ip() && same_local
    }
}

/// Where a datagram came from and how it was marked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DatagramMeta {
    /// Sender.
    pub remote: SocketAddr,
    /// Address it was sent to, if the socket reports it.
    pub local_ip: Option<IpAddr>,
    /// The socket that received it.
    pub socket: SocketId,
    /// ECN field; `None` for Not-ECT or unknown.
    pub ecn: Option<EcnCodepoint>,
}

impl DatagramMeta {
    /// The path it took.
    pub(crate) fn path(&self) -> PathAddress {
        PathAddress {
            remote: self.remote,
            local: LocalAddress {
                socket: self.socket,
                ip: self.local_ip,
            },
        }
    }
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
    /// The socket to send from.
    pub socket: SocketId,
    /// ECN field to set.
    pub ecn: Option<EcnCodepoint>,
    /// Bytes in the buffer.
    pub size: usize,
    /// Size of each datagram if there is more than one.
    pub segment_size: Option<usize>,
}

impl Transmit {
    /// One datagram of `size` bytes.
    pub(crate) fn single(
        path: PathId,
        address: &PathAddress,
        ecn: Option<EcnCodepoint>,
        size: usize,
    ) -> Self {
        Self {
            path,
            destination: address.remote,
            source_ip: address.local.ip,
            socket: address.local.socket,
            ecn,
            size,
            segment_size: None,
        }
    }
}
