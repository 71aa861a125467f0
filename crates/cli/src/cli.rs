//! The command line: commands and their flags.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use swiftwater::link::{parse_duration, parse_rate};
use swiftwater::units::Bandwidth;

use crate::commands::sim::SimArgs;
use crate::demo::DemoArgs;
use crate::duration::parse_positive_duration;
use crate::exit::{EXIT_CODES, Exit, Failure};
use crate::lab::LabArgs;
use crate::link_args::RelayLinkArgs;
use swiftwater_http::web::proxy::Upstream;

use crate::migrate::MigrateAfter;
use crate::size::parse_size;
use crate::transport::Tuning;
use crate::url::Url;

/// Where servers listen unless told otherwise: every address of this machine, IPv4 and IPv6.
pub const DEFAULT_LISTEN: &str = "[::]:4433";

/// QUIC transport: move files, measure, emulate networks, simulate.
#[derive(Debug, Parser)]
#[command(name = "swiftwater", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Say more on standard error (repeat for even more); RUST_LOG overrides
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Everything the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory, or stand before another server, over HTTP/3, HTTP/2 and HTTP/1.1
    Serve(ServeArgs),
    /// Download files
    Get(GetArgs),
    /// Measure throughput, requests and handshakes
    Perf(PerfArgs),
    /// Put any UDP program behind an emulated link
    Relay(Box<RelayArgs>),
    /// Simulate flows on a bottleneck in virtual time
    Sim(SimArgs),
    /// Run experiments in virtual time and hold papers' claims against them
    Lab(LabArgs),
    /// Watch live video and files cross emulated networks, all in one process
    Demo(Box<DemoArgs>),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them to a directory
    Man(ManArgs),
}

/// `serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater serve ./public
  swiftwater serve ./public --listen 0.0.0.0:443 --cert chain.pem --key key.pem
  swiftwater serve ./app --spa index.html --name app.example
  swiftwater serve --upstream http://127.0.0.1:8080 --listen 0.0.0.0:443 --cert chain.pem --key key.pem

Protocols: HTTP/3 on UDP, HTTP/2 and HTTP/1.1 over TLS on the TCP port of the same number; files also
over hq-interop (HTTP/0.9 on QUIC streams). Without --cert a self-signed development certificate is
made on first use and kept; its path and fingerprint are printed. The first Ctrl-C lets running
downloads end, the second stops at once.")]
pub struct ServeArgs {
    /// Directory to serve; nothing outside it can be reached
    #[arg(value_name = "DIR", required_unless_present = "upstream")]
    pub directory: Option<PathBuf>,

    /// Forward requests to this server instead, such as http://127.0.0.1:8080
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["directory", "listing", "spa"],
        value_parser = Upstream::parse
    )]
    pub upstream: Option<Upstream>,

    /// List directories that have no index.html
    #[arg(long)]
    pub listing: bool,

    /// Answer with this file, relative to DIR, where nothing is found and the name has no extension:
    /// the page of a single-page application
    #[arg(long, value_name = "FILE")]
    pub spa: Option<PathBuf>,

    /// Don't listen on TCP, for HTTP/2 and HTTP/1.1
    #[arg(long)]
    pub no_tcp: bool,

    /// Address and port to listen on, UDP and TCP
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    pub listen: SocketAddr,

    /// Listen there too, and ask clients to go there after the handshake; one address per family
    #[arg(long, value_name = "ADDR")]
    pub preferred_address: Vec<SocketAddr>,

    /// Certificate and development certificates.
    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Make every client prove its address first (Retry)
    #[arg(long)]
    pub retry: bool,

    /// Give up on a client whose handshake takes longer than this
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive_duration)]
    pub handshake_timeout: Duration,

    /// What to do with requests that clients send before the handshake is complete (0-RTT); all are
    /// for files, and a recorded one is refused the second time
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ZeroRtt::Accept)]
    pub zero_rtt: ZeroRtt,

    /// On Ctrl-C, wait this long for running downloads
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub grace: Duration,

    /// Workers that share the port, each with a thread and connections of its own; 0 takes as many as
    /// there are processors
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per event
    #[arg(long)]
    pub json: bool,
}

