//! A UDP relay that behaves like an emulated link, in real time.
//!
//! Clients send to the relay as if it were the server. Each gets a UDP socket of its own towards the
//! server, so that the server can distinguish them; all share one link up and one link down. Payloads
//! pass as they are (unless the link corrupts them), ECN codepoints too, and batches are taken
//! apart: the link sees every datagram.
//!
//! The relay runs in two threads of its own, so that busy applications in the same process don't
//! disturb the emulation. One reads sockets; the other sleeps until the links deliver, on the
//! system's high-resolution timers, and nothing spins. Scheduling and timer slack make datagrams a
//! fraction of a millisecond late: about 0.3 ms each way was measured on a virtual machine with two
//! busy cores.
//!
//! `tun` (Linux, with the feature of that name) puts whole IP packets on the same links.

mod flow;
mod hub;
mod shaper;
#[cfg(all(target_os = "linux", feature = "tun"))]
pub mod tun;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use swiftwater_link::{Counters, LinkCondition, LinkConfig, LinkConfigError};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::error::BindError;
use flow::Frame;
use shaper::Shaper;

pub use shaper::{Direction, Filter};

/// What a relay is made from.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Where clients send to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// The link from clients to server.
    pub up: LinkConfig,
    /// The link from server to clients.
    pub down: LinkConfig,
    /// Seed of everything random on the links.
    pub seed: u64,
    /// Clients at once; default 1024. A further one takes the place of the client for which nothing has
    /// passed for the longest time, a second at least: if that one comes back, the server sees it at a new port.
    /// If all are active, datagrams of further ones are dropped.
    pub max_clients: usize,
    /// A client that neither sends nor gets anything for this long is removed; default 60 s.
    pub client_timeout: Duration,
}

impl RelayConfig {
    /// A relay from `listen` to `to` over perfect links.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
            seed: 1,
            max_clients: 1024,
            client_timeout: Duration::from_secs(60),
        }
    }
}

/// A relay could not be started or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RelayError {
    /// A socket could not be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A link's configuration makes no sense.
    #[error("link {direction}: {source}")]
    Link {
        /// `up` or `down`.
        direction: &'static str,
        /// What is wrong.
        source: LinkConfigError,
    },
    /// The system refused a thread or an event queue.
    #[error("cannot start the relay: {0}")]
    Start(#[from] io::Error),
    /// The relay has stopped.
    #[error("the relay has stopped")]
    Stopped,
}

/// What a relay has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RelayCounters {
    /// Link from clients to server.
    pub up: Counters,
    /// Link from server to clients.
    pub down: Counters,
    /// Clients known now.
    pub clients: usize,
    /// Datagrams of clients beyond `max_clients`, dropped before the link.
    pub refused: u64,
    /// Datagrams that a socket did not take after the link.
    pub unsent: u64,
    /// Idle clients whose place was given to another.
    pub replaced: u64,
    /// Datagrams that the filter dropped before the links ([`Relay::set_filter`]).
    pub filtered: u64,
    /// Times that [`Relay::rebind`] was called.
    pub rebinds: u64,
}

/// A datagram that left a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// When it was passed to its receiver.
    pub at: std::time::Instant,
    /// Which way it went.
    pub direction: Direction,
    /// UDP payload, bytes.
    pub bytes: usize,
}

