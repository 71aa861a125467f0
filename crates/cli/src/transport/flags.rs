//! Settings of the transport, as flags of the command line.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use swiftwater::congestion::{self, UnknownEntry};
use swiftwater::policies;
use swiftwater::quic::{AckFrequencyConfig, MtuDiscovery, PtoLimit};
use swiftwater::{CipherSuite, Profile, TransportConfig, VERSION_1, VERSION_2};
use thiserror::Error;

use crate::duration::{DurationError, parse_positive_duration};

/// Settings of the transport, as flags.
#[derive(Args, Clone, Debug, Default)]
pub struct Tuning {
    /// Settings of every command.
    #[command(flatten)]
    pub basics: Basics,

    /// Loss recovery of this end.
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "POLICY",
        value_parser = parse_recovery,
        help = recovery_help("How this end repairs losses")
    )]
    pub recovery: Option<String>,
}

/// Transport settings without the recovery policy, which some commands compare.
#[derive(Args, Clone, Debug, Default)]
pub struct Basics {
    /// Congestion controller of this end, such as cubic or bbr2; 'lab controllers' lists them
    /// [default: the profile's]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "NAME",
        value_parser = parse_controller
    )]
    pub cc: Option<String>,

    /// Settings for a kind of traffic: web, live, interactive, bulk [default: web; live for live
    /// video]
    #[arg(long, global = true, help_heading = "Transport", value_name = "NAME")]
    pub profile: Option<Profile>,

    /// Cipher suites to allow
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_enum,
        default_value_t,
        value_name = "SUITE"
    )]
    pub suite: Suite,

    /// UDP payload of full packets in bytes at first; raise it only where the path supports it
    /// [default: 1200]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "BYTES",
        value_parser = clap::value_parser!(u16).range(1200..=65_507)
    )]
    pub mtu: Option<u16>,

    /// QUIC versions in order of preference; a client starts with the first, and a server continues
    /// with the first that the client supports [default: 1,2]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_enum,
        value_delimiter = ',',
        value_name = "VERSIONS"
    )]
    pub quic_version: Vec<QuicVersion>,

    /// Version that a client starts with; it changes to a preferred one if the server supports it
    /// [default: the first of --quic-version]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_enum,
        value_name = "VERSION"
    )]
    pub first_version: Option<QuicVersion>,

    /// Largest UDP payload in bytes that path MTU discovery probes [default: 1472, which fills
    /// Ethernet frames]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "BYTES",
        conflicts_with = "no_mtu_discovery",
        value_parser = clap::value_parser!(u16).range(1200..=65_527)
    )]
    pub max_datagram_size: Option<u16>,

    /// Disable path MTU discovery
    #[arg(long, global = true, help_heading = "Transport")]
    pub no_mtu_discovery: bool,

    /// Round-trip time assumed until the first sample, such as 100ms [default: the profile's]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "TIME",
        value_parser = parse_positive_duration
    )]
    pub initial_rtt: Option<Duration>,

    /// Initial probe timeout: time to wait for the answer to a first packet before repeating it
    /// [default: three times the assumed round-trip time; the profile live: 500ms]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "TIME",
        value_parser = parse_positive_duration
    )]
    pub initial_pto: Option<Duration>,

    /// Factor of the probe timeout's back-off, 1 to 8 [default: 2]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "FACTOR",
        value_parser = parse_backoff
    )]
    pub pto_backoff: Option<f64>,

    /// Longest probe timeout [default: 60s]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "TIME",
        value_parser = parse_positive_duration
    )]
    pub max_pto: Option<Duration>,

    /// For this time after the last received packet, limit the probe timeout to the round-trip time and
    /// 150 ms, so that sending resumes soon after an outage; 0 backs off from the start [default: 12s for
    /// the profiles live and interactive, else 0]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "TIME",
        value_parser = parse_pto_limit
    )]
    pub pto_limit: Option<Duration>,

    /// Initial congestion window, packets of 1200 bytes [default: the profile's, which for web is
    /// 10]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "PACKETS",
        value_parser = clap::value_parser!(u64).range(2..=10_000)
    )]
    pub initial_window: Option<u64>,

    /// Request one acknowledgement per this many packets from the peer, and soon after losses;
    /// without it, for every other packet
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "PACKETS",
        value_parser = clap::value_parser!(u64).range(1..=1000)
    )]
    pub ack_frequency: Option<u64>,

    /// Log every connection to a separate file in this directory (qlog, .sqlog); created if missing
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "DIR",
        env = "QLOGDIR",
        hide_env_values = true
    )]
    pub qlog: Option<PathBuf>,

    /// Update this end's keys after this many packets; for testing peers
    #[arg(
        long,
        global = true,
        hide = true,
        help_heading = "Transport",
        value_name = "PACKETS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub key_update_every: Option<u64>,
}