/// What a server does with early data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ZeroRtt {
    /// Answer them at once.
    #[default]
    Accept,
    /// Permit none; what clients send all the same has to be sent again after the handshake.
    Reject,
}

/// Which certificate a server shows.
#[derive(Args, Clone, Debug, Default)]
pub struct IdentityArgs {
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Further name or IP address for the development certificate
    #[arg(long = "name", value_name = "NAME", conflicts_with = "cert")]
    pub names: Vec<String>,

    /// Where the development certificate is kept [default: $XDG_STATE_HOME/swiftwater or
    /// ~/.local/state/swiftwater]
    #[arg(long, value_name = "DIR", conflicts_with = "cert")]
    pub state_dir: Option<PathBuf>,
}

/// `get`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater get https://localhost:4433/video.mp4 --ca ~/.local/state/swiftwater/dev-cert.pem
  swiftwater get https://example.net/a https://example.net/b -o downloads -j 4
  swiftwater get https://10.0.0.7:4433/big.bin --insecure --json

Files of one server share one connection. A file has its final name only when it is complete; until
then it is called .NAME.part-XXXXXX. A download that is killed leaves that behind: it is never continued
and may be deleted; the next try starts afresh.")]
pub struct GetArgs {
    /// Addresses: https://host:port/path (port 443 if left out)
    #[arg(value_name = "URL", required = true)]
    pub urls: Vec<Url>,

    /// Directory to write to; made if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,

    /// Overwrite files that exist
    #[arg(short, long)]
    pub force: bool,

    /// Whom to trust.
    #[command(flatten)]
    pub trust: TrustArgs,

    /// Downloads at once
    #[arg(short = 'j', long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub parallel: u16,

    /// Move to another local address after this much file data, e.g. 1MB (another port),
    /// 1MB,192.0.2.7 or 1MB,192.0.2.7:5000
    #[arg(long, value_name = "SIZE[,ADDR]")]
    pub migrate_after: Option<MigrateAfter>,

    /// Let each server send no faster than this, e.g. 20mbit (file data, on average)
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub limit_rate: Option<Bandwidth>,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Fetch the first file of each server, then connect again for the rest, resuming the TLS session
    #[arg(long)]
    pub resume: bool,

    /// As --resume, and send the requests for the rest before the handshake is complete (0-RTT)
    #[arg(long)]
    pub zero_rtt: bool,

    /// Print one JSON object per file, then one with totals
    #[arg(long)]
    pub json: bool,
}

/// Whom a client trusts.
#[derive(Args, Clone, Debug, Default)]
pub struct TrustArgs {
    /// Trust the certificates in this PEM file and what they signed, nothing else
    #[arg(long, global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Don't check the server's certificate: anybody on the way can read and change everything
    #[arg(long, global = true, conflicts_with = "ca")]
    pub insecure: bool,

    /// Give up a connection attempt after this long
    #[arg(long, global = true, value_name = "TIME", default_value = "10s",
          value_parser = parse_positive_duration)]
    pub connect_timeout: Duration,
}

/// `perf`.
#[derive(Args, Debug)]
pub struct PerfArgs {
    /// Which side.
    #[command(subcommand)]
    pub command: PerfCommand,
}

/// The sides of `perf`.
#[derive(Debug, Subcommand)]
pub enum PerfCommand {
    /// Answer measurements
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

Protocol: ALPN \"perf\". On each stream the client opens it sends the number of bytes it wants (8
bytes, big-endian), then any number of bytes, then the end; the server answers with that many bytes.")]
pub struct PerfServerArgs {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    pub listen: SocketAddr,

    /// Certificate and development certificates.
    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Workers that share the port, each with a thread and connections of its own; 0 takes as many as
    /// there are processors
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,

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
  swiftwater perf client localhost:4433 --insecure handshakes --duration 5s")]
pub struct PerfClientArgs {
    /// Server: host:port
    #[arg(value_name = "HOST:PORT")]
    pub server: String,

