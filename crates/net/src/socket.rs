//! A UDP socket with batches: GSO, GRO, ECN, packet info, IPv4 and IPv6.
//!
//! Everywhere else an IPv4 peer has an IPv4 address; that a dual-stack socket sees it as an IPv6
//! address stays in here.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn_udp::{BATCH_SIZE, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use swiftwater_quic::{EcnCodepoint, Transmit};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::error::BindError;
use crate::faults::SocketFaults;
use crate::recv_batch::RecvBatch;

/// Largest UDP payload over IPv4, and thus of one GSO send, bytes.
pub(crate) const MAX_UDP_PAYLOAD: usize = 65_507;

/// True if the runtime gets an event for each datagram that comes, not only while the socket has some: then a
/// batch that isn't full means that the socket is empty, and what comes later raises another event. With `recvmmsg`
/// only: other calls bring one message at a time.
const EDGE_TRIGGERED: bool =
    BATCH_SIZE > 1 && cfg!(any(target_os = "linux", target_os = "android"));

/// Kernel buffers to ask for, bytes; the system's limit may be lower and is no error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketBuffers {
    pub(crate) send: usize,
    pub(crate) receive: usize,
}

/// Which peers a socket reaches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    V4,
    V6,
    /// IPv6, and IPv4 through mapped addresses.
    Dual,
}

impl Family {
    /// True if datagrams to `remote` can leave through the socket.
    pub(crate) fn reaches(self, remote: SocketAddr) -> bool {
        match self {
            Self::V4 => remote.is_ipv4(),
            Self::V6 => remote.is_ipv6(),
            Self::Dual => true,
        }
    }
}

/// Whether a socket has its address for itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    Alone,
    /// The first of several at an address that must be free.
    First,
    /// Another one at the address of the first.
    Further,
}

/// True if the system spreads datagrams over the sockets that share a port, by their addresses.
pub(crate) const CAN_SHARE: bool = cfg!(any(target_os = "linux", target_os = "android"));

#[cfg(any(target_os = "linux", target_os = "android"))]
fn share(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn share(_socket: &socket2::Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The socket of a worker or relay.
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    family: Family,
    local: SocketAddr,
    faults: Option<Arc<dyn SocketFaults>>,
}

/// A bound UDP socket that is not registered with a runtime yet.
pub(crate) struct Bound {
    socket: std::net::UdpSocket,
    state: UdpSocketState,
    family: Family,
    local: SocketAddr,
    faults: Option<Arc<dyn SocketFaults>>,
}

impl Bound {
    /// Binds `address`; a wildcard IPv6 address takes IPv4 too where the system can do it.
    pub(crate) fn new(
        address: SocketAddr,
        buffers: SocketBuffers,
        sharing: Sharing,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::Address { address, source };
        let socket = socket2::Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )
        .map_err(failed)?;
        let mut family = if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        if family == Family::V6
            && address.ip().is_unspecified()
            && socket.set_only_v6(false).is_ok()
        {
            family = Family::Dual;
        }
        // Larger buffers are welcome, not required.
        let _ = socket.set_send_buffer_size(buffers.send);
        let _ = socket.set_recv_buffer_size(buffers.receive);
        socket.set_nonblocking(true).map_err(failed)?;
        if sharing == Sharing::Further {
            share(&socket).map_err(failed)?;
        }
        socket.bind(&address.into()).map_err(failed)?;
        if sharing == Sharing::First {
            // Only now: so bound, the port was free, and the system chose none that is in use.
            share(&socket).map_err(failed)?;
        }
        let state = UdpSocketState::new((&socket).into()).map_err(failed)?;
        if state.may_fragment() {
            tracing::warn!(%address, "the system may fragment datagrams: they may grow beyond the path's MTU");
        }
        let socket: std::net::UdpSocket = socket.into();
        let local = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            state,
            family,
            local,
            faults: None,
        })
    }

    /// Lets system calls fail as `faults` decides.
    pub(crate) fn set_faults(&mut self, faults: Option<Arc<dyn SocketFaults>>) {
        self.faults = faults;
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }
}

/// What to send: the content and where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel<'a> {
    pub(crate) destination: SocketAddr,
    pub(crate) source_ip: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) contents: &'a [u8],
    pub(crate) segment_size: Option<usize>,
}

impl<'a> Parcel<'a> {
    /// `contents`, in datagrams of `segment_size` if that is given, to where `transmit` goes.
    pub(crate) fn of(transmit: &Transmit, contents: &'a [u8], segment_size: Option<usize>) -> Self {
        Self {
            destination: transmit.destination,
            source_ip: transmit.source_ip,
            ecn: transmit.ecn,
            contents,
            segment_size,
        }
    }
}

impl Socket {
    /// Binds `address`; a wildcard IPv6 address takes IPv4 too where the system can do it.
    pub(crate) fn bind(address: SocketAddr, buffers: SocketBuffers) -> Result<Self, BindError> {
        Self::bind_as(address, buffers, Sharing::Alone)
    }

    /// The same, for a socket that shares its address with others, or not.
    pub(crate) fn bind_as(
        address: SocketAddr,
        buffers: SocketBuffers,
        sharing: Sharing,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::Address { address, source };
        tokio::runtime::Handle::try_current()
            .map_err(|error| BindError::NoRuntime(error.to_string()))?;
        let bound = Bound::new(address, buffers, sharing)?;
        Self::register(bound).map_err(failed)
    }

