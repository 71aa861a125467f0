//! The command line: commands and their flags.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::build_commit::LONG_VERSION;
use crate::commands::get::args::GetArgs;
use crate::commands::play::args::PlayArgs;
use crate::commands::relay::change::ChangeArg;
use crate::commands::relay::leg::LegArg;
use crate::commands::serve::args::ServeArgs;
use crate::commands::sim::SimArgs;
use crate::commands::tunnel::args::TunnelArgs;
use crate::demo::DemoArgs;
use crate::duration::parse_positive_duration;
use crate::exit::{EXIT_CODES, Exit, Failure};
use crate::lab::LabArgs;
use crate::link_args::RelayLinkArgs;
use crate::perf::args::PerfArgs;

/// Default listen address of servers: every address of this machine, IPv4 and IPv6.
pub const DEFAULT_LISTEN: &str = "[::]:4433";

/// QUIC transport: move files, measure, emulate networks, simulate.
#[derive(Debug, Parser)]
#[command(name = "swiftwater", version, long_version = LONG_VERSION, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Log more to standard error (repeat for even more); RUST_LOG overrides
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,

    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory, or act as reverse proxy, over HTTP/3, HTTP/2 and HTTP/1.1
    Serve(Box<ServeArgs>),
    /// Download files and send requests over HTTP/3, HTTP/2 and HTTP/1.1
    Get(Box<GetArgs>),
    /// Play adaptive video without showing it: bitrates, buffer, stalls
    Play(Box<PlayArgs>),
    /// Measure throughput, requests and handshakes
    Perf(PerfArgs),
    /// Put any UDP program behind an emulated link
    Relay(Box<RelayArgs>),
    /// Lead UDP and TCP through a proxy over HTTP (MASQUE)
    Tunnel(Box<TunnelArgs>),
    /// Simulate flows on a bottleneck in virtual time
    Sim(SimArgs),
    /// Run experiments in virtual time and check the claims of papers
    Lab(LabArgs),
    /// Watch live video and files cross emulated networks, all in one process
    Demo(Box<DemoArgs>),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them to a directory
    Man(ManArgs),
}

/// The certificate of a server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Certificates and TLS")]
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

    /// Directory of the development certificate and other persistent state [default:
    /// $XDG_STATE_HOME/swiftwater or ~/.local/state/swiftwater]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// The certificates that a client trusts.
#[derive(Args, Clone, Debug, Default)]
pub struct TrustArgs {
    /// Trust the certificates in this PEM file and those they signed, nothing else
    #[arg(long, global = true, value_name = "FILE", help_heading = "Trust")]
    pub ca: Option<PathBuf>,

    /// Don't check the server's certificate: an attacker on the path can read and change everything
    #[arg(long, global = true, conflicts_with = "ca", help_heading = "Trust")]
    pub insecure: bool,

    /// Abort a connection attempt after this time
    #[arg(long, global = true, value_name = "TIME", default_value = "10s", help_heading = "Limits",
          value_parser = parse_positive_duration)]
    pub connect_timeout: Duration,
}

/// `relay`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater relay --listen 127.0.0.1:5000 --to 127.0.0.1:4433 --rate 20mbit --delay 30ms --loss 1%
  swiftwater relay --listen 127.0.0.1:5000 --to 10.0.0.7:443 --trace lte.csv --buffer 1bdp
  swiftwater relay --listen [::]:5000 --to server.example:443 --loss ge:2%,40%@5ms --jitter 5ms --json
  swiftwater relay --to 127.0.0.1:4433 --leg name=wifi,listen=127.0.0.1:5001,rate=40mbit,rtt=20ms \
    --leg name=lte,from=127.0.0.2,trace=lte.csv --change wifi,loss:10%@4s --change wifi,cut@5s \
    --change wifi,restore@9s --record deliveries.csv

Clients send to the relay as if it were the server. --delay is one way; both directions have the same
link unless an --up- flag says otherwise. Formats of traces: CSV (t_ms,rate_kbps,rtt_ms,loss) and
Mahimahi's. Counters are printed on Ctrl-C.

Each --leg is a network of its own, such as for one path of a connection. It has a port of its own (listen=),
and may lead to another address of the server (to=); or clients with one address use it (from=), though they
send to the leg before, as with two interfaces of a host. Further: name=, rate=, up-rate=, rtt= or delay= (one way), up-delay=, loss=, up-loss=, jitter=,
buffer=, up-buffer=, queue=, reorder=, duplicate=, ecn-threshold=, trace=; the flags of the link hold for
what a leg leaves open. The client of the example is:
  swiftwater get https://127.0.0.1:5001/file --path 127.0.0.1 --path 127.0.0.2

--change [LEG,]WHAT@TIME, without LEG for all: cut (nothing passes), cut-up (to the server), cut-down,
loss:50% (each way, on top of that of the link), delay:10 (propagation takes ten times as long), restore
(as at first). Times count from the first datagram of a client on any leg. Packets that are on a link
already arrive.")]
pub struct RelayArgs {
    /// Address and UDP port that clients send to
    #[arg(long, value_name = "ADDR", value_parser = crate::listen_address::parse,
          required_unless_present = "legs", conflicts_with = "legs")]
    pub listen: Option<SocketAddr>,

    /// One of several networks, with a port of its own (repeat): name=wifi,listen=ADDR,rate=40mbit,rtt=20ms
    #[arg(long = "leg", value_name = "listen=ADDR[,...]")]
    pub legs: Vec<LegArg>,

    /// What happens to a leg, and when (repeat): wifi,cut@5s
    #[arg(long = "change", value_name = "[LEG,]WHAT@TIME")]
    pub changes: Vec<ChangeArg>,

    /// Write every delivered datagram to this file: CSV of ms (since the first datagram of a client), leg,
    /// direction, bytes of UDP payload
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// The server: host:port
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,

    /// Seed of all random choices: the same seed affects the same packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Print counters at this interval
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
    /// Parses a command line, program name first. Help and version are printed here and exit with
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
                // Help that can't be written is not a failure.
                let _ = error.print();
                Ok(())
            }
            _ => Err(Failure::new(Exit::Usage, summary(&error))),
        })
    }
}

/// The first paragraph of clap's report as one line, with a pointer to the help.
fn summary(error: &clap::Error) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; try 'swiftwater --help'".to_owned();
    }
    // clap would call it an unknown flag, which is misleading.
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