    /// What to measure.
    #[command(subcommand)]
    pub load: Load,

    /// Whom to trust.
    #[command(flatten)]
    pub trust: TrustArgs,

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

Each end has a thread of its own, so CPU time is told apart by side.")]
pub struct PerfLoopbackArgs {
    /// What to measure.
    #[command(subcommand)]
    pub load: Load,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What `perf` measures.
#[derive(Clone, Debug, Subcommand)]
pub enum Load {
    /// Bytes per second from client to server
    Upload(VolumeArgs),
    /// Bytes per second from server to client
    Download(VolumeArgs),
    /// Requests per second on one connection
    #[command(alias = "rps")]
    Requests(RequestsArgs),
    /// New connections per second
    Handshakes(HandshakesArgs),
}

/// How much to move.
#[derive(Args, Clone, Debug)]
pub struct VolumeArgs {
    /// Bytes to move, over all streams: 500MB, 1G, 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    pub bytes: u64,

    /// Streams that share the bytes
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub streams: u16,
}

/// Which requests to make.
#[derive(Args, Clone, Debug)]
pub struct RequestsArgs {
    /// Bytes of a request
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = parse_size)]
    pub up: u64,

    /// Bytes of a response
    #[arg(long, value_name = "SIZE", default_value = "1k", value_parser = parse_size)]
    pub down: u64,

    /// Requests at any time
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub in_flight: u16,

    /// How long to go on
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = parse_positive_duration)]
    pub duration: Duration,
}

/// How to connect again and again.
#[derive(Args, Clone, Debug)]
pub struct HandshakesArgs {
    /// Handshakes at any time
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub in_flight: u16,

    /// How long to go on
    #[arg(long, value_name = "TIME", default_value = "5s",
          value_parser = parse_positive_duration)]
    pub duration: Duration,
}

/// `relay`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater relay --listen 127.0.0.1:5000 --to 127.0.0.1:4433 --rate 20mbit --delay 30ms --loss 1%
  swiftwater relay --listen 127.0.0.1:5000 --to 10.0.0.7:443 --trace lte.csv --buffer 1bdp
  swiftwater relay --listen [::]:5000 --to server.example:443 --loss ge:1%,30% --jitter 5ms --json

Clients send to the relay as if it were the server. --delay is one way; both directions have the same
link unless an --up- flag says otherwise. Formats of traces: CSV (t_ms,rate_kbps,rtt_ms,loss) and
Mahimahi's. Counters are printed on Ctrl-C.")]
pub struct RelayArgs {
    /// Address and UDP port where clients send to
    #[arg(long, value_name = "ADDR")]
    pub listen: SocketAddr,

    /// The server: host:port
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,

    /// Seed of all random choices: the same seed hits the same packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Print counters this often
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub stats: Option<Duration>,

    /// Print counters as JSON
    #[arg(long)]
    pub json: bool,

    /// The links.
    #[command(flatten)]
    pub links: RelayLinkArgs,
}

/// `completions`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  swiftwater completions bash > ~/.local/share/bash-completion/completions/swiftwater")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `man`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater man | man -l -
  swiftwater man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write one page per command into this directory instead
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

impl Cli {
    /// Parses a command line, program name first. Help and version are printed here and end with
    /// success; an error is reduced to one line.
    pub fn from_args(
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, Result<(), Failure>> {
        Self::try_parse_from(args).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                if !error.use_stderr() =>
            {
                // Help that nobody reads is no failure.
                let _ = error.print();
                Ok(())
            }
            _ => Err(Failure::new(Exit::Usage, summary(&error))),
        })
    }
}

/// The first paragraph of clap's report as one line, and where to read more.
fn summary(error: &clap::Error) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; try 'swiftwater --help'".to_owned();
    }
    // It would be called an unknown flag, which misses the point.
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && argument.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    {
        return format!("a negative number ('{argument}...') is never a value here; try '--help'");
    }
    let first = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let line = words.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line}; try '--help'")
}
