//! Network interfaces of whole IP packets, which a tunnel for IP leads into or out of.
//!
//! - [`PacketDevice`]: such an interface; with the feature `tun` a `TunDevice` of Linux.

mod packet_device;
#[cfg(all(target_os = "linux", feature = "tun"))]
mod tun;

pub use packet_device::PacketDevice;
#[cfg(all(target_os = "linux", feature = "tun"))]
pub use tun::TunDevice;
