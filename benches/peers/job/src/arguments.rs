//! The command line of every program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use thiserror::Error;

use crate::{ALPN, ALPN_HTTP3};

/// Drives one QUIC library through the jobs of the comparison.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// Which end to be.
    #[command(subcommand)]
    pub role: Role,
}

impl Arguments {
    /// Those of this process; ends it with a message if they are wrong.
    pub fn of_process() -> Self {
        Self::parse()
    }

    /// Settings both ends share.
    pub const fn settings(&self) -> Settings {
        match &self.role {
            Role::Server(arguments) => arguments.settings,
            Role::Client(arguments) => arguments.settings,
        }
    }
}

/// Which end to be.
#[derive(Clone, Debug, Subcommand)]
pub enum Role {
    /// Answer until killed
    Server(ServerArguments),
    /// Do a job and report
    Client(ClientArguments),
}

/// What is said to a server.
#[derive(Args, Clone, Debug)]
pub struct ServerArguments {
    /// UDP address
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM
    #[arg(long)]
    pub cert: PathBuf,
    /// Its private key, PEM (PKCS #8)
    #[arg(long)]
    pub key: PathBuf,
    /// Settings both ends share.
    #[command(flatten)]
    pub settings: Settings,
    /// Threads, where the library can use several
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
}

/// What is said to a client.
#[derive(Args, Clone, Debug)]
pub struct ClientArguments {
    /// Address of the server
    #[arg(long)]
    pub connect: SocketAddr,
    /// Certificate to trust, and no other, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Settings both ends share.
    #[command(flatten)]
    pub settings: Settings,
    /// What to do.
    #[command(subcommand)]
    pub job: Job,
}

impl ClientArguments {
    /// Any address and port of the server's family, to connect from.
    pub fn local(&self) -> SocketAddr {
        let any: IpAddr = match self.connect {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        SocketAddr::new(any, 0)
    }
}

/// Settings both ends share.
#[derive(Args, Clone, Copy, Debug)]
pub struct Settings {
    /// UDP payload of full packets from the start, bytes; there is no search for more
    #[arg(long, default_value_t = 1452)]
    pub mtu: u16,
    /// Best-known settings in place of the library's defaults
    #[arg(long)]
    pub tuned: bool,
    /// The path loses packets at random: with --tuned, the congestion controller that minds it least
    #[arg(long)]
    pub lossy: bool,
    /// Jobs `bulk` (down) and `requests` over HTTP/3
    #[arg(long)]
    pub http3: bool,
    /// Congestion controller, paced, in place of the one that the other settings choose
    #[arg(long, value_enum)]
    pub controller: Option<Controller>,
}

/// The program has no jobs over HTTP/3.
#[derive(Clone, Copy, Debug, Error)]
#[error("this program has no jobs over HTTP/3")]
pub struct NoHttp3;

impl Settings {
    /// The protocol's name in ALPN.
    pub const fn alpn(&self) -> &'static [u8] {
        if self.http3 { ALPN_HTTP3 } else { ALPN }
    }

    /// For programs without jobs over HTTP/3: fails if one is requested.
    pub fn require_streams(&self) -> Result<(), NoHttp3> {
        if self.http3 { Err(NoHttp3) } else { Ok(()) }
    }
}

/// A congestion controller. No library has all of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Controller {
    /// CUBIC
    Cubic,
    /// The first version of BBR
    Bbr1,
    /// BBRv2
    Bbr2,
    /// BBRv3
    Bbr3,
}

impl Controller {
    /// What a program reports whose library lacks it.
    pub fn missing(self) -> String {
        format!("the library has no controller {self:?}")
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Job {
    /// One transfer on one stream
    Bulk {
        /// How much
        #[arg(long)]
        bytes: u64,
        /// Which way
        #[arg(long, value_enum, default_value_t = Direction::Download)]
        direction: Direction,
    },
    /// Requests on one connection, each on a stream of its own
    Requests {
        /// For how long
        #[arg(long)]
        seconds: f64,
        /// How many wait for an answer at any time
        #[arg(long, default_value_t = 32)]
        in_flight: u32,
        /// Bytes of a request
        #[arg(long, default_value_t = 100)]
        up: u64,
        /// Bytes of an answer
        #[arg(long, default_value_t = 1024)]
        down: u64,
    },
    /// Full handshakes; each connection is closed as soon as it is established
    Handshakes {
        /// How many
        #[arg(long)]
        count: u32,
        /// How many at a time
        #[arg(long, default_value_t = 4)]
        parallel: u32,
    },
    /// Open connections and keep them
    Hold {
        /// How many
        #[arg(long)]
        connections: u32,
        /// Streams to keep open on each; with none, one request per connection is sent and answered
        #[arg(long, default_value_t = 0)]
        streams: u32,
    },
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Direction {
    /// From server to client
    Download,
    /// From client to server
    Upload,
}
