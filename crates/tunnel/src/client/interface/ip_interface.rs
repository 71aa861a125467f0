//! A TUN device with the addresses and routes of a tunnel.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rtnetlink::packet_route::route::RouteMessage;
use thiserror::Error;
use tokio::select;
use tokio::time::{MissedTickBehavior, interval};

use super::kernel::Kernel;
use super::routing::WantedRoutes;
use crate::client::{FromIpTunnel, IpSender, IpTunnel, SendPacketError, TunnelError};
use crate::device::{PacketDevice, TunDevice};
use crate::ip::{MAX_PACKET, MIN_IPV6_MTU};
use crate::policy::Prefix;

/// The largest MTU of the interface, bytes: that of Ethernet, also where the tunnel carries more.
const MAX_MTU: u16 = 1500;

/// The MTU until the one of the tunnel is known, bytes: the least with IPv6 ([`MIN_IPV6_MTU`]).
const FIRST_MTU: u16 = 1280;

/// How often the MTU follows that of the tunnel.
const MTU_INTERVAL: Duration = Duration::from_secs(1);

/// A network interface of this machine, a TUN device, whose packets pass through a tunnel.
///
/// It has the addresses that the proxy assigned, and the kernel routes to it what the proxy advertises and is wanted.
/// Before that, each address of the proxy that would be routed into the tunnel gets a route of its own, the one that it
/// had, so that the tunnel does not lead into itself. [`close`](Self::close) removes those; all others end with the
/// device, when this is dropped.
pub struct IpInterface {
    device: Arc<TunDevice>,
    index: u32,
    kernel: Kernel,
    wanted: WantedRoutes,
    proxy: Vec<IpAddr>,
    pinned: Vec<RouteMessage>,
    state: InterfaceState,
    /// Whether the tunnel carried packets of IPv6 when its state was applied.
    carried_ipv6: bool,
    counters: Arc<Counters>,
}

/// What an interface has.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InterfaceState {
    /// Its addresses. One of IPv4 that the tunnel does not have any more stays as long as there are routes of IPv4 and no
    /// other address, since the kernel would remove them.
    pub addresses: Vec<IpAddr>,
    /// What the kernel routes to it.
    pub routes: Vec<Prefix>,
    /// Its MTU, bytes.
    pub mtu: u16,
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct InterfaceStats {
    /// Packets of this machine that were sent into the tunnel.
    pub sent: u64,
    /// Packets out of the tunnel that the kernel got.
    pub received: u64,
    /// Packets of either direction that were dropped.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
}

/// Why there is no interface, or none any more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// The device can't be made.
    #[error("cannot make the TUN device {name}: {source}{}", hint(source))]
    Device {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The device failed.
    #[error("the TUN device failed: {0}")]
    Failed(#[source] io::Error),
    /// The kernel's tables can't be reached.
    #[error("cannot change addresses and routes: {0}")]
    Kernel(#[source] io::Error),
    /// The kernel does not take an address.
    #[error("cannot give the interface the address {address}: {source}")]
    Address {
        /// The address.
        address: IpAddr,
        /// Why.
        source: io::Error,
    },
    /// The kernel does not take a route.
    #[error("cannot route {prefix} into the tunnel: {source}")]
    Route {
        /// The destinations.
        prefix: Prefix,
        /// Why.
        source: io::Error,
    },
    /// The way to the proxy itself can't be kept out of the tunnel.
    #[error(
        "the way to the proxy at {address} would lead into the tunnel, and a route of its own failed: {source}"
    )]
    Proxy {
        /// The address of the proxy.
        address: IpAddr,
        /// Why.
        source: io::Error,
    },
    /// The proxy advertises too many routes.
    #[error("the proxy advertises too many routes; name those that are wanted")]
    ManyRoutes,
    /// The proxy advertises no route that is wanted.
    #[error("the proxy advertises none of the wanted routes")]
    NoRoutes,
    /// The tunnel ended.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; it needs root, or the capability CAP_NET_ADMIN",
        io::ErrorKind::NotFound => "; is the kernel module tun loaded, and /dev/net/tun there?",
        _ => "",
    }
}

