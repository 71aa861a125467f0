//! A TUN device of Linux.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::packet_device::PacketDevice;
use crate::policy::Prefix;

/// A TUN device, without offloads. Dropped, it is gone, and with it its addresses and routes.
pub struct TunDevice(AsyncFd<SyncDevice>);

impl TunDevice {
    /// Makes a device of this name, and brings it up. The kernel gets these addresses, each with a route of its prefix
    /// to the device. `mtu` is the largest packet, bytes. Needs the capability to administer the network, and an async
    /// runtime.
    pub fn open(name: &str, addresses: &[Prefix], mtu: u16) -> io::Result<Self> {
        let mut builder = DeviceBuilder::new().name(name).mtu(mtu);
        for address in addresses {
            builder = match address.address() {
                IpAddr::V4(own) => builder.ipv4(own, address.length(), None),
                IpAddr::V6(own) => builder.ipv6(own, address.length()),
            };
        }
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        accept_own_addresses(&device);
        #[expect(
            deprecated,
            reason = "the device has one file descriptor for as long as it exists; the successor is unsafe code"
        )]
        let device = AsyncFd::new(device)?;
        Ok(Self(device))
    }

    /// Changes the largest packet, bytes.
    pub fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        self.0.get_ref().set_mtu(mtu)
    }

    /// Its index among the network interfaces.
    pub fn index(&self) -> io::Result<u32> {
        self.0.get_ref().if_index()
    }

    /// Receives the next packet, of the kernel, into `buffer`; its length, bytes.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_receive(cx, buffer)).await
    }
}

/// Makes the kernel take packets from the device's own address: errors (ICMP) of the proxy come out of the device, and the
/// kernel drops such packets of IPv4 otherwise.
fn accept_own_addresses(device: &SyncDevice) {
    let Ok(name) = device.name() else { return };
    let setting = format!("/proc/sys/net/ipv4/conf/{name}/accept_local");
    if let Err(error) = std::fs::write(setting, "1") {
        tracing::warn!(
            %error,
            "net.ipv4.conf.{name}.accept_local can't be set: ICMP errors about IPv4 don't leave the machine"
        );
    }
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
