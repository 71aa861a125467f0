//! Tunnels for IP packets (RFC 9484): a network behind the proxy, of which each tunnel gets an address of each version.
//!
//! - [`IpNetwork`]: the network: the addresses for tunnels, and the device that packets go to and come from.
//! - `PacketDispatcher` hands packets of the device to tunnels by their destination; `PacketRules` says which packets pass.

mod address_pool;
mod icmp_budget;
mod network;
mod opening;
mod packet_dispatcher;
mod rules;
mod to_client;
mod tunnel;
mod tunnel_addresses;

pub use network::{IpNetwork, NetworkError, interface_addresses};

pub(super) use network::AttachedNetwork;
