//! The flags of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use swiftwater::link::parse_duration;

use super::acme_args::AcmeArgs;
use super::config::tunnels::{AddressPrefix, PageOrigin, PortRange, Tunnels, UserBandwidth};
use super::config::values::{Count, UpstreamUrl};
use super::echo::parse_path;
use crate::cli::IdentityArgs;
use crate::duration::parse_positive_duration;
use crate::multipath::{MultipathArgs, PathOperationArgs};
use crate::transport::Tuning;

/// `serve`.
#[derive(Args, Debug)]
#[command(
    mut_args(shorten),
    after_help = "The settings of the transport and all limits: --help"
)]
#[command(after_long_help = "\
Examples:
  swiftwater serve ./public
  swiftwater serve ./public --listen 0.0.0.0:443 --cert chain.pem --key key.pem
  swiftwater serve ./app --spa index.html --name app.example
  swiftwater serve --upstream http://127.0.0.1:8080 --listen 0.0.0.0:443 --cert chain.pem --key key.pem
  swiftwater serve ./public --multipath --scheduler weighted
  swiftwater serve ./public --listen :443 --http-redirect :80 --acme example.org --acme-accept-terms
  swiftwater serve --config /etc/swiftwater/serve.toml --access-log /var/log/swiftwater/access.log
  swiftwater serve --config serve.toml --check-config
  swiftwater serve ./public --print-config > serve.toml

Protocols: HTTP/3 on UDP, HTTP/2 and HTTP/1.1 over TLS on the TCP port of the same number. Without --cert a self-signed development certificate is
made on first use and kept; its path and fingerprint are printed. The first Ctrl-C lets running
downloads end, the second stops at once.

--help shows the settings of the transport and the limits as well, which -h leaves out.

A configuration file describes several sites and all that the flags do; docs/serve.toml is one with
comments. On SIGHUP the file and the certificates are read again and the access log is opened anew:
new requests see the new content, new handshakes the new certificates. After an error everything stays
as it was.")]
pub struct ServeArgs {
    /// Directory to serve; files outside it can't be accessed
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Forward requests to this server instead: http://127.0.0.1:8080, https://…, h2c://… or unix:/path
    #[arg(long,
        value_name = "URL",
        conflicts_with_all = ["directory", "listing", "spa"], help_heading = "Content")]
    pub upstream: Option<UpstreamUrl>,

    /// Read the configuration from this file (TOML); flags take precedence
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub config: Option<PathBuf>,

    /// Print the configuration that results from file and flags, as TOML, and exit
    #[arg(long, help_heading = "Configuration")]
    pub print_config: bool,

    /// Check the configuration, its directories and its certificates, and exit
    #[arg(long, conflicts_with = "print_config", help_heading = "Configuration")]
    pub check_config: bool,

    /// List directories that have no index.html
    #[arg(long, requires = "directory", help_heading = "Content")]
    pub listing: bool,

    /// Answer with this file, relative to DIR, where no file is found and the name has no extension:
    /// the page of a single-page application
    #[arg(
        long,
        value_name = "FILE",
        requires = "directory",
        help_heading = "Content"
    )]
    pub spa: Option<PathBuf>,

    /// Echo WebTransport streams and datagrams at this path, such as /echo, to try out clients
    #[arg(long, value_name = "PATH", value_parser = parse_path, help_heading = "Content")]
    pub webtransport_echo: Option<String>,

    /// Don't compress responses
    #[arg(long, help_heading = "Content")]
    pub no_compression: bool,

    /// Don't listen on TCP, for HTTP/2 and HTTP/1.1
    #[arg(long, help_heading = "Network")]
    pub no_tcp: bool,

    /// Also serve files over hq-interop (HTTP/0.9 on QUIC streams), for tests of the transport
    #[arg(long, help_heading = "Network")]
    pub hq: bool,

    /// Address and port to listen on, UDP and TCP; [`DEFAULT_LISTEN`](crate::cli::DEFAULT_LISTEN) by default
    #[arg(
        help = "Address and port to listen on, UDP and TCP [default: [::]:4433]",
        long,
        value_name = "ADDR",
        value_parser = crate::listen_address::parse,
        help_heading = "Network"
    )]
    pub listen: Option<SocketAddr>,

    /// Listen on this address as well, UDP only; repeatable. Clients may open further paths to it
    #[arg(long, value_name = "ADDR", help_heading = "Network")]
    pub also_listen: Vec<SocketAddr>,

    /// Listen on this address as well, and send it to clients as preferred address; one address per
    /// family
    #[arg(long, value_name = "ADDR", help_heading = "Network")]
    pub preferred_address: Vec<SocketAddr>,

    /// Certificate and development certificates.
    #[command(flatten)]
    pub identity: IdentityArgs,

    /// A certificate from an authority.
    #[command(flatten)]
    pub acme: AcmeArgs,

    /// Oldest version of TLS over TCP; HTTP/3 always has 1.3 [default: 1.2]
    #[arg(
        long,
        value_enum,
        value_name = "VERSION",
        help_heading = "Certificates and TLS"
    )]
    pub min_tls: Option<TlsVersion>,

    /// Ask clients for a certificate of the authorities in this PEM file: those without get 403, and tunnels 407 unless
    /// they have a token
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Certificates and TLS",
        conflicts_with = "proxy_for_anyone"
    )]
    pub client_ca: Option<PathBuf>,

    /// Refuse clients whose certificate is revoked by a list in this PEM file, which must have one of every authority
    #[arg(long, value_name = "FILE", help_heading = "Certificates and TLS")]
    pub client_crl: Option<PathBuf>,

    /// Validate every client's address first (Retry)
    #[arg(long, help_heading = "Network")]
    pub retry: bool,

    /// How to treat requests in early data (0-RTT): those with unsafe methods always wait for the
    /// handshake, and replays are rejected [default: accept]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Network")]
    pub zero_rtt: Option<ZeroRtt>,

    /// On Ctrl-C, wait this long for running downloads [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Network")]
    pub grace: Option<Duration>,

    /// Workers that share the port, each with its own thread and connections; 0 means one per
    /// processor [default: 1]
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub workers: Option<usize>,

    /// Write a line for each request to this file, instead of standard output; '-' is standard output, 'off' nowhere
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub access_log: Option<PathBuf>,

    /// Format of the access log [default: common]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Logs")]
    pub log_format: Option<LogFormat>,

    /// Redirect requests over HTTP without TLS at ADDR, such as :80, to HTTPS
    #[arg(
        long,
        value_name = "ADDR",
        value_parser = crate::listen_address::parse,
        help_heading = "Listening"
    )]
    pub http_redirect: Option<SocketAddr>,

    /// Serve metrics for Prometheus at http://ADDR/metrics, preferably on a loopback address
    #[arg(
        long,
        value_name = "ADDR",
        value_parser = crate::listen_address::parse,
        help_heading = "Logs"
    )]
    pub metrics: Option<SocketAddr>,

    /// File with the secret of address tokens and stateless resets, 32 bytes or more, created if
    /// missing: clients detect a restart at once [default: one for each address in the state directory]
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub secrets: Option<PathBuf>,

    /// Tunnels.
    #[command(flatten)]
    pub tunnels: TunnelArgs,

    /// Limits on clients.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Cooperate with tunnels near clients that repair losses and report (TECC), such as 'tunnel serve' for
    /// 'get --proxy PROXY --tecc'; brings its own congestion controller, which is cubic towards other clients
    #[arg(long, conflicts_with_all = ["cc", "feedback"], help_heading = "Transport")]
    pub tecc: bool,

    /// Several paths.
    #[command(flatten)]
    pub multipath: MultipathArgs,

    /// What is done to paths.
    #[command(flatten)]
    pub operations: PathOperationArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per event
    #[arg(long, help_heading = "Logs")]
    pub json: bool,
}

