//! The networks behind routes that proxy IP: a TUN device for each name, kept over reloads of the configuration.

use std::sync::{Arc, Mutex, PoisonError};

use swiftwater_tunnel::policy::Prefix;
use swiftwater_tunnel::proxy::IpNetwork;

use super::config::tunnels::Tunnels;
use crate::exit::{Exit, Failure};

/// The networks that were opened. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct IpNetworks {
    /// Whether none is to be opened.
    is_check: bool,
    opened: Arc<Mutex<Vec<Opened>>>,
}

#[derive(Debug)]
struct Opened {
    device: String,
    pools: Vec<Prefix>,
    network: IpNetwork,
}

impl IpNetworks {
    /// Opens nothing.
    pub(super) fn for_check() -> Self {
        Self {
            is_check: true,
            ..Self::default()
        }
    }

    /// The network of a route; `None` if it has none, or this is a check. A device is opened when the first route needs
    /// it, and has the same addresses until the process ends.
    pub(super) fn network(&self, route: &Tunnels) -> Result<Option<IpNetwork>, Failure> {
        let (device, pools) = (route.device(), route.pools());
        if pools.is_empty() || self.is_check {
            return Ok(None);
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = opened.iter().find(|it| it.device == device) {
            if other.pools == pools {
                return Ok(Some(other.network.clone()));
            }
            return Err(Failure::new(
                Exit::Usage,
                format_args!(
                    "ip_pool of the TUN device {device} differs from the one in use; that needs a restart"
                ),
            ));
        }
        let network = open(device, &pools)?;
        opened.push(Opened {
            device: device.to_owned(),
            pools,
            network: network.clone(),
        });
        Ok(Some(network))
    }
}

#[cfg(target_os = "linux")]
fn open(device: &str, pools: &[Prefix]) -> Result<IpNetwork, Failure> {
    use swiftwater_tunnel::device::TunDevice;
    use swiftwater_tunnel::proxy::interface_addresses;

    use crate::exit::plain_io_error;

    /// The largest packet, bytes: that of Ethernet. Tunnels that carry less say so with ICMP.
    const MTU: u16 = 1500;

    let wrong = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error);
    let own = interface_addresses(pools).map_err(|error| wrong(&error))?;
    let opened = TunDevice::open(device, &own, MTU).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "; it needs root, or the capability CAP_NET_ADMIN"
            }
            _ => "",
        };
        let why = plain_io_error(&error);
        Failure::new(
            Exit::Failure,
            format_args!("cannot make the TUN device {device}: {why}{hint}"),
        )
    })?;
    for (is_ipv4, file, setting) in [
        (true, "/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"),
        (
            false,
            "/proc/sys/net/ipv6/conf/all/forwarding",
            "net.ipv6.conf.all.forwarding",
        ),
    ] {
        let is_wanted = pools.iter().any(|pool| pool.address().is_ipv4() == is_ipv4);
        let forwards = std::fs::read_to_string(file).is_ok_and(|value| value.trim() != "0");
        if is_wanted && !forwards {
            tracing::warn!("packets of IP tunnels reach only this machine: {setting} is not set");
        }
    }
    IpNetwork::new(opened, pools).map_err(|error| wrong(&error))
}

#[cfg(not(target_os = "linux"))]
fn open(_: &str, _: &[Prefix]) -> Result<IpNetwork, Failure> {
    Err(Failure::new(
        Exit::Usage,
        "ip_pool needs a TUN device of Linux",
    ))
}