impl Basics {
    /// The name of the congestion controller: the one that was asked for, or the profile's.
    pub fn controller_name(&self) -> String {
        let of_profile = || {
            let transport = self.profile.unwrap_or_default().transport();
            transport.controller.name().to_owned()
        };
        self.cc.clone().unwrap_or_else(of_profile)
    }

    /// Applies the individual settings.
    pub(super) fn apply(&self, transport: &mut TransportConfig) {
        if let Some(mtu) = self.mtu {
            transport.initial_max_datagram_size = mtu;
        }
        if let Some(upper_bound) = self.max_datagram_size {
            transport.mtu_discovery = Some(MtuDiscovery {
                upper_bound,
                ..MtuDiscovery::default()
            });
        }
        if self.no_mtu_discovery {
            transport.mtu_discovery = None;
        }
        if let Some(rtt) = self.initial_rtt {
            transport.initial_rtt = rtt;
            // A profile's timeout belongs to its own round-trip time.
            transport.initial_pto = None;
        }
        if let Some(pto) = self.initial_pto {
            transport.initial_pto = Some(pto);
        }
        if let Some(factor) = self.pto_backoff {
            transport.pto_backoff = factor;
        }
        if let Some(longest) = self.max_pto {
            transport.max_pto = longest;
        }
        if let Some(period) = self.pto_limit {
            transport.pto_limit = (!period.is_zero()).then(|| PtoLimit {
                period,
                ..transport.pto_limit.unwrap_or_default()
            });
        }
        if let Some(packets) = self.initial_window {
            transport.initial_window = Some((packets * 1200).into());
        }
        if let Some(packets) = self.ack_frequency {
            transport.ack_frequency = Some(AckFrequencyConfig {
                ack_eliciting_threshold: packets - 1,
                ..AckFrequencyConfig::default()
            });
        }
        if let Some(packets) = self.key_update_every {
            // Beyond the default the limits of the AEAD would be exceeded.
            transport.key_update_interval = transport.key_update_interval.min(packets);
        }
    }
}

/// A version of QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum QuicVersion {
    /// RFC 9000
    #[value(name = "1", alias = "v1")]
    One,
    /// RFC 9369
    #[value(name = "2", alias = "v2")]
    Two,
}

impl QuicVersion {
    /// The number in packets.
    pub fn number(self) -> u32 {
        match self {
            Self::One => VERSION_1,
            Self::Two => VERSION_2,
        }
    }
}

/// Which cipher suites are allowed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Suite {
    /// All of TLS 1.3
    #[default]
    Any,
    /// AES-128-GCM only
    Aes128,
    /// AES-256-GCM only
    Aes256,
    /// ChaCha20-Poly1305 only
    Chacha20,
}

impl Suite {
    pub(super) fn list(self) -> &'static [CipherSuite] {
        match self {
            Self::Any => &CipherSuite::ALL,
            Self::Aes128 => &[CipherSuite::Aes128Gcm],
            Self::Aes256 => &[CipherSuite::Aes256Gcm],
            Self::Chacha20 => &[CipherSuite::ChaCha20Poly1305],
        }
    }
}

/// An invalid back-off factor.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("it must be a number from 1 to 8, such as 1.5")]
pub struct BackoffError;

/// Reads the factor of the probe timeout's back-off.
pub fn parse_backoff(input: &str) -> Result<f64, BackoffError> {
    let factor: f64 = input.parse().map_err(|_| BackoffError)?;
    if (1.0..=8.0).contains(&factor) {
        Ok(factor)
    } else {
        Err(BackoffError)
    }
}

/// Reads how long the probe timeout is limited; 0 for not at all.
pub(crate) fn parse_pto_limit(input: &str) -> Result<Duration, DurationError> {
    match input {
        "0" | "0s" => Ok(Duration::ZERO),
        _ => parse_positive_duration(input),
    }
}

/// Checks the name of a congestion controller.
pub fn parse_controller(name: &str) -> Result<String, UnknownEntry> {
    congestion::by_name(name)?;
    Ok(name.to_ascii_lowercase())
}

/// Checks the specification of a recovery policy.
pub fn parse_recovery(specification: &str) -> Result<String, UnknownEntry> {
    policies::by_name(specification)?;
    Ok(specification.to_ascii_lowercase())
}

/// A line of help with the names of the recovery policies and the default.
pub fn recovery_help(what: &str) -> String {
    format!(
        "{} [default: the profile's, which for web and bulk is arq, plain retransmission]",
        with_recoveries(what)
    )
}

/// `what`, followed by the names of the recovery policies.
pub fn with_recoveries(what: &str) -> String {
    let mut help = what.to_owned();
    let mut separator = ": ";
    for name in policies::names() {
        // Writing to a string can't fail.
        let _ = write!(help, "{separator}{name}");
        separator = ", ";
    }
    help
}
