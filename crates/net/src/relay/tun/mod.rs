//! A relay below IP: whole packets cross the emulated links, so that the kernel's TCP and any UDP
//! program meet equal impairments.
//!
//! ```text
//! client's namespace: tun --Up--> relay's links --> tun :server's namespace
//!                     tun <------ relay's links <--Down-- tun
//! ```
//!
//! Each end is a [`Site`]: a network namespace with one TUN device and one IPv4 address. Both
//! namespaces belong to threads and file descriptors of this process and to nothing else: whatever ends
//! it, they are gone with it. Sockets, runtimes and children made in a thread of [`Site::spawn`] are at
//! that site.
//!
//! The links are those of [`Relay`](super::Relay) and draw the same random numbers from the same seed.
//! They see IPv4 packets as the kernel sends them, headers included and without offloads, up to [`MTU`];
//! whatever else comes (IPv6 announcements, say) is dropped before them. So is what a [`Policer`] of TCP or UDP does
//! not let pass.

mod device;
mod frame;
mod packet;
mod policer;
mod privilege;
mod reader;
mod site;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use swiftwater_link::{Counters, LinkConfig};
use thiserror::Error;
use tun_rs::InterruptEvent;

use self::device::Ends;
use self::frame::IpFrame;
use self::policer::Policers;
pub use self::policer::{IpProtocol, Policer};
pub use self::privilege::own_user_namespace;
pub use self::site::Site;
use super::RelayError;
use super::shaper::{Direction, Shaper};

/// Largest packet, IP header included, in bytes.
pub const MTU: u16 = 1500;

/// The client's address, one of those set aside for measurements (RFC 2544, appendix C.2.2).
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The server's.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// What a relay of IP packets is made from.
#[derive(Clone, Debug, Default)]
pub struct TunRelayConfig {
    /// The link from client to server. Its `per_packet_overhead` is not used: packets have their
    /// headers with them.
    pub up: LinkConfig,
    /// The link from server to client, likewise.
    pub down: LinkConfig,
    /// Seed of everything random on the links.
    pub seed: u64,
}

/// Why there is no relay of IP packets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TunError {
    /// Network namespaces need root, or a user namespace ([`own_user_namespace`]).
    #[error("no network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// `/dev/net/tun` is missing or closed to us.
    #[error("no TUN device: {0}")]
    Device(#[source] io::Error),
    /// A link's configuration, or a thread that could not start.
    #[error(transparent)]
    Relay(#[from] RelayError),
}

/// What a relay of IP packets has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct TunCounters {
    /// Link from client to server.
    pub up: Counters,
    /// Link from server to client.
    pub down: Counters,
    /// What was no IPv4 packet, dropped before the links.
    pub refused: u64,
    /// Packets that a device did not take after the links.
    pub unsent: u64,
}

/// A running relay between two sites. Dropped, it stops; the sites live as long as their sockets do.
pub struct TunRelay {
    client: Site,
    server: Site,
    shaper: Arc<Shaper<IpFrame>>,
    policers: Arc<Policers>,
    refused: Arc<AtomicU64>,
    stop: Arc<InterruptEvent>,
    threads: Vec<JoinHandle<()>>,
}

impl TunRelay {
    /// Makes both sites and starts the relay. Blocks for some milliseconds; may be called inside or
    /// outside an async runtime.
    pub fn start(config: &TunRelayConfig) -> Result<Self, TunError> {
        let bare = |link: &LinkConfig| LinkConfig {
            per_packet_overhead: 0,
            ..link.clone()
        };
        let (up, down) = (bare(&config.up), bare(&config.down));
        let shaper = Arc::new(Shaper::new(&up, &down, config.seed)?);
        let (client, client_device) = Site::make(CLIENT)?;
        let (server, server_device) = Site::make(SERVER)?;
        let ends = Arc::new(Ends {
            client: client_device,
            server: server_device,
        });
        let mut relay = Self {
            client,
            server,
            shaper: Arc::clone(&shaper),
            policers: Arc::default(),
            refused: Arc::default(),
            stop: Arc::new(InterruptEvent::new().map_err(RelayError::Start)?),
            threads: Vec::with_capacity(3),
        };
        for direction in [Direction::Up, Direction::Down] {
            let ends = Arc::clone(&ends);
            let shaper = Arc::clone(&shaper);
            let policers = Arc::clone(&relay.policers);
            let refused = Arc::clone(&relay.refused);
            let stop = Arc::clone(&relay.stop);
            let reading = named("tun-read").spawn(move || {
                if let Err(error) =
                    reader::run(&ends, direction, &shaper, &policers, &refused, &stop)
                {
                    tracing::error!(%error, "a TUN device can't be read");
                }
            });
            relay.threads.push(reading.map_err(RelayError::Start)?);
        }
        let delivering = named("tun-link").spawn(move || shaper.run());
        relay.threads.push(delivering.map_err(RelayError::Start)?);
        Ok(relay)
    }

    /// Where clients belong.
    pub fn client(&self) -> &Site {
        &self.client
    }

    /// Where servers belong.
    pub fn server(&self) -> &Site {
        &self.server
    }

    /// Treats packets of a protocol like this from now on, both ways. What it drops is counted nowhere.
    pub fn police(&self, protocol: IpProtocol, policer: Policer) {
        self.policers
            .set(protocol, policer, self.shaper.clock.now());
    }

    /// What became of the packets so far.
    pub fn counters(&self) -> TunCounters {
        let tally = self.shaper.tally();
        TunCounters {
            up: tally.up,
            down: tally.down,
            refused: self.refused.load(Ordering::Relaxed),
            unsent: tally.unsent,
        }
    }

    /// Stops the relay and waits, for a moment, until its threads have ended. What is on the links is
    /// lost.
    pub fn stop(mut self) -> TunCounters {
        self.signal_stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
        self.counters()
    }

    fn signal_stop(&self) {
        if let Err(error) = self.stop.trigger() {
            tracing::error!(%error, "the threads of a relay can't be stopped");
        }
        self.shaper.stop();
    }
}

impl Drop for TunRelay {
    fn drop(&mut self) {
        self.signal_stop();
    }
}

impl fmt::Debug for TunRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunRelay")
            .field("client", &self.client)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A thread to be started.
fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}
