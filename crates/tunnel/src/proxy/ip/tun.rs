//! A TUN device of Linux as the network of a proxy.

use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::device::PacketDevice;
use crate::policy::Prefix;

/// A TUN device, without offloads. Dropped, it is gone.
///
/// The kernel forwards what it gets only if `net.ipv4.ip_forward` or `net.ipv6.conf.all.forwarding` is set, and
/// answers find the way back only if the prefixes of the tunnels are routed to this machine, or translated.
pub struct TunDevice(AsyncFd<SyncDevice>);

impl TunDevice {
    /// Makes a device of this name, and brings it up; the kernel gets the second address of each prefix, and routes the
    /// prefix to the device. `mtu` is the largest packet, bytes. Needs the capability to administer the network, and
    /// an async runtime.
    pub fn open(name: &str, prefixes: &[Prefix], mtu: u16) -> io::Result<Self> {
        let mut builder = DeviceBuilder::new().name(name).mtu(mtu);
        for prefix in prefixes {
            builder = match (own_address(prefix), prefix.length()) {
                (Some(IpAddr::V4(own)), length) => builder.ipv4(own, length, None),
                (Some(IpAddr::V6(own)), length) => builder.ipv6(own, length),
                (None, _) => return Err(io::ErrorKind::InvalidInput.into()),
            };
        }
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        #[expect(
            deprecated,
            reason = "the device has one file descriptor for as long as it exists; the successor is unsafe code"
        )]
        let device = AsyncFd::new(device)?;
        Ok(Self(device))
    }
}

fn own_address(prefix: &Prefix) -> Option<IpAddr> {
    super::address_pool::AddressPool::new(*prefix).map(|pool| pool.own())
}

impl PacketDevice for TunDevice {
    fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.0.get_ref().send(packet).map(drop)
    }

    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            if let Ok(received) = ready.try_io(|device| device.get_ref().recv(buffer)) {
                return Poll::Ready(received);
            }
        }
    }
}

impl std::fmt::Debug for TunDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TunDevice")
    }
}
