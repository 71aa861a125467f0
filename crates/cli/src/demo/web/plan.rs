//! The flags of `demo web`.

use std::fmt;

use clap::Args;
use serde::Serialize;
use swiftwater_http::client;

use super::website::Extent;
use crate::demo::presets::Preset;
use crate::demo::wanted::wanted_or_all;
use crate::transport::Tuning;

/// Loads per protocol and network.
const LOADS: u32 = 5;

/// `demo web`.
#[derive(Args, Clone, Debug)]
pub struct WebArgs {
    /// Only this network (repeat for several) [default: all; with --quick home-broadband and
    /// lossy-wifi]
    #[arg(long = "preset", value_enum, value_name = "NAME")]
    pub presets: Vec<Preset>,

    /// Loads of the page per protocol and network [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub loads: Option<u32>,

    /// A page of less than 1 MB instead of 2 MB, loaded once
    #[arg(long)]
    pub quick: bool,

    /// Seed of the networks and of the page; each load has its own network seed, the same for both
    /// protocols
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Congestion controller of the kernel's TCP, such as cubic or bbr [default: the kernel's]
    #[arg(long, value_name = "NAME", conflicts_with = "no_tun")]
    pub tcp_cc: Option<String>,

    /// Don't use network namespaces: HTTP/3 only, through a relay of UDP datagrams
    #[arg(long)]
    pub no_tun: bool,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per network and protocol
    #[arg(long)]
    pub json: bool,
}

impl WebArgs {
    /// The networks, in their usual order.
    pub fn networks(&self) -> Vec<Preset> {
        const QUICK: [Preset; 2] = [Preset::HomeBroadband, Preset::LossyWifi];
        if self.presets.is_empty() && self.quick {
            QUICK.to_vec()
        } else {
            wanted_or_all(&self.presets)
        }
    }

    /// Loads per protocol and network.
    pub fn loads(&self) -> u32 {
        self.loads.unwrap_or(if self.quick { 1 } else { LOADS })
    }

    /// The size of the page.
    pub fn extent(&self) -> Extent {
        if self.quick {
            Extent::QUICK
        } else {
            Extent::FULL
        }
    }
}

/// A compared protocol.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum WebProtocol {
    /// HTTP/3 on Swiftwater's QUIC.
    #[serde(rename = "h3")]
    Http3,
    /// HTTP/2 over TLS and the kernel's TCP.
    #[serde(rename = "h2")]
    Http2,
}

impl WebProtocol {
    /// Both, HTTP/3 first.
    pub const ALL: [Self; 2] = [Self::Http3, Self::Http2];

    /// The HTTP client's value for it.
    pub fn of_client(self) -> client::Protocol {
        match self {
            Self::Http3 => client::Protocol::Http3,
            Self::Http2 => client::Protocol::Http2,
        }
    }
}

impl fmt::Display for WebProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http3 => "h3",
            Self::Http2 => "h2",
        })
    }
}
