//! What the network is like during a session, and what happens to it.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use swiftwater::link::{Buffer, LinkConfig, LossModel};
use swiftwater::units::{Bandwidth, ByteCount};

/// Rate of each direction.
const RATE: Bandwidth = Bandwidth::from_mbps(10);

/// Delay of each direction: usual, and where the network is long.
const DELAY: Duration = Duration::from_millis(20);
const LONG_DELAY: Duration = Duration::from_millis(150);

/// Share of packets lost in each direction where the network is lossy.
const LOSS: f64 = 0.03;

/// The rate that a protocol is limited to where it is throttled.
const THROTTLED: Bandwidth = Bandwidth::from_kbps(256);

/// Time in which a full queue drains.
const QUEUE: Duration = Duration::from_millis(100);

/// A network and what happens to it. In the middle: from a third of the session to two thirds.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// Nothing happens: 10 Mbit/s, RTT 40 ms
    Clean,
    /// UDP is limited to 256 kbit/s in the middle
    UdpThrottled,
    /// UDP is blocked from the start
    UdpBlocked,
    /// UDP is blocked from a third of the session on
    UdpCut,
    /// 3 % of all packets are lost
    Lossy,
    /// RTT 300 ms
    Long,
    /// TCP is limited to 256 kbit/s in the middle
    TcpThrottled,
}

/// A protocol on top of IP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    /// Under HTTP/2.
    Tcp,
    /// Under QUIC.
    Udp,
}

/// How a protocol is treated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Treatment {
    /// It passes.
    Pass,
    /// It is blocked.
    Block,
    /// What exceeds the rate is dropped.
    Limit(Bandwidth),
}

/// Something that happens to the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Since the start of the session.
    pub at: Duration,
    /// To which protocol.
    pub carrier: Carrier,
    /// What happens to it from then on.
    pub treatment: Treatment,
}

impl Course {
    /// Each direction of the network.
    pub fn link(self) -> LinkConfig {
        let delay = if self == Self::Long {
            LONG_DELAY
        } else {
            DELAY
        };
        let queue = ByteCount::new(RATE.bytes_in(QUEUE));
        let link = LinkConfig::default()
            .rate(RATE)
            .delay(delay)
            .buffer(Buffer::Bytes(queue));
        match self {
            Self::Lossy => LinkConfig {
                loss: LossModel::Bernoulli(LOSS),
                ..link
            },
            _ => link,
        }
    }

    /// What happens during a session of this length, in the order of time.
    pub fn changes(self, session: Duration) -> Vec<Change> {
        let change = |at, carrier, treatment| Change {
            at,
            carrier,
            treatment,
        };
        let throttled = |carrier| {
            let limit = change(session / 3, carrier, Treatment::Limit(THROTTLED));
            vec![limit, change(session * 2 / 3, carrier, Treatment::Pass)]
        };
        match self {
            Self::Clean | Self::Lossy | Self::Long => Vec::new(),
            Self::UdpThrottled => throttled(Carrier::Udp),
            Self::TcpThrottled => throttled(Carrier::Tcp),
            Self::UdpBlocked => vec![change(Duration::ZERO, Carrier::Udp, Treatment::Block)],
            Self::UdpCut => vec![change(session / 3, Carrier::Udp, Treatment::Block)],
        }
    }

    /// When something is wrong with UDP or TCP alone, in seconds.
    pub fn incident(self, session: Duration) -> Option<(f64, f64)> {
        let changes = self.changes(session);
        let from = changes.first()?.at.as_secs_f64();
        let to = changes.get(1).map_or(session, |change| change.at);
        Some((from, to.as_secs_f64()))
    }

    /// What happens, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::UdpThrottled => "UDP throttled in the middle",
            Self::UdpBlocked => "UDP blocked from the start",
            Self::UdpCut => "UDP blocked in the middle",
            Self::Lossy => "lossy (3 %)",
            Self::Long => "long (RTT 300 ms)",
            Self::TcpThrottled => "TCP throttled in the middle",
        }
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}
