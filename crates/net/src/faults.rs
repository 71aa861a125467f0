//! Sockets that fail on demand, for tests.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Decides which system calls of a socket fail, and how. For tests.
///
/// `WouldBlock` stands for a socket whose buffer was full and has room again at once.
pub trait SocketFaults: Send + Sync + fmt::Debug {
    /// Asked before `datagrams` datagrams of up to `size` bytes are sent in one call. An error takes
    /// the place of the call.
    fn on_send(&self, datagrams: usize, size: usize) -> Option<io::Error>;

    /// The same for datagrams that leave through the socket bound to `local`; by default what
    /// [`SocketFaults::on_send`] decides for every socket.
    fn on_send_from(&self, local: SocketAddr, datagrams: usize, size: usize) -> Option<io::Error> {
        let _ = local;
        self.on_send(datagrams, size)
    }

    /// Asked before a read from a socket that has something to read.
    fn on_receive(&self) -> Option<io::Error>;
}
