//! The flags of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use swiftwater::link::parse_duration;
use swiftwater_http::web::proxy::Upstream;

use super::echo::parse_path;
use crate::cli::{DEFAULT_LISTEN, IdentityArgs};
use crate::duration::parse_positive_duration;
use crate::transport::Tuning;

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

    /// Echo WebTransport streams and datagrams at this path, such as /echo, to try out clients
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub webtransport_echo: Option<String>,

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