/// A running relay; it stops when dropped.
pub struct Relay {
    local: SocketAddr,
    shaper: Arc<Shaper<Frame>>,
    counts: Arc<Mutex<RelayCounts>>,
    commands: UnboundedSender<Command>,
    in_use: watch::Receiver<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// What the hub did besides relaying.
#[derive(Clone, Copy, Debug, Default)]
struct RelayCounts {
    clients: usize,
    refused: u64,
    replaced: u64,
    rebinds: u64,
}

/// What the hub can be asked to do.
enum Command {
    /// New sockets towards the server; the answer is the outcome.
    Rebind(mpsc::Sender<Result<(), BindError>>),
    /// Clients with this address use other links from now on.
    Divert(IpAddr, Arc<Shaper<Frame>>),
    Stop,
}

impl Relay {
    /// Starts a relay. May be called inside or outside an async runtime.
    pub fn start(config: RelayConfig) -> Result<Self, RelayError> {
        let shaper = Arc::new(Shaper::new(&config.up, &config.down, config.seed)?);
        let counts = Arc::<Mutex<RelayCounts>>::default();
        let (commands, inbox) = tokio::sync::mpsc::unbounded_channel();
        let (started, start) = mpsc::channel();
        let (using, in_use) = watch::channel(false);
        let mut threads = Vec::with_capacity(2);
        threads.push({
            let shaper = Arc::clone(&shaper);
            let counts = Arc::clone(&counts);
            thread::Builder::new()
                .name("relay-io".into())
                .spawn(move || {
                    hub::run(config, &shaper, counts, inbox, &started, using);
                    shaper.stop();
                })?
        });
        // The thread ends, and with it the channel, only after an answer or in a panic.
        let local = start.recv().map_err(|_| RelayError::Stopped)??;
        threads.push({
            let shaper = Arc::clone(&shaper);
            thread::Builder::new()
                .name("relay-link".into())
                .spawn(move || shaper.run())?
        });
        Ok(Self {
            local,
            shaper,
            counts,
            commands,
            in_use,
            threads,
        })
    }

    /// The address for clients to send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What became of the datagrams so far.
    pub fn counters(&self) -> RelayCounters {
        let tally = self.shaper.tally();
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        RelayCounters {
            up: tally.up,
            down: tally.down,
            clients: counts.clients,
            refused: counts.refused,
            replaced: counts.replaced,
            unsent: tally.unsent,
            filtered: tally.filtered,
            rebinds: counts.rebinds,
        }
    }

    /// Behaves like a NAT that lost its bindings: the server sees all clients at new ports from
    /// now on, and what it sends to the old ones is lost.
    pub fn rebind(&self) -> Result<(), RelayError> {
        let (answer, answered) = mpsc::channel();
        self.commands
            .send(Command::Rebind(answer))
            .map_err(|_| RelayError::Stopped)?;
        answered.recv().map_err(|_| RelayError::Stopped)??;
        Ok(())
    }

    /// Clients with the address `from` that send to this relay use the links of `other` from now on, as a host
    /// does whose interfaces lead to different networks. Clients that are known already stay on their links.
    pub fn divert(&self, from: IpAddr, other: &Self) -> Result<(), RelayError> {
        let divert = Command::Divert(from, Arc::clone(&other.shaper));
        self.commands.send(divert).map_err(|_| RelayError::Stopped)
    }

    /// Waits for the first datagram of a client, or returns at once if there was one; false if the relay stops
    /// before.
    pub async fn in_use(&self) -> bool {
        let mut in_use = self.in_use.clone();
        in_use.wait_for(|used| *used).await.is_ok()
    }

    /// What is wrong with both links for datagrams that come from now on.
    pub fn set_conditions(&self, up: LinkCondition, down: LinkCondition) -> Result<(), RelayError> {
        self.shaper.set_conditions(up, down)
    }

    /// From now on drops the datagrams for which `filter` returns false, before the links, or none: losses that depend on
    /// what a datagram is. It is called in the thread that reads sockets, in the order of arrival, and must not wait.
    pub fn set_filter(&self, filter: Option<Filter>) {
        self.shaper.set_filter(filter);
    }

    /// Records every delivery from now on, for [`Relay::take_deliveries`]: 40 bytes each.
    pub fn record_deliveries(&self) {
        self.shaper.record_deliveries();
    }

    /// The deliveries since the last call, in the order of time; none unless they are recorded.
    pub fn take_deliveries(&self) -> Vec<Delivery> {
        self.shaper.take_deliveries()
    }

    /// Stops the relay and waits, for a moment, until its threads have ended. What is on the links
    /// is lost.
    pub fn stop(mut self) -> RelayCounters {
        self.signal_stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
        self.counters()
    }

    fn signal_stop(&self) {
        // If there is no receiver any more it has stopped already.
        let _ = self.commands.send(Command::Stop);
        self.shaper.stop();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.signal_stop();
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

/// Receives whether the relay could start, and where it listens.
type Started = mpsc::Sender<Result<SocketAddr, RelayError>>;