    /// Makes a bound socket known to the runtime of the running task.
    pub(crate) fn register(bound: Bound) -> io::Result<Self> {
        Ok(Self {
            io: UdpSocket::from_std(bound.socket)?,
            state: bound.state,
            family: bound.family,
            local: bound.local,
            faults: bound.faults,
        })
    }

    /// Lets system calls fail as `faults` decides.
    pub(crate) fn set_faults(&mut self, faults: Option<Arc<dyn SocketFaults>>) {
        self.faults = faults;
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// Datagrams that may go into one send.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Waits for datagrams and fills `batch` with what is there.
    pub(crate) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        batch: &mut RecvBatch,
    ) -> Poll<io::Result<()>> {
        batch.clear();
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            if let Some(error) = self.faults.as_ref().and_then(|faults| faults.on_receive()) {
                return fail(cx, error);
            }
            let received = self.io.try_io(Interest::READABLE, || {
                batch.fill(|slots, metas| self.state.recv((&self.io).into(), slots, metas))?;
                if EDGE_TRIGGERED && !batch.is_full() {
                    // There was no more: asking the system for that would be another call.
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !batch.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                }
                other => return Poll::Ready(other),
            }
        }
    }

    /// Fills `batch` with what is there, whether or not the runtime had an event for it. False if nothing is;
    /// then the runtime gets an event for the next one.
    pub(crate) fn try_recv(&self, batch: &mut RecvBatch) -> io::Result<bool> {
        batch.clear();
        if !EDGE_TRIGGERED || self.faults.is_some() {
            return Ok(false);
        }
        match batch.fill(|slots, metas| self.state.recv((&self.io).into(), slots, metas)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends without waiting. Errors other than `WouldBlock` mean that this datagram is lost, no
    /// more.
    ///
    /// Asks the system, not tokio: to tokio a socket is not writable until its event loop has turned
    /// once, which would drop the first datagrams of a new socket.
    pub(crate) fn try_send(&self, parcel: &Parcel<'_>) -> io::Result<()> {
        match self.send_fault(parcel) {
            Some(error) => Err(error),
            None => self.send(parcel),
        }
    }

    /// Sends all datagrams of a parcel, of `size` bytes each but for a shorter last one, in as few system calls as the
    /// system permits. `on_sent` gets the number of datagrams of each call.
    pub(crate) fn try_send_all(
        &self,
        parcel: &Parcel<'_>,
        size: usize,
        mut on_sent: impl FnMut(usize),
    ) -> io::Result<()> {
        let at_once = self.max_segments().min(MAX_UDP_PAYLOAD / size).max(1);
        for contents in parcel.contents.chunks(at_once * size) {
            let run = Parcel {
                contents,
                segment_size: Some(size).filter(|size| *size < contents.len()),
                ..*parcel
            };
            match self.try_send(&run) {
                Ok(()) => on_sent(contents.len().div_ceil(size)),
                Err(error)
                    if run.segment_size.is_some() && error.kind() != io::ErrorKind::WouldBlock =>
                {
                    // Segmentation offload doesn't work here after all.
                    for contents in contents.chunks(size) {
                        let segment_size = None;
                        self.try_send(&Parcel {
                            contents,
                            segment_size,
                            ..*parcel
                        })?;
                        on_sent(1);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&self, parcel: &Parcel<'_>) -> io::Result<()> {
        let transmit = self.transmit(parcel);
        self.state.try_send((&self.io).into(), &transmit)
    }

    fn send_fault(&self, parcel: &Parcel<'_>) -> Option<io::Error> {
        let len = parcel.contents.len();
        let size = parcel.segment_size.unwrap_or(len).max(1);
        let faults = self.faults.as_ref()?;
        faults.on_send_from(self.local, len.div_ceil(size), size)
    }

    /// Sends, or waits until the socket takes datagrams again.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        parcel: &Parcel<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.io.poll_send_ready(cx))?;
            if let Some(error) = self.send_fault(parcel) {
                return fail(cx, error);
            }
            let sent = self.io.try_io(Interest::WRITABLE, || self.send(parcel));
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn transmit<'a>(&self, parcel: &Parcel<'a>) -> quinn_udp::Transmit<'a> {
        quinn_udp::Transmit {
            destination: match (self.family, parcel.destination) {
                (Family::Dual, SocketAddr::V4(v4)) => {
                    SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
                }
                (_, other) => other,
            },
            ecn: parcel.ecn.map(to_udp),
            contents: parcel.contents,
            segment_size: parcel.segment_size,
            src_ip: match (self.family, parcel.source_ip) {
                // It has no other: the system need not look whether it is one of its own.
                _ if !self.local.ip().is_unspecified() => None,
                (Family::Dual, Some(IpAddr::V4(v4))) => Some(v4.to_ipv6_mapped().into()),
                (_, other) => other,
            },
        }
    }
}

/// A system call that fails on demand.
fn fail(cx: &mut Context<'_>, error: io::Error) -> Poll<io::Result<()>> {
    if error.kind() == io::ErrorKind::WouldBlock {
        // The real socket has nothing more to announce.
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(Err(error))
}

/// The system's error for datagrams that are too large.
#[cfg(unix)]
pub(crate) const TOO_LARGE: i32 = libc::EMSGSIZE;
/// The system's error for datagrams that are too large, `WSAEMSGSIZE`.
#[cfg(not(unix))]
pub(crate) const TOO_LARGE: i32 = 10_040;

/// True if the system refused a datagram because the interface takes none of its size: sockets are
/// set not to fragment.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TOO_LARGE)
}

fn to_udp(ecn: EcnCodepoint) -> quinn_udp::EcnCodepoint {
    match ecn {
        EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
    }
}
