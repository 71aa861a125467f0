//! Named networks. Rates are at the lower end of what is typical, so that 20 MB take well under a
//! minute on each of them and still long enough to observe.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use swiftwater::link::{Buffer, Jitter, LinkConfig, LossModel, Trace, TraceUse};
use swiftwater::units::{Bandwidth, ByteCount};

use crate::link_args::Links;

/// A network that the demo emulates.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub enum Preset {
    /// 50 Mbit/s down, 10 up, RTT 24 ms, queue of 50 ms
    HomeBroadband,
    /// A synthetic LTE trace: 15 Mbit/s on average with fades, RTT 40 to 140 ms when the queue is empty
    Lte,
    /// 40 Mbit/s, RTT 4 ms with jitter, 5 % of packets lost each way
    LossyWifi,
    /// 30 Mbit/s down, 5 up, RTT 600 ms
    Satellite,
}

impl Preset {
    /// The name on the command line and in JSON.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::HomeBroadband => "home-broadband",
            Self::Lte => "lte",
            Self::LossyWifi => "lossy-wifi",
            Self::Satellite => "satellite",
        }
    }

    /// The display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::HomeBroadband => "home broadband",
            Self::Lte => "LTE trace",
            Self::LossyWifi => "lossy Wi-Fi 5 %",
            Self::Satellite => "satellite 600 ms",
        }
    }

    /// The links of the network; `seed` determines the LTE trace.
    pub fn links(self, seed: u64) -> Links {
        match self {
            Self::HomeBroadband => {
                let link = |mbps| wired(mbps, Duration::from_millis(12), Duration::from_millis(50));
                Links {
                    up: link(10),
                    down: link(50),
                }
            }
            Self::Lte => lte(seed),
            Self::LossyWifi => {
                let link = wired(40, Duration::from_millis(2), Duration::from_millis(60))
                    .jitter(Jitter::Uniform(Duration::from_millis(1)))
                    .loss(LossModel::Bernoulli(0.05));
                Links {
                    up: link.clone(),
                    down: link,
                }
            }
            Self::Satellite => {
                let link =
                    |mbps| wired(mbps, Duration::from_millis(300), Duration::from_millis(600));
                Links {
                    up: link(5),
                    down: link(30),
                }
            }
        }
    }
}

/// A link of constant rate whose queue drains in `queue`.
fn wired(mbps: u64, delay: Duration, queue: Duration) -> LinkConfig {
    let rate = Bandwidth::from_mbps(mbps);
    LinkConfig::default()
        .rate(rate)
        .delay(delay)
        .buffer(Buffer::Bytes(ByteCount::new(rate.bytes_in(queue))))
}

fn lte(seed: u64) -> Links {
    let trace = Trace::synthetic_lte(seed, Duration::from_secs(120));
    let delay_only = TraceUse {
        rate: false,
        delay: true,
        loss: false,
    };
    let queue = Buffer::Bytes(ByteCount::new(400_000));
    let down = LinkConfig::default().trace(
        &trace,
        TraceUse {
            rate: true,
            ..delay_only
        },
    );
    let up = LinkConfig::default()
        .rate(Bandwidth::from_mbps(8))
        .trace(&trace, delay_only);
    Links {
        up: up.buffer(queue),
        down: down.buffer(queue),
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

impl Serialize for Preset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}
