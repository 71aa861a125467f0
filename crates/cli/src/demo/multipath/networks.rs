//! The two emulated networks, and what happens to one of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use swiftwater::link::{Buffer, LinkConfig, Trace};
use swiftwater::net::relay::{Delivery, Direction, Relay, RelayConfig};
use swiftwater::units::{Bandwidth, ByteCount};
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use crate::commands::relay::change::{LegCondition, RelayFault};
use crate::exit::{Exit, Failure};

/// One of the two networks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkName {
    /// 20 Mbit/s, RTT 20 ms
    Wifi,
    /// 12 Mbit/s, RTT 50 ms
    Lte,
}

impl NetworkName {
    /// Both, in the order in which clients use them.
    pub const ALL: [Self; 2] = [Self::Wifi, Self::Lte];

    /// The address of the client's interface in this network.
    pub const fn interface(self) -> IpAddr {
        IpAddr::V4(match self {
            Self::Wifi => Ipv4Addr::LOCALHOST,
            Self::Lte => Ipv4Addr::new(127, 0, 0, 2),
        })
    }

    /// Each direction of it.
    fn link(self) -> LinkConfig {
        let rate = match self {
            Self::Wifi => Bandwidth::from_mbps(20),
            Self::Lte => Bandwidth::from_mbps(12),
        };
        self.link_of(rate, QUEUE).rate(rate)
    }

    /// The direction to the client where rates vary: 10 (Wi-Fi) and 6 Mbit/s in the mean.
    fn varying_link(self, seed: u64) -> LinkConfig {
        let (mean, trace) = match self {
            Self::Wifi => (10.0, Trace::synthetic_wifi(seed, VARIATION)),
            Self::Lte => (6.0, Trace::synthetic_lte(seed, VARIATION)),
        };
        let mean = Bandwidth::from_bps((mean * 1e6) as u64);
        let own = trace.mean_rate().map_or(1.0, Bandwidth::as_mbps_f64);
        let trace = trace.scaled(mean.as_mbps_f64() / own.max(f64::MIN_POSITIVE));
        self.link_of(mean, LONG_QUEUE).rate(trace)
    }

    /// A link with the delay of the network and a queue for so long at `rate`.
    fn link_of(self, rate: Bandwidth, queue: Duration) -> LinkConfig {
        let delay = match self {
            Self::Wifi => Duration::from_millis(10),
            Self::Lte => Duration::from_millis(25),
        };
        let queue = rate.bytes_in(queue);
        LinkConfig::default()
            .delay(delay)
            .buffer(Buffer::Bytes(ByteCount::new(queue)))
    }
}

impl fmt::Display for NetworkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wifi => "Wi-Fi",
            Self::Lte => "LTE",
        })
    }
}

/// Time in which a full queue drains.
const QUEUE: Duration = Duration::from_millis(60);

/// The same where rates vary, at the mean rate.
const LONG_QUEUE: Duration = Duration::from_millis(150);

/// Length of the traces of rates that vary, which repeat.
const VARIATION: Duration = Duration::from_secs(300);

/// How Wi-Fi fades before it is gone: so long before, so many packets are lost.
const FADE: [(Duration, f64); 4] = [
    (Duration::from_secs(1), 0.01),
    (Duration::from_millis(600), 0.03),
    (Duration::from_millis(300), 0.08),
    (Duration::from_millis(100), 0.2),
];

/// What happens to one of the networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Incident {
    /// Which.
    pub network: NetworkName,
    /// What.
    pub fault: RelayFault,
    /// Since the start of the jobs.
    pub at: Duration,
    /// When the network is as before.
    pub until: Duration,
}

impl Incident {
    /// The conditions of the network, with their times.
    fn course(&self) -> Vec<(Duration, LegCondition)> {
        let mut course = Vec::new();
        if (self.network, self.fault) == (NetworkName::Wifi, RelayFault::Cut) {
            for (before, loss) in FADE {
                let faded = LegCondition::default().after(RelayFault::Loss(loss));
                course.push((self.at.saturating_sub(before), faded));
            }
        }
        course.push((self.at, LegCondition::default().after(self.fault)));
        course.push((self.until, LegCondition::default()));
        course
    }
}

/// The networks between one client and one server.
pub(super) struct Networks {
    /// In the order of [`NetworkName::ALL`].
    relays: [Relay; 2],
}

impl Networks {
    /// Starts them towards `server`.
    pub(super) async fn start(server: SocketAddr, seed: u64) -> Result<Self, Failure> {
        Self::with(server, seed, NetworkName::link).await
    }

    /// The same with rates that vary towards the client, as `seed` has it.
    pub(super) async fn varying(server: SocketAddr, seed: u64) -> Result<Self, Failure> {
        Self::with(server, seed, move |network| network.varying_link(seed)).await
    }

    async fn with(
        server: SocketAddr,
        seed: u64,
        down: impl Fn(NetworkName) -> LinkConfig + Send + 'static,
    ) -> Result<Self, Failure> {
        let start = move || {
            let relay = |network: NetworkName| {
                Relay::start(RelayConfig {
                    up: network.link(),
                    down: down(network),
                    seed: seed ^ ((network as u64) << 32),
                    ..RelayConfig::new(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), server)
                })
            };
            let [wifi, lte] = NetworkName::ALL.map(relay);
            let (wifi, lte) = (wifi?, lte?);
            wifi.divert(NetworkName::Lte.interface(), &lte)?;
            for relay in [&wifi, &lte] {
                relay.record_deliveries();
            }
            Ok([wifi, lte])
        };
        let started = spawn_blocking(start).await;
        let relays = started
            .map_err(|error| Failure::new(Exit::Failure, error))?
            .map_err(|error: swiftwater::net::relay::RelayError| {
                Failure::new(Exit::Failure, error)
            })?;
        Ok(Self { relays })
    }

    /// Where the server appears to be, from either interface.
    pub(super) fn server(&self) -> SocketAddr {
        self.relays[0].local_addr()
    }

    /// Lets the incident happen, after `start`.
    pub(super) async fn suffer(&self, incident: &Incident, start: Instant) -> Result<(), Failure> {
        let relay = &self.relays[incident.network as usize];
        for (at, LegCondition { up, down }) in incident.course() {
            sleep_until((start + at).into()).await;
            let set = relay.set_conditions(up, down);
            set.map_err(|error| Failure::new(Exit::Failure, error))?;
        }
        Ok(())
    }

    /// What arrived at the client over each network since the last call: when, bytes.
    pub(super) fn take_arrivals(&self) -> [Vec<(Instant, usize)>; 2] {
        let down = |one: &Delivery| one.direction == Direction::Down;
        [&self.relays[0], &self.relays[1]].map(|relay| {
            let deliveries = relay.take_deliveries().into_iter().filter(down);
            deliveries.map(|one| (one.at, one.bytes)).collect()
        })
    }

    /// Joins their threads.
    pub(super) async fn stop(self) {
        let stop = move || self.relays.map(Relay::stop);
        let _ = spawn_blocking(stop).await;
    }
}
