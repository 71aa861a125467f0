//! A network interface of this machine that leads into a tunnel for IP packets (Linux, feature `tun`).
//!
//! - [`IpInterface`]: a TUN device with the addresses and routes of a tunnel.
//! - `routing`: which destinations are routed to it; `kernel`: addresses and routes of the kernel.

mod ip_interface;
mod kernel;
mod routing;

pub use ip_interface::{InterfaceError, InterfaceState, InterfaceStats, IpInterface};
pub use routing::WantedRoutes;
