//! A socket that sends bursts with one system call.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Most bytes of a burst: a UDP datagram's, as the kernel takes a burst for one until it splits it.
const MAX_BURST: usize = 65_507;

/// A UDP socket with GSO and GRO.
#[derive(Debug)]
pub struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    /// Binds one, with large buffers if `tuned`.
    pub fn bind(address: SocketAddr, tuned: bool) -> io::Result<Self> {
        let udp = job::udp_socket(address, tuned)?;
        Ok(Self {
            state: UdpSocketState::new((&udp).into())?,
            local: udp.local_addr()?,
            udp,
        })
    }

    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Most datagrams of `size` bytes that one burst may have.
    pub fn max_burst(&self, size: usize) -> usize {
        self.state.max_gso_segments().min(MAX_BURST / size).max(1)
    }

    /// Sends contiguous datagrams, each of `size` bytes except for the last, which may be shorter. Waits for
    /// space if there is none.
    pub fn send(&self, to: SocketAddr, datagrams: &[u8], size: usize) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: datagrams,
            segment_size: Some(size),
            src_ip: None,
        };
        self.patiently(|| self.state.try_send((&self.udp).into(), &transmit))
    }

    /// The same for datagrams that are not contiguous.
    pub fn send_gathered(
        &self,
        to: SocketAddr,
        datagrams: &[IoSlice<'_>],
        size: usize,
    ) -> io::Result<()> {
        let to = SockaddrStorage::from(to);
        let size = u16::try_from(size).map_err(io::Error::other)?;
        let segments = [ControlMessage::UdpGsoSegments(&size)];
        let control = &segments[..usize::from(datagrams.len() > 1)];
        let descriptor = self.udp.as_raw_fd();
        self.patiently(|| {
            sendmsg(descriptor, datagrams, control, MsgFlags::empty(), Some(&to))?;
            Ok(())
        })
    }

    /// Waits until datagrams are there, or until `deadline`; not at all if it is past.
    pub fn wait(&self, deadline: Option<Instant>) -> io::Result<()> {
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        self.poll(PollFlags::IN, timeout)
    }

    pub(crate) fn receive(
        &self,
        rooms: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> io::Result<usize> {
        self.state.recv((&self.udp).into(), rooms, metas)
    }

    fn patiently(&self, send: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            match send() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.poll(PollFlags::OUT, None)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn poll(&self, what: PollFlags, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut descriptors = [PollFd::new(&self.udp, what)];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