/// Hides rarely changed flags from `-h`.
fn shorten(arg: clap::Arg) -> clap::Arg {
    let rarely = matches!(
        arg.get_help_heading(),
        Some("Transport" | "Limits" | "Tunnels")
    );
    arg.hide_short_help(rarely)
}

/// A proxy for UDP, TCP and IP, as the only content.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Tunnels")]
pub struct TunnelArgs {
    /// Proxy UDP (CONNECT-UDP, RFC 9298) and TCP (CONNECT) for who has a token in this file, a line 'NAME TOKEN' for
    /// each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["directory", "upstream"])]
    pub tokens: Option<PathBuf>,

    /// Of who has a certificate of --client-ca only those may use the proxy whose subject is in this file, a line for each, as
    /// 'CN=bob, O=Example'
    #[arg(long, value_name = "FILE", requires = "client_ca", conflicts_with_all = ["directory", "upstream"])]
    pub client_subjects: Option<PathBuf>,

    /// Proxy for whoever reaches the server: only on closed networks, an open proxy is abused within hours
    #[arg(long, conflicts_with_all = ["tokens", "directory", "upstream"])]
    pub proxy_for_anyone: bool,

    /// Set by `tunnel serve`: the content are tunnels, even if only certificates tell who may use them.
    #[arg(skip)]
    pub only_content: bool,

