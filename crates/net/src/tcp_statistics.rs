//! What the kernel knows of a TCP connection: round-trip time, bytes, segments.
//!
//! [`TcpInspector`] asks for it by the connection's addresses, so that whatever owns the socket need not be
//! asked. `sock_diag` speaks with Linux; other systems are not asked. What the numbers mean for a request is
//! left to callers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_units::Bandwidth;

#[cfg(target_os = "linux")]
mod sock_diag;

#[cfg(target_os = "linux")]
use sock_diag::SockDiag;

/// Statistics of a TCP connection, from its start: fields of `struct tcp_info` (`tcp(7)`,
/// `include/uapi/linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct TcpStatistics {
    /// Smoothed round-trip time (RFC 6298, section 2), measured with what this end sent; `None` before the
    /// first sample. `tcpi_rtt`, in microseconds.
    pub smoothed_rtt: Option<Duration>,
    /// Bytes received in order; the peer's FIN counts as one. `tcpi_bytes_received`.
    pub bytes_received: u64,
    /// Segments received with data, those received twice included; modulo 2^32. `tcpi_data_segs_in`.
    pub data_segments_received: u32,
    /// Of these, segments received ahead of a gap; modulo 2^32. `tcpi_rcv_ooopack`, since Linux 5.4.
    pub out_of_order_segments_received: u32,
    /// Bytes sent, retransmissions included. `tcpi_bytes_sent`.
    pub bytes_sent: u64,
    /// Bytes retransmitted. `tcpi_bytes_retrans`.
    pub bytes_retransmitted: u64,
    /// Rate at which the peer received what this end sent, by the latest sample; `None` without one. It says
    /// nothing about what this end receives. `tcpi_delivery_rate`, in bytes per second.
    pub delivery_rate: Option<Bandwidth>,
}

/// Asks the kernel for [`TcpStatistics`]. It owns one socket, and has no use of the connections'.
#[derive(Debug)]
pub struct TcpInspector {
    #[cfg(target_os = "linux")]
    kernel: SockDiag,
}

impl TcpInspector {
    /// Opens the socket (`sock_diag(7)`).
    ///
    /// # Errors
    ///
    /// The system's; [`io::ErrorKind::Unsupported`] elsewhere than on Linux.
    pub fn open() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            SockDiag::open().map(|kernel| Self { kernel })
        }
        #[cfg(not(target_os = "linux"))]
        {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// The statistics of the connection from `local` to `remote`, in the network namespace in which this
    /// inspector was opened. It does not block, and costs two system calls.
    ///
    /// IPv4-mapped IPv6 addresses are the same as their IPv4 addresses. `None` if there is no such connection
    /// any more, if its socket is bound to an interface (except by the scope of `local`), or if the kernel
    /// is older than 5.4.
    ///
    /// # Errors
    ///
    /// The system's. A later call may succeed.
    pub fn inspect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Option<TcpStatistics>> {
        #[cfg(target_os = "linux")]
        {
            self.kernel.inspect(local, remote)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (local, remote);
            Ok(None)
        }
    }
}
