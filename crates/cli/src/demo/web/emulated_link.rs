//! The emulated link between the ends of a visit, and the location of each end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use serde::Serialize;
use swiftwater::link::Counters;
use swiftwater::net::relay::{Relay, RelayConfig};

#[cfg(target_os = "linux")]
use swiftwater::net::relay::tun::{Site, TunError, TunRelay, TunRelayConfig};

#[cfg(target_os = "linux")]
use crate::exit::plain_io_error;
use crate::exit::{Exit, Failure};
use crate::link_args::Links;

/// How packets traverse the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// As IP packets, TCP and UDP alike.
    Tun,
    /// As UDP datagrams only.
    UdpRelay,
}

impl LinkKind {
    /// Description.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Tun => "IP packets between two network namespaces",
            Self::UdpRelay => "UDP datagrams on loopback",
        }
    }
}

/// The best kind on this system; and if that is not [`LinkKind::Tun`], the reason.
pub fn best_way() -> (LinkKind, Option<String>) {
    match try_tun() {
        Ok(()) => (LinkKind::Tun, None),
        Err(why) => (LinkKind::UdpRelay, Some(why)),
    }
}

#[cfg(target_os = "linux")]
fn try_tun() -> Result<(), String> {
    match TunRelay::start(&TunRelayConfig::default()) {
        Ok(_) => Ok(()),
        Err(TunError::Namespace(error)) => {
            Err(format!("no network namespace: {}", plain_io_error(&error)))
        }
        Err(TunError::Device(error)) => Err(format!("no TUN device: {}", plain_io_error(&error))),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(target_os = "linux"))]
fn try_tun() -> Result<(), String> {
    Err("network namespaces are Linux's".to_owned())
}

/// A link without endpoints so far.
pub(super) enum EmulatedLink {
    /// Both ends in separate namespaces.
    #[cfg(target_os = "linux")]
    Tun(TunRelay),
    /// Both ends on the loopback interface; the relay is created when the server's port is known.
    Udp {
        links: Box<Links>,
        seed: u64,
        relay: Option<Relay>,
    },
}

/// One end of an emulated link.
pub(super) enum LinkEnd {
    #[cfg(target_os = "linux")]
    Site(Site),
    Here,
}

impl EmulatedLink {
    pub(super) fn lay(way: LinkKind, links: Links, seed: u64) -> Result<Self, Failure> {
        #[cfg(target_os = "linux")]
        if way == LinkKind::Tun {
            let config = TunRelayConfig {
                up: links.up,
                down: links.down,
                seed,
            };
            let relay = TunRelay::start(&config);
            return relay
                .map(Self::Tun)
                .map_err(|error| Failure::new(Exit::Failure, error));
        }
        debug_assert_eq!(way, LinkKind::UdpRelay, "the only one here");
        Ok(Self::Udp {
            links: Box::new(links),
            seed,
            relay: None,
        })
    }

    /// Location of the server.
    pub(super) fn server(&self) -> LinkEnd {
        match self {
            #[cfg(target_os = "linux")]
            Self::Tun(relay) => LinkEnd::Site(relay.server().clone()),
            Self::Udp { .. } => LinkEnd::Here,
        }
    }

    /// Location of the client.
    pub(super) fn client(&self) -> LinkEnd {
        match self {
            #[cfg(target_os = "linux")]
            Self::Tun(relay) => LinkEnd::Site(relay.client().clone()),
            Self::Udp { .. } => LinkEnd::Here,
        }
    }

    /// Where the client reaches the server that listens on `server`.
    pub(super) fn open(&mut self, server: SocketAddr) -> Result<SocketAddr, Failure> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Tun(_) => Ok(server),
            Self::Udp { links, seed, relay } => {
                let config = RelayConfig {
                    up: links.up.clone(),
                    down: links.down.clone(),
                    seed: *seed,
                    ..RelayConfig::new((Ipv4Addr::LOCALHOST, 0).into(), server)
                };
                let started =
                    Relay::start(config).map_err(|error| Failure::new(Exit::Failure, error))?;
                let address = started.local_addr();
                *relay = Some(started);
                Ok(address)
            }
        }
    }

    /// Bytes put on the links, up and down.
    pub(super) fn counters(&self) -> [Counters; 2] {
        match self {
            #[cfg(target_os = "linux")]
            Self::Tun(relay) => {
                let counters = relay.counters();
                [counters.up, counters.down]
            }
            Self::Udp { relay, .. } => relay.as_ref().map_or_else(Default::default, |relay| {
                let counters = relay.counters();
                [counters.up, counters.down]
            }),
        }
    }

    /// Stops it, and waits until its threads have ended.
    pub(super) fn close(self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Tun(relay) => drop(relay.stop()),
            Self::Udp { relay, .. } => drop(relay.map(Relay::stop)),
        }
    }
}

impl LinkEnd {
    pub(super) fn address(&self) -> IpAddr {
        match self {
            #[cfg(target_os = "linux")]
            Self::Site(site) => site.address().into(),
            Self::Here => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Runs `work` in a thread at this location.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<LinkThread<T>, Failure> {
        let handle = match self {
            #[cfg(target_os = "linux")]
            Self::Site(site) => site.spawn(name, work)?,
            Self::Here => thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || Ok(work()))?,
        };
        Ok(LinkThread(handle))
    }
}

/// A thread at some location.
pub(super) struct LinkThread<T>(JoinHandle<io::Result<T>>);

impl<T> LinkThread<T> {
    /// Waits for its result.
    pub(super) fn result(self) -> Result<T, Failure> {
        let Ok(result) = self.0.join() else {
            // The panic was reported separately.
            return Err(Failure::new(Exit::Failure, "a thread panicked"));
        };
        Ok(result?)
    }
}