impl IpInterface {
    /// Makes a TUN device of this name, which has nothing yet. `proxy` are the addresses of the proxy. Needs the
    /// capability to administer the network, and an async runtime.
    pub fn open(
        name: &str,
        wanted: WantedRoutes,
        proxy: &[IpAddr],
    ) -> Result<Self, InterfaceError> {
        let device = TunDevice::open(name, &[], FIRST_MTU);
        let device = device.map_err(|source| InterfaceError::Device {
            name: name.to_owned(),
            source,
        })?;
        Ok(Self {
            index: device.index().map_err(InterfaceError::Failed)?,
            device: Arc::new(device),
            kernel: Kernel::new().map_err(InterfaceError::Kernel)?,
            wanted,
            proxy: proxy.to_vec(),
            pinned: Vec::new(),
            state: InterfaceState {
                mtu: FIRST_MTU,
                ..InterfaceState::default()
            },
            carried_ipv6: false,
            counters: Arc::default(),
        })
    }

    /// Waits until the tunnel has addresses and routes, and gives the interface what it needs; a new tunnel in place of
    /// one that has ended, too. What the interface routed before, and the proxy still advertises, is routed to it all the
    /// time, so that nothing leaves by another interface. Fails if none of the routes is wanted.
    pub async fn configure(&mut self, tunnel: &mut IpTunnel) -> Result<(), InterfaceError> {
        tunnel.configured().await?;
        self.apply(&tunnel.sender()).await?;
        if self.state.routes.is_empty() {
            return Err(InterfaceError::NoRoutes);
        }
        Ok(())
    }

    /// Forwards packets until the tunnel ends or the device fails. Changes of addresses, routes and MTU are applied.
    pub async fn run(&mut self, tunnel: &mut IpTunnel) -> InterfaceError {
        let sender = tunnel.sender();
        let (device, counters) = (Arc::clone(&self.device), Arc::clone(&self.counters));
        select! {
            error = into_tunnel(&device, &sender, &counters) => error,
            error = self.out_of_tunnel(tunnel) => error,
        }
    }

    /// What it has.
    pub fn state(&self) -> &InterfaceState {
        &self.state
    }

