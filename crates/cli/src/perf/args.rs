//! The flags of `perf`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use swiftwater_http::tcp::{ALPN_HTTP2, ALPN_HTTP11};
use swiftwater_http::udp::ALPN_HTTP3;

use crate::cli::{DEFAULT_LISTEN, IdentityArgs, TrustArgs};
use crate::duration::parse_positive_duration;
use crate::multipath::{MultipathArgs, PathArgs};
use crate::size::parse_size;
use crate::transport::Tuning;

/// `perf`.
#[derive(Args, Debug)]
pub struct PerfArgs {
    /// The role.
    #[command(subcommand)]
    pub command: PerfCommand,
}

/// The roles of `perf`.
#[derive(Debug, Subcommand)]
pub enum PerfCommand {
    /// Answer the requests of measurements
    Server(PerfServerArgs),
    /// Measure against a server
    Client(PerfClientArgs),
    /// Measure with both ends in this process, one thread each
    Loopback(PerfLoopbackArgs),
}

/// `perf server`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater perf server
  swiftwater perf server --listen 127.0.0.1:4444 --suite aes128 --json
  swiftwater perf server --workers 0
  swiftwater perf server --multipath --scheduler weighted

HTTP/3 is answered on the same UDP port, HTTP/2 and HTTP/1.1 on the TCP port of that number: /bytes/N
gives N bytes; the content of a POST is counted and discarded.

PerfProtocol \"perf\": ALPN \"perf\". On each stream the client opens it sends the number of requested bytes (8
bytes, big-endian), then any number of bytes, then the end; the server answers with that many bytes.")]
pub struct PerfServerArgs {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN, value_parser = crate::listen_address::parse)]
    pub listen: SocketAddr,

    /// Don't answer HTTP/2 and HTTP/1.1, which are on the TCP port of the same number
    #[arg(long)]
    pub no_tcp: bool,

    /// Certificate and development certificate.
    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Workers that share the port, each with its own thread and connections; 0 means one per
    /// processor
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,

    /// Several paths.
    #[command(flatten)]
    pub multipath: MultipathArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per event
    #[arg(long)]
    pub json: bool,
}

/// `perf client`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater perf client 10.0.0.7:4433 --insecure download --bytes 1G
  swiftwater perf client localhost:4433 --ca dev-cert.pem upload --bytes 500MB --json
  swiftwater perf client localhost:4433 --insecure requests --up 100 --down 10k --in-flight 50
  swiftwater perf client localhost:4433 --insecure handshakes --duration 5s
  swiftwater perf client 192.0.2.1:4433 --insecure --path eth0 --path wlan0 download --json
  swiftwater perf client localhost:4433 --insecure --protocol h2 requests --connections 4")]
pub struct PerfClientArgs {
    /// Server: host:port
    #[arg(value_name = "HOST:PORT")]
    pub server: String,

    /// Protocol of the load
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "PROTOCOL"
    )]
    pub protocol: PerfProtocol,

    /// What to measure.
    #[command(subcommand)]
    pub load: Load,

    /// The certificates to trust.
    #[command(flatten)]
    pub trust: TrustArgs,

    /// Several paths.
    #[command(flatten)]
    pub paths: PathArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// `perf loopback`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater perf loopback --suite aes128 download --bytes 1G
  swiftwater perf loopback handshakes --duration 3s --json
  swiftwater perf loopback --path 127.0.0.1 --path 127.0.0.2 --scheduler round-robin download
  swiftwater perf loopback --protocol h3 requests

Each end has a thread of its own, so CPU time is shown for each side.")]
pub struct PerfLoopbackArgs {
    /// Protocol of the load
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "PROTOCOL"
    )]
    pub protocol: PerfProtocol,

    /// What to measure.
    #[command(subcommand)]
    pub load: Load,

    /// Several paths.
    #[command(flatten)]
    pub paths: PathArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The protocol of the load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum PerfProtocol {
    /// Plain QUIC streams
    #[default]
    Perf,
    /// HTTP/3
    H3,
    /// HTTP/2 over TLS and TCP
    H2,
    /// HTTP/1.1 over TLS and TCP; a connection carries one request at a time
    H1,
}

impl PerfProtocol {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::H3 => "h3",
            Self::H2 => "h2",
            Self::H1 => "h1",
        }
    }

    /// The name in ALPN.
    pub const fn alpn(self) -> &'static [u8] {
        match self {
            Self::Perf => super::ALPN,
            Self::H3 => ALPN_HTTP3,
            Self::H2 => ALPN_HTTP2,
            Self::H1 => ALPN_HTTP11,
        }
    }

    /// True if it is carried over TCP.
    pub const fn is_over_tcp(self) -> bool {
        matches!(self, Self::H2 | Self::H1)
    }

    /// Whether a connection carries concurrent requests.
    pub const fn multiplexes(self) -> bool {
        !matches!(self, Self::H1)
    }
}

/// The measurements of `perf`.
#[derive(Clone, Debug, Subcommand)]
pub enum Load {
    /// Bytes per second from client to server
    Upload(VolumeArgs),
    /// Bytes per second from server to client
    Download(VolumeArgs),
    /// Requests per second
    #[command(alias = "rps")]
    Requests(RequestsArgs),
    /// New connections per second
    Handshakes(HandshakesArgs),
}

/// Size of a transfer.
#[derive(Args, Clone, Debug)]
pub struct VolumeArgs {
    /// Bytes to transfer, over all streams: 500MB, 1G, 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    pub bytes: u64,

    /// Streams, or requests, that share the bytes; connections with h1
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub streams: u16,
}

/// Requests to make.
#[derive(Args, Clone, Debug)]
pub struct RequestsArgs {
    /// Bytes of a request [default: 100; none over HTTP, so that requests are GET instead of POST]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub up: Option<u64>,

    /// Bytes of a response
    #[arg(long, value_name = "SIZE", default_value = "1k", value_parser = parse_size)]
    pub down: u64,

    /// Connections
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub connections: u16,

    /// Concurrent requests on each connection; with h1, as many connections instead
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub in_flight: u16,

    /// Duration
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = parse_positive_duration)]
    pub duration: Duration,
}

/// Repeated handshakes.
#[derive(Args, Clone, Debug)]
pub struct HandshakesArgs {
    /// Concurrent handshakes
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub in_flight: u16,

    /// Duration
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = parse_positive_duration)]
    pub duration: Duration,
}
