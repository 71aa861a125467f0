//! What packets go to.

use std::io;
use std::task::{Context, Poll};

/// A network interface of whole IP packets, without further headers.
pub trait PacketDevice: Send + Sync + 'static {
    /// Sends a packet, or fails at once; it is lost then.
    fn send(&self, packet: &[u8]) -> io::Result<()>;

    /// Receives the next packet into `buffer`, which has room for the largest one; its length, bytes. One task
    /// receives. An error ends all tunnels.
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;
}
