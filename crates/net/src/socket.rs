//! A UDP socket with batches: GSO, GRO, ECN, packet info, IPv4 and IPv6.
//!
//! Everywhere else an IPv4 peer has an IPv4 address; that a dual-stack socket sees it as an IPv6
//! address stays in here.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::task::{Context, Poll, ready};

use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use swiftwater_quic::{DatagramMeta, EcnCodepoint};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::error::BindError;

/// Largest UDP payload over IPv4, and thus of one GSO send, bytes.
pub(crate) const MAX_UDP_PAYLOAD: usize = 65_507;

/// Room for one GRO batch; the kernel makes none larger than an IP packet can be.
const RECV_SLOT: usize = 65_535;

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

/// The socket of a worker or relay.
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    family: Family,
    local: SocketAddr,
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

impl Socket {
    /// Binds `address`; a wildcard IPv6 address takes IPv4 too where the system can do it.
    pub(crate) fn bind(address: SocketAddr, buffers: SocketBuffers) -> Result<Self, BindError> {
        let failed = |source| BindError::Address { address, source };
        tokio::runtime::Handle::try_current()
            .map_err(|error| BindError::NoRuntime(error.to_string()))?;
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
        socket.bind(&address.into()).map_err(failed)?;
        let state = UdpSocketState::new((&socket).into()).map_err(failed)?;
        let io = UdpSocket::from_std(socket.into()).map_err(failed)?;
        let local = io.local_addr().map_err(failed)?;
        Ok(Self {
            io,
            state,
            family,
            local,
        })
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
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let received = self.io.try_io(Interest::READABLE, || {
                batch.fill(|slots, metas| self.state.recv((&self.io).into(), slots, metas))
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    /// Sends without waiting. Errors other than `WouldBlock` mean that this datagram is lost, no
    /// more.
    ///
    /// Asks the system, not tokio: to tokio a socket is not writable until its event loop has turned
    /// once, which would drop the first datagrams of a new socket.
    pub(crate) fn try_send(&self, parcel: &Parcel<'_>) -> io::Result<()> {
        let transmit = self.transmit(parcel);
        self.state.try_send((&self.io).into(), &transmit)
    }

    /// Sends, or waits until the socket takes datagrams again.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        parcel: &Parcel<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.io.poll_send_ready(cx))?;
            let sent = self.io.try_io(Interest::WRITABLE, || self.try_send(parcel));
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
                (Family::Dual, Some(IpAddr::V4(v4))) => Some(v4.to_ipv6_mapped().into()),
                (_, other) => other,
            },
        }
    }
}

/// Buffers for one batch of received datagrams, allocated once.
pub(crate) struct RecvBatch {
    data: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
    filled: usize,
}

impl RecvBatch {
    pub(crate) fn new() -> Self {
        Self {
            data: vec![0; RECV_SLOT * BATCH_SIZE].into_boxed_slice(),
            metas: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
        }
    }

    fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.filled = 0;
        let mut slots = self.data.chunks_exact_mut(RECV_SLOT);
        let mut slots: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| {
            IoSliceMut::new(slots.next().expect("the buffer has a slot per message"))
        });
        self.filled = receive(&mut slots, &mut self.metas)?;
        Ok(())
    }

    /// The datagrams received, each with where it came from.
    pub(crate) fn datagrams(&mut self) -> impl Iterator<Item = (DatagramMeta, &mut [u8])> {
        let slots = self.data.chunks_exact_mut(RECV_SLOT);
        self.metas[..self.filled]
            .iter()
            .zip(slots)
            .flat_map(|(meta, slot)| {
                let about = DatagramMeta {
                    remote: canonical(meta.addr),
                    local_ip: meta.dst_ip.map(|ip| ip.to_canonical()),
                    ecn: meta.ecn.map(from_udp),
                };
                let len = meta.len.min(slot.len());
                let stride = meta.stride.max(1);
                slot[..len]
                    .chunks_mut(stride)
                    .map(move |datagram| (about, datagram))
            })
    }
}

/// IPv4 addresses as such, not in their mapped form.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => (v4, v6.port()).into(),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

fn to_udp(ecn: EcnCodepoint) -> quinn_udp::EcnCodepoint {
    match ecn {
        EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
    }
}

fn from_udp(ecn: quinn_udp::EcnCodepoint) -> EcnCodepoint {
    match ecn {
        quinn_udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
        quinn_udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
        quinn_udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
    }
}