    /// Counters since it was opened.
    pub fn stats(&self) -> InterfaceStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        InterfaceStats {
            sent: read(&self.counters.sent),
            received: read(&self.counters.received),
            dropped: read(&self.counters.dropped),
        }
    }

    /// Removes the routes of the proxy's addresses. Afterwards it is to be dropped.
    pub async fn close(&mut self) {
        for route in std::mem::take(&mut self.pinned) {
            // It may be gone with its interface.
            let _ = self.kernel.remove(route).await;
        }
    }

    async fn out_of_tunnel(&mut self, tunnel: &mut IpTunnel) -> InterfaceError {
        let mut look = interval(MTU_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sender = tunnel.sender();
        loop {
            let changed = select! {
                received = tunnel.recv() => match received {
                    Ok(FromIpTunnel::Packet(packet)) => {
                        let taken = self.device.send(&packet).is_ok();
                        let counters = &self.counters;
                        count(if taken { &counters.received } else { &counters.dropped });
                        continue;
                    }
                    Ok(_) => self.apply(&sender).await,
                    Err(error) => Err(error.into()),
                },
                // Addresses of IPv6 wait for an MTU that is large enough.
                _ = look.tick() => match self.follow_mtu(&sender) {
                    Ok(false) if carries_ipv6(&sender) == self.carried_ipv6 => continue,
                    Ok(_) => self.apply(&sender).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = changed {
                return error;
            }
        }
    }

    /// Makes the interface what the proxy said.
    async fn apply(&mut self, sender: &IpSender) -> Result<(), InterfaceError> {
        self.follow_mtu(sender)?;
        // The kernel takes addresses of IPv6 only with an MTU that is large enough, which the tunnel then needs as well.
        let has_ipv6 = carries_ipv6(sender);
        self.carried_ipv6 = has_ipv6;
        let mut assigned = sender.addresses();
        assigned.retain(|own| has_ipv6 || own.address().is_ipv4());
        let addresses: Vec<IpAddr> = assigned.iter().map(own_address).collect();
        // A version of IP that had routes keeps them while a new tunnel has no address of it yet, or none at all: what is
        // routed to the interface does not leave by another one because the tunnel is a new one.
        let versions = self.state.routes.iter().map(Prefix::address);
        let versions: Vec<IpAddr> = versions.chain(addresses.iter().copied()).collect();
        let routes = self.wanted.of(&sender.routes(), &versions);
        let routes = routes.ok_or(InterfaceError::ManyRoutes)?;
        let index = self.index;
        // New ones come first: with its last address of IPv4 an interface loses the routes of IPv4, and what is sent
        // between would leave by another interface.
        for &address in &addresses {
            if self.state.addresses.contains(&address) {
                continue;
            }
            let added = self.kernel.add_address(index, address).await;
            added.map_err(|source| InterfaceError::Address { address, source })?;
            self.state.addresses.push(address);
        }
        self.keep_proxy_outside(&routes).await?;
        for &prefix in &routes {
            if self.state.routes.contains(&prefix) {
                continue;
            }
            let added = self.kernel.add_route(index, prefix).await;
            added.map_err(|source| InterfaceError::Route { prefix, source })?;
            self.state.routes.push(prefix);
        }
        for &prefix in self.state.routes.iter().filter(|it| !routes.contains(it)) {
            let _ = self.kernel.remove_route(index, prefix).await;
        }
        self.state.routes = routes;
        let is_ipv4 = |address: &IpAddr| address.is_ipv4();
        let needs_ipv4 = self.state.routes.iter().any(|it| it.address().is_ipv4())
            && !addresses.iter().any(is_ipv4);
        let old = std::mem::replace(&mut self.state.addresses, addresses);
        for address in old {
            if self.state.addresses.contains(&address) {
                continue;
            }
            if needs_ipv4 && address.is_ipv4() {
                // Nothing can be sent from it, but the routes stay.
                self.state.addresses.push(address);
            } else {
                let _ = self.kernel.remove_address(index, address).await;
            }
        }
        Ok(())
    }

    /// Gives each address of the proxy that `routes` have a route of its own.
    async fn keep_proxy_outside(&mut self, routes: &[Prefix]) -> Result<(), InterfaceError> {
        let (within, others): (Vec<IpAddr>, Vec<IpAddr>) =
            (self.proxy.iter()).partition(|&&it| routes.iter().any(|route| route.contains(it)));
        for address in within {
            let pinned = self.kernel.pin(address).await;
            let pinned = pinned.map_err(|source| InterfaceError::Proxy { address, source })?;
            self.pinned.extend(pinned);
        }
        // Those have theirs now.
        self.proxy = others;
        Ok(())
    }

    /// Makes the MTU that of the tunnel; true if it was another.
    fn follow_mtu(&mut self, sender: &IpSender) -> Result<bool, InterfaceError> {
        let mtu = u16::try_from(sender.max_packet()).unwrap_or(MAX_MTU);
        let mut mtu = mtu.min(MAX_MTU);
        if self.state.routes.iter().any(|it| it.address().is_ipv6()) {
            // With less the kernel takes the routes of IPv6 away.
            mtu = mtu.max(FIRST_MTU);
        }
        let is_other = mtu != self.state.mtu;
        if is_other {
            self.device.set_mtu(mtu).map_err(InterfaceError::Failed)?;
            self.state.mtu = mtu;
        }
        Ok(is_other)
    }
}

async fn into_tunnel(device: &TunDevice, sender: &IpSender, counters: &Counters) -> InterfaceError {
    let mut buffer = vec![0; MAX_PACKET];
    loop {
        let packet = match device.receive(&mut buffer).await {
            Ok(len) => &buffer[..len.min(MAX_PACKET)],
            Err(error) => return InterfaceError::Failed(error),
        };
        match sender.send(packet).await {
            Ok(()) => count(&counters.sent),
            Err(error) => {
                count(&counters.dropped);
                if let SendPacketError::Forwarding {
                    reply: Some(reply), ..
                } = error
                {
                    // As all ICMP it may be lost.
                    let _ = device.send(&reply);
                }
            }
        }
    }
}

/// Whether the tunnel carries packets of IPv6 at present.
fn carries_ipv6(sender: &IpSender) -> bool {
    sender.max_packet() >= MIN_IPV6_MTU
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// An address of an assigned prefix: the one that the proxy wrote, or the second of a whole prefix, as the first stands
/// for the prefix itself.
fn own_address(assigned: &Prefix) -> IpAddr {
    let (first, last) = (assigned.first(), assigned.last());
    if assigned.address() != first || first == last {
        return assigned.address();
    }
    match first {
        IpAddr::V4(v4) => std::net::Ipv4Addr::from_bits(v4.to_bits() | 1).into(),
        IpAddr::V6(v6) => std::net::Ipv6Addr::from_bits(v6.to_bits() | 1).into(),
    }
}

impl std::fmt::Debug for IpInterface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpInterface")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
