//! The TUN devices.

use std::io;
use std::net::Ipv4Addr;

use tun_rs::{DeviceBuilder, SyncDevice};

use super::MTU;
use crate::relay::shaper::Direction;

/// Both addresses are in one net of this length.
const PREFIX: u8 = 30;

/// Packets that wait at most until the relay reads them. So many that the links decide what is dropped
/// and not the device.
const QUEUE: u32 = 10_000;

/// Makes a device in the network namespace of the calling thread, and brings it up.
pub(super) fn open(address: Ipv4Addr) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new()
        .name("link0")
        .ipv4(address, PREFIX, None)
        .mtu(MTU)
        .build_sync()?;
    // The kernel permits this to root only; others keep its queue of 500, which the relay empties as
    // fast as it fills.
    let _ = device.set_tx_queue_len(QUEUE);
    device.set_nonblocking(true)?;
    Ok(device)
}

/// The devices of both sites.
pub(super) struct Ends {
    pub(super) client: SyncDevice,
    pub(super) server: SyncDevice,
}

impl Ends {
    /// What packets in `direction` come from.
    pub(super) fn source(&self, direction: Direction) -> &SyncDevice {
        match direction {
            Direction::Up => &self.client,
            Direction::Down => &self.server,
        }
    }

    /// Hands a packet that has crossed the link over to the other side's kernel.
    pub(super) fn send(&self, direction: Direction, packet: &[u8]) -> io::Result<()> {
        let device = match direction {
            Direction::Up => &self.server,
            Direction::Down => &self.client,
        };
        device.send(packet).map(drop)
    }
}
