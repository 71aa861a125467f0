//! The socket of a tunnel to its target: connected, so that only the target's datagrams are received and errors of
//! the network are reported (RFC 9298, section 3.1).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use swiftwater_net::is_too_large;
use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use super::receive_buffers::ReceiveBuffers;
use super::refusal::Refusal;
use super::send_run::SendRun;

/// Kernel buffers to ask for, bytes: a burst of a fast server waits there.
const KERNEL_BUFFER: usize = 1 << 20;

/// An error of the network makes a socket not readable.
const RECEIVABLE: Interest = Interest::READABLE.add(Interest::ERROR);

/// A connected UDP socket that fragments nothing.
#[derive(Debug)]
pub(super) struct TargetSocket {
    io: UdpSocket,
    state: UdpSocketState,
    target: SocketAddr,
    /// What the system said to who sent, once, of a target that can't be reached.
    unreachable: OnceLock<io::ErrorKind>,
    found_unreachable: Notify,
}

impl TargetSocket {
    /// A socket that is connected to the first of `targets` that `permit` admits and to which there is a route, from any
    /// local address.
    pub(super) fn connect(
        targets: &[SocketAddr],
        permit: impl Fn(SocketAddr) -> Result<(), Refusal>,
    ) -> Result<(Self, SocketAddr), Refusal> {
        let mut failure = Refusal::Socket(io::ErrorKind::AddrNotAvailable.into());
        for &target in targets {
            let connected =
                permit(target).and_then(|()| Self::connect_to(target).map_err(Refusal::Socket));
            match connected {
                Ok(socket) => return Ok((socket, target)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn connect_to(target: SocketAddr) -> io::Result<Self> {
        let local: SocketAddr = if target.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let domain = Domain::for_address(target);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        // Larger buffers are welcome, not required.
        let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
        let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        socket.connect(&target.into())?;
        // Sets Don't Fragment, and lets the system join datagrams of one size.
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self {
            io: UdpSocket::from_std(socket.into())?,
            state,
            target,
            unreachable: OnceLock::new(),
            found_unreachable: Notify::new(),
        })
    }

    /// Ready once there are datagrams or an error; which of both is for [`TargetSocket::receive`]. Fails if a sender was
    /// told that the target can't be reached.
    pub(super) async fn ready(&self) -> io::Result<Ready> {
        tokio::select! {
            ready = self.io.ready(RECEIVABLE) => ready,
            () = self.found_unreachable.notified() => {
                let kind = self.unreachable.get().copied();
                Err(kind.unwrap_or(io::ErrorKind::HostUnreachable).into())
            }
        }
    }

    /// Receives what is there into `buffers`, as far as they have room; false if nothing was.
    pub(super) fn receive(&self, ready: Ready, buffers: &mut ReceiveBuffers) -> io::Result<bool> {
        // One kind at a time: tokio takes a combination for nothing.
        let kind = if ready.is_error() {
            Interest::ERROR
        } else {
            Interest::READABLE
        };
        let received = self.io.try_io(kind, || {
            buffers.fill(|slots, metas| self.state.recv((&self.io).into(), slots, metas))?;
            // An error may still wait behind the datagrams, and is not announced again.
            if buffers.took_all() && !ready.is_error() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match received {
            // That a packet was too large for the path is announced here, too.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && !is_too_large(&error) => {
                Err(error)
            }
            _ => Ok(!buffers.is_empty()),
        }
    }

    /// Datagrams that may leave in one system call.
    pub(super) fn max_run(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Sends datagrams in one system call. If that fails none has left, with `WouldBlock` if the system's buffer is full.
    pub(super) fn send_run(&self, run: &SendRun) -> io::Result<()> {
        self.send_marked(run.content(), Some(run.size()), None)
    }

    /// The same with an ECN mark; without a `size` it is one datagram.
    pub(super) fn send_marked(
        &self,
        contents: &[u8],
        size: Option<usize>,
        ecn: Option<EcnCodepoint>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.target,
            ecn,
            contents,
            segment_size: size,
            src_ip: None,
        };
        let sent = self.state.try_send((&self.io).into(), &transmit);
        if let Err(error) = &sent
            && is_unreachable(error)
        {
            let _ = self.unreachable.set(error.kind());
            self.found_unreachable.notify_one();
        }
        sent
    }

    /// Sends a datagram, or fails with `WouldBlock` if the system's buffer is full.
    pub(super) fn send(&self, payload: &[u8]) -> io::Result<()> {
        // Asks the system, not tokio: to tokio a new socket is not writable until its event loop has turned.
        SockRef::from(&self.io).send(payload).map(drop)
    }
}

/// Whether an error of sending says that the target can't be reached. Others concern one datagram: the system's buffer is
/// full, or it is too large for the path.
pub(super) fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
