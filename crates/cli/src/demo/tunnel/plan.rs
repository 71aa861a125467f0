//! The flags of `demo tunnel`, and what follows from them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use swiftwater::link::{Buffer, LinkConfig, LossModel, Rate, parse_duration};

use crate::demo::page_file::{PageArgs, default_name};
use crate::demo::wanted::wanted_or_all;
use crate::exit::Failure;
use crate::size::parse_size;
use crate::transport::Tuning;

/// The congestion controller, unless one is chosen: one that does not take each random loss for congestion.
const CONTROLLER: &str = "bbr3";

/// Name of the page.
const PAGE: &str = "swiftwater-demo-tunnel.html";

/// `demo tunnel`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("page", |page| default_name(page, PAGE)))]
pub struct TunnelDemoArgs {
    /// Only this system (repeat for several)
    #[arg(long = "system", value_enum, value_name = "NAME")]
    pub systems: Vec<System>,

    /// Size of the objects (repeat for several) [default: 10kB, 100kB and 300kB; with --quick 10kB and 100kB]
    #[arg(long = "size", value_name = "SIZE", value_parser = parse_size)]
    pub sizes: Vec<u64>,

    /// Objects of each size [default: 25, with --quick 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub flows: Option<u32>,

    /// Fewer and smaller objects
    #[arg(long)]
    pub quick: bool,

    /// Rate of the last mile, each way
    #[arg(long, value_name = "RATE", default_value = "10mbit")]
    pub rate: Rate,

    /// Round-trip time of the last mile, between client and proxy
    #[arg(long, value_name = "TIME", default_value = "30ms", value_parser = parse_duration)]
    pub near_rtt: Duration,

    /// Round-trip time between proxy and server
    #[arg(long, value_name = "TIME", default_value = "60ms", value_parser = parse_duration)]
    pub far_rtt: Duration,

    /// Random loss of the last mile, towards the client: 5% (each packet independently), or in bursts:
    /// ge:10%,60%@3ms
    #[arg(long, value_name = "LOSS", default_value = "5%")]
    pub loss: LossModel,

    /// Seed of the links and of the objects
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The page with plots.
    #[command(flatten)]
    pub page: PageArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per system and size
    #[arg(long)]
    pub json: bool,
}

/// How objects reach the client.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// From the server, without a proxy
    Direct,
    /// In a plain tunnel (RFC 9298)
    Masque,
    /// In a tunnel that repairs losses near the client
    Repair,
    /// The same, and the server cooperates: TECC
    Tecc,
}

impl System {
    /// Whether there is a proxy.
    pub fn has_proxy(self) -> bool {
        self != Self::Direct
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Masque => "masque",
            Self::Repair => "repair",
            Self::Tecc => "tecc",
        })
    }
}

/// A showing: all its parameters.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is compared, in order.
    pub systems: Vec<System>,
    /// Bytes of the objects, in order.
    pub sizes: Vec<u64>,
    /// Objects of each size.
    pub flows: u32,
    /// Between client and proxy, or as a part of the way to the server: up, down.
    pub last_mile: [LinkConfig; 2],
    /// One-way delay between proxy and server.
    pub far_delay: Duration,
    /// Description of the network.
    pub network: String,
    /// The seed.
    pub seed: u64,
    /// Where the page goes.
    pub page: Option<PathBuf>,
    /// Transport settings.
    pub tuning: Tuning,
    /// JSON instead of tables.
    pub json: bool,
}

impl Plan {
    /// What the flags ask for.
    pub fn new(args: TunnelDemoArgs) -> Result<Self, Failure> {
        let mut sizes = args.sizes;
        if sizes.is_empty() {
            sizes = vec![10_000, 100_000];
            if !args.quick {
                sizes.push(300_000);
            }
        }
        sizes.sort_unstable();
        sizes.dedup();
        let link = LinkConfig {
            rate: args.rate.clone(),
            delay: args.near_rtt / 2,
            // The same queue, whatever the systems know of the way.
            buffer: Buffer::Bdp(1.0),
            bdp_rtt: Some(args.near_rtt + args.far_rtt),
            ..LinkConfig::default()
        };
        let down = LinkConfig {
            loss: args.loss,
            ..link.clone()
        };
        let mut tuning = args.tuning;
        tuning
            .basics
            .cc
            .get_or_insert_with(|| CONTROLLER.to_owned());
        Ok(Self {
            systems: wanted_or_all(&args.systems),
            sizes,
            flows: args.flows.unwrap_or(if args.quick { 10 } else { 25 }),
            network: format!(
                "last mile of {}, RTT {} ms, {:.3} % loss towards the client; {} ms more to the server",
                args.rate,
                args.near_rtt.as_millis(),
                args.loss.mean_loss() * 100.0,
                args.far_rtt.as_millis(),
            ),
            last_mile: [link, down],
            far_delay: args.far_rtt / 2,
            seed: args.seed,
            page: args.page.path(args.json, PAGE)?,
            tuning,
            json: args.json,
        })
    }

    /// The congestion controller.
    pub fn controller(&self) -> &str {
        self.tuning.basics.cc.as_deref().unwrap_or(CONTROLLER)
    }
}