    /// Pages of the web that may use the proxy.
    #[arg(
        long,
        value_name = "ORIGIN",
        help = "Let pages of this origin use the proxy, such as https://app.example; repeatable. Requests of other pages, \
                which browsers mark with 'Origin', get 403"
    )]
    pub allow_origin: Vec<PageOrigin>,

    /// Port, or range of ports such as 8000-8999, that tunnels may lead to; repeatable [default: 443]
    #[arg(long, value_name = "PORTS")]
    pub target_port: Vec<PortRange>,

    /// Addresses that are not public but may be reached by tunnels, such as 10.1.0.0/16; repeatable
    #[arg(long, value_name = "PREFIX")]
    pub allow_target: Vec<AddressPrefix>,

    /// Addresses that may not be reached by tunnels; repeatable
    #[arg(long, value_name = "PREFIX")]
    pub deny_target: Vec<AddressPrefix>,

    /// What the tunnels of one user may pass together in each direction, such as 100mbit: UDP and IP packets beyond it are
    /// dropped, TCP waits [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub user_bandwidth: Option<UserBandwidth>,

    /// UDP datagrams and IP packets of one user each second, in each direction [default: no limit]
    #[arg(long, value_name = "COUNT")]
    pub user_packets: Option<Count<1, 1_000_000_000>>,

    /// New tunnels for UDP and TCP to one address each second [default: no limit]
    #[arg(long, value_name = "COUNT")]
    pub new_per_target: Option<Count<1, 1_000_000>>,

    /// Proxy IP packets, too (CONNECT-IP, RFC 9484), of clients with addresses of this prefix: one of IPv4, one of IPv6,
    /// or both; repeatable. Linux only, as root or with CAP_NET_ADMIN; the machine has to forward and to translate or
    /// route the addresses itself
    #[arg(long, value_name = "PREFIX")]
    pub ip_pool: Vec<AddressPrefix>,

    /// Name of the TUN device that IP packets pass through [default: swiftwater0]
    #[arg(long, value_name = "NAME", requires = "ip_pool")]
    pub tun: Option<String>,
}

impl TunnelArgs {
    /// The proxy that the flags describe, if they describe one.
    pub(super) fn tunnels(&self, has_client_ca: bool) -> Option<Tunnels> {
        let by_certificate = has_client_ca && self.only_content;
        if self.tokens.is_none() && !self.proxy_for_anyone && !by_certificate {
            return None;
        }
        let mut tunnels = Tunnels {
            tokens: self.tokens.clone(),
            certificates: has_client_ca,
            subjects: self.client_subjects.clone(),
            anyone: self.proxy_for_anyone,
            allow_origins: self.allow_origin.clone(),
            allow: self.allow_target.clone(),
            deny: self.deny_target.clone(),
            user_bandwidth: self.user_bandwidth,
            user_packets: self.user_packets,
            new_per_target: self.new_per_target,
            ip_pool: self.ip_pool.clone(),
            tun: self.tun.clone(),
            ..Tunnels::default()
        };
        if !self.target_port.is_empty() {
            tunnels.ports.clone_from(&self.target_port);
        }
        Some(tunnels)
    }
}

/// Limits on clients.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Concurrent connections, over QUIC and separately over TCP [default: 10000]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<Count<1, 1_000_000>>,

    /// Concurrently open files for responses [default: half of what the system permits, at most
    /// 65536]
    #[arg(long, value_name = "N")]
    pub max_open_files: Option<Count<8, 1_000_000>>,

    /// Bytes of memory for contents of small files; 0: none [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    pub file_cache: Option<Count<0, 1_099_511_627_776>>,

    /// How much later a change of a file in the file cache may be seen [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub file_cache_time: Option<Duration>,

    /// Concurrent requests of one connection, over HTTP/3 and HTTP/2 [default: 100]
    #[arg(long, value_name = "N")]
    pub max_requests: Option<Count<1, 100_000>>,

    /// Bytes of the head of a request [default: 65536]
    #[arg(long, value_name = "BYTES")]
    pub max_header_size: Option<Count<8192, 16_777_216>>,

    /// Fields in the head of a request [default: 100]
    #[arg(long, value_name = "N")]
    pub max_header_count: Option<Count<1, 10_000>>,

    /// Drop a client whose handshake takes longer than this [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub handshake_timeout: Option<Duration>,

    /// Time for the head of a request [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub header_timeout: Option<Duration>,

    /// Longest gap between pieces of the content of a request [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub body_timeout: Option<Duration>,

    /// How long a client may leave a response unread [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub send_timeout: Option<Duration>,

    /// How long a connection may be without a request (TCP), or silent (QUIC) [default: 60s, QUIC 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub idle_timeout: Option<Duration>,
}

/// How a server treats early data.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ZeroRtt {
    /// Process them at once.
    #[default]
    Accept,
    /// Permit none; clients that send them anyway must send the requests again after the handshake.
    Reject,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Eq, Deserialize, PartialEq, Serialize, ValueEnum)]
pub enum TlsVersion {
    /// RFC 5246
    #[value(name = "1.2")]
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446
    #[value(name = "1.3")]
    #[serde(rename = "1.3")]
    Tls13,
}

/// The format of an access log.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// The common log format, a line of text that many programs can read
    #[default]
    Common,
    /// The same with the fields Referer and User-Agent
    Combined,
    /// A JSON object per request, and one per connection
    Json,
}

/// The level of logging to standard error.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Errors of the server.
    Error,
    /// Conditions that may need attention.
    Warn,
    /// Connections, and changes of the configuration.
    Info,
    /// For debugging.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The name as used in log filters.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
