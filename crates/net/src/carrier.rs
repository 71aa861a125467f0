//! What carries an endpoint's datagrams in the place of a UDP socket, such as a tunnel through a proxy.
//!
//! The interface only: who has a carrier implements it, and gives it to
//! [`Endpoint::over`](crate::Endpoint::over).

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;

/// Waits until a carrier can't reach an address.
pub type Refusal<'a> = Pin<Box<dyn Future<Output = io::Error> + Send + 'a>>;

/// Carries datagrams in the place of a UDP socket. One task at a time uses it.
///
/// Where datagrams go and come from is named by UDP addresses, as with a socket. They need not be ones that the
/// system can reach.
pub trait DatagramCarrier: Send + Sync + 'static {
    /// The address that the endpoint has as its own. Datagrams go to addresses of its family only, with `[::]` to all.
    fn local_addr(&self) -> SocketAddr;

    /// The next arrival; wakes the task when there is one, after `Pending`. An error counts as a failed read, after which
    /// the endpoint goes on: a carrier that has ended stays pending.
    fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<io::Result<Carried>>;

    /// Takes a datagram to `destination`, or drops it, as UDP may; `Pending` while there is no room, and wakes the task
    /// when there is. [`too_large`] if it doesn't fit, which the connection heeds; other errors mean that it is lost.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        destination: SocketAddr,
        payload: &[u8],
    ) -> Poll<io::Result<()>>;

    /// Datagrams of equal size that [`poll_send_run`](Self::poll_send_run) may take at once; by default it is not used.
    fn max_segments(&self) -> usize {
        1
    }

    /// Takes several datagrams to `destination` at once: `run` has one after the other, of `size` bytes each but for a
    /// shorter last one. After any error they come again, each by itself ([`poll_send`](Self::poll_send)): one that takes no
    /// runs at the moment, or not these, says `Unsupported`.
    fn poll_send_run(
        &self,
        cx: &mut Context<'_>,
        destination: SocketAddr,
        run: &[u8],
        size: usize,
    ) -> Poll<io::Result<()>> {
        let _ = (cx, destination, run, size);
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Waits until it is known that `remote` can't be reached, and returns why; by default that is never known.
    fn refusal(&self, remote: SocketAddr) -> Refusal<'_> {
        let _ = remote;
        Box::pin(pending())
    }
}

/// What comes out of a carrier.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Carried {
    /// Where it comes from.
    pub remote: SocketAddr,
    /// What it is.
    pub content: CarriedContent,
}

/// What a carrier brings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CarriedContent {
    /// A UDP payload.
    Datagram {
        /// The payload.
        payload: Bytes,
        /// Its number on the last part of its way
        /// ([`Connection::handle_tagged_datagram`](swiftwater_quic::Connection::handle_tagged_datagram)).
        tag: Option<u64>,
    },
    /// A report of the path, for all connections to where it comes from
    /// ([`Connection::on_path_report`](swiftwater_quic::Connection::on_path_report)).
    Report(Bytes),
}

/// Whether an error says that a datagram is too large for an interface or for its path.
pub fn is_too_large(error: &io::Error) -> bool {
    crate::socket::is_too_large(error)
}

/// The error for a datagram that a carrier has no room for, whatever else it carries: the system's for one that exceeds the
/// MTU of an interface.
pub fn too_large() -> io::Error {
    io::Error::from_raw_os_error(crate::socket::TOO_LARGE)
}
