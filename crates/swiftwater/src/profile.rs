//! Named transport settings for kinds of traffic.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::Bbr1Config;
use swiftwater_policies::{AutoRecConfig, Policies};
use swiftwater_quic::{PtoLimit, TransportConfig};
use thiserror::Error;

/// UDP payload used to convert initial windows from packets, bytes.
const PACKET: u64 = 1200;

/// The kind of traffic of a connection. Each profile is a set of values for [`TransportConfig`],
/// where every setting can still be changed.
///
/// | | controller | initial window | assumed RTT | send buffer | receive windows | other |
/// |---|---|---|---|---|---|---|
/// | `Web` | CUBIC | 10 packets | 333 ms | 16 MiB | up to 16 MiB per stream | RFC defaults |
/// | `Live` | `bbr1-xquic` | 32 packets | 250 ms | 16 MiB | up to 16 MiB per stream | initial PTO 500 ms, later ones within RTT + 150 ms for 12 s, keep-alive 15 s, recovery `autorec-live` |
/// | `Interactive` | CUBIC | 32 packets | 250 ms | 1 MiB | up to 4 MiB per stream | PTO within RTT + 150 ms for 12 s, keep-alive 5 s, ACKs after 5 ms, recovery `autorec-rtc` |
/// | `Bulk` | CUBIC | 32 packets | 333 ms | 64 MiB | up to 64 MiB per stream | |
///
/// `Live` and `Interactive` resume within two round trips and 200 ms after an outage of up to 10 s:
/// their probe timeouts are limited by [`PtoLimit::default`] instead of doubling each time. The end
/// with data in flight resumes, so the sender needs the profile. `Web` and `Bulk` back off by RFC
/// 9002, and may send nothing after the outage for as long as it lasted.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Profile {
    /// Requests and responses: the values recommended by the RFCs.
    #[default]
    Web,
    /// Live video to many: the first video frame must arrive at once. With 32 packets instead of 10
    /// a frame of 100 kB takes two round trips instead of four; a lost first packet is repeated
    /// after 500 ms instead of 1 s, which costs distant clients one unnecessary packet, and
    /// handshake data that the peer evidently lacks are retransmitted up to three times before the
    /// PTO. BBRv1 with gentle probes of the round-trip time doesn't reduce its rate at each loss and
    /// causes no pauses of 200 ms. Lost data have copies where plain retransmission would take more
    /// than 200 ms, one each during congestion. The values are those tuned for live streaming in
    /// production; bandwidth has grown since 10 packets were chosen.
    Live,
    /// Calls, remote desktops, games: little data with low latency. Acknowledgements are sent after
    /// a short delay, buffers are small, and idle paths carry keep-alives.
    Interactive,
    /// Large files over fast or long paths: windows for 64 MiB in flight, such as 1 Gbit/s at
    /// 500 ms.
    Bulk,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Web, Self::Live, Self::Interactive, Self::Bulk];

    /// The name that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Live => "live",
            Self::Interactive => "interactive",
            Self::Bulk => "bulk",
        }
    }

    /// The transport configuration of the profile.
    pub fn transport(self) -> TransportConfig {
        let default = TransportConfig::default();
        let wide = Some((32 * PACKET).into());
        match self {
            Self::Web => default,
            Self::Live => TransportConfig {
                controller: Arc::new(Bbr1Config::xquic()),
                initial_window: wide,
                initial_rtt: Duration::from_millis(250),
                initial_pto: Some(Duration::from_millis(500)),
                pto_limit: Some(PtoLimit::default()),
                handshake_retransmissions_before_timeout: 3,
                keep_alive_interval: Some(Duration::from_secs(15)),
                policies: Arc::new(Policies::reinjecting(AutoRecConfig::live())),
                ..default
            },
            Self::Interactive => TransportConfig {
                initial_window: wide,
                initial_rtt: Duration::from_millis(250),
                pto_limit: Some(PtoLimit::default()),
                keep_alive_interval: Some(Duration::from_secs(5)),
                policies: Arc::new(Policies::reinjecting(AutoRecConfig::rtc())),
                max_ack_delay: Duration::from_millis(5),
                send_window: (1 << 20).into(),
                max_stream_receive_window: (4 << 20).into(),
                max_receive_window: (6 << 20).into(),
                datagram_queue: (128 << 10).into(),
                ..default
            },
            Self::Bulk => TransportConfig {
                initial_window: wide,
                send_window: (64 << 20).into(),
                stream_receive_window: (4 << 20).into(),
                receive_window: (6 << 20).into(),
                max_stream_receive_window: (64 << 20).into(),
                max_receive_window: (96 << 20).into(),
                ..default
            },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no profile with the requested name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown profile `{0}`; known are: web, live, interactive, bulk")]
pub struct UnknownProfile(pub String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}
