//! Tunnels for IP packets (RFC 9484): a network behind the proxy, of which each tunnel gets an address of each version.
//!
//! - [`IpNetwork`]: the network: the addresses for tunnels, and the device that packets go to and come from.
//! - [`PacketDevice`]: such a device; with the feature `tun` a TUN device of Linux.
//! - `Exchange` hands packets of the device to tunnels by their destination; `PacketRules` says which packets pass.

mod address_pool;
mod device;
mod exchange;
mod icmp_budget;
mod network;
mod opening;
mod rules;
mod to_client;
#[cfg(all(target_os = "linux", feature = "tun"))]
mod tun;
mod tunnel;
mod tunnel_addresses;

pub use device::PacketDevice;
pub use network::{IpNetwork, NetworkError};
#[cfg(all(target_os = "linux", feature = "tun"))]
pub use tun::TunDevice;

pub(super) use exchange::Exchange;
