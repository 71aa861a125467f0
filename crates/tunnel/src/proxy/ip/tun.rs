//! A TUN device of Linux as the network of a proxy.

use std::io;
use std::task::{Context, Poll};

use tun_rs::{AsyncDevice, DeviceBuilder};

use super::device::PacketDevice;
use crate::policy::Prefix;

/// A TUN device, without offloads. Dropped, it is gone.
///
/// The kernel forwards what it gets only if `net.ipv4.ip_forward` or `net.ipv6.conf.all.forwarding` is set, and
/// answers find the way back only if the prefixes of the tunnels are routed to this machine, or translated.
pub struct TunDevice(AsyncDevice);

impl TunDevice {
    /// Makes a device of this name, and brings it up; the kernel gets the second address of each prefix, and routes the
    /// prefix to the device. `mtu` is the largest packet, bytes. Needs the capability to administer the network, and
    /// an async runtime.
    pub fn open(name: &str, prefixes: &[Prefix], mtu: u16) -> io::Result<Self> {
        let mut builder = DeviceBuilder::new().name(name).mtu(mtu);
        for prefix in prefixes {
            builder = match (own_address(prefix), prefix.length()) {
                (Some(std::net::IpAddr::V4(own)), length) => builder.ipv4(own, length, None),
                (Some(std::net::IpAddr::V6(own)), length) => builder.ipv6(own, length),
                (None, _) => return Err(io::ErrorKind::InvalidInput.into()),
            };
        }
        Ok(Self(builder.build_async()?))
    }
}

fn own_address(prefix: &Prefix) -> Option<std::net::IpAddr> {
    super::address_pool::AddressPool::new(*prefix).map(|pool| pool.own())
}

impl PacketDevice for TunDevice {
    fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.0.try_send(packet).map(drop)
    }

    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, buffer)
    }
}

impl std::fmt::Debug for TunDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TunDevice")
    }
}
