//! The flags of `tunnel`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use swiftwater::link::parse_duration;
use swiftwater_tunnel::ip::Scope;
use swiftwater_tunnel::target::Template;

use super::forward::{Forward, local_address};
use crate::cli::TrustArgs;
use crate::commands::serve::args::ServeArgs;
use crate::commands::serve::config::tunnels::{AddressPrefix, is_interface_name};
use crate::duration::parse_positive_duration;
use crate::multipath::PathArgs;
use crate::proxies::{ForwardingTransform, HOP_FORM, HopArg, HttpVersion, parse_template};
use crate::transport::Tuning;

/// `tunnel`.
#[derive(Args, Debug)]
pub struct TunnelArgs {
    /// Which end.
    #[command(subcommand)]
    pub command: TunnelCommand,
}

/// The ends of tunnels.
#[derive(Debug, Subcommand)]
pub enum TunnelCommand {
    /// Proxy UDP (CONNECT-UDP, RFC 9298), TCP (CONNECT) and IP (CONNECT-IP, RFC 9484) over HTTP/3, HTTP/2 and HTTP/1.1
    #[command(
        mut_args(hide_content),
        after_help = "All settings of the server: --help",
        after_long_help = SERVE_EXAMPLES
    )]
    Serve(Box<ServeArgs>),
    /// Lead local addresses through a proxy: forwards of UDP and TCP, SOCKS 5, HTTP CONNECT, a network interface
    Connect(Box<ConnectArgs>),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  swiftwater tunnel serve --tokens tokens.txt --listen 0.0.0.0:443 --cert chain.pem --key key.pem
  swiftwater tunnel serve --tokens tokens.txt --target-port 443 --target-port 8000-8999
  swiftwater tunnel serve --proxy-for-anyone --allow-target 127.0.0.0/8 --target-port 1-65535
  swiftwater tunnel serve --client-ca users-ca.pem --client-crl revoked.pem --listen 0.0.0.0:443
  swiftwater tunnel serve --tokens tokens.txt --ip-pool 198.18.0.0/16 --ip-pool fd00:77::/64
  swiftwater tunnel serve --config /etc/swiftwater/serve.toml

Each line of the file of tokens is a name and a secret of at least 16 characters; who sends it as
'Proxy-Authorization: Bearer SECRET' may open tunnels, and so may who has a certificate of --client-ca. Addresses that are not public are refused unless
--allow-target names them, whatever name leads to them. On SIGHUP the files are read again.

The proxy is 'serve' with tunnels as its content: everything about certificates, logs, metrics and limits there
holds here, and a configuration file may have tunnels beside other content (docs/serve.toml).";

/// Hides the flags for other content than tunnels.
fn hide_content(arg: clap::Arg) -> clap::Arg {
    let of_content =
        matches!(arg.get_help_heading(), Some("Content")) || arg.get_id() == "directory";
    arg.hide(of_content)
}

/// `tunnel connect`.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("local-ends").args(["forwards", "socks", "http", "tun"]).required(true).multiple(true)),
    after_help = "\
Examples:
  swiftwater tunnel connect proxy.example -L 8443:server.example:443 --token-file token.txt
  swiftwater tunnel connect proxy.example -L tcp:2222:server.example:22 --token-file token.txt
  swiftwater tunnel connect proxy.example --socks 1080 --http 8080 --token-file token.txt
  swiftwater tunnel connect proxy.example --socks 1080 --cert me.pem --key me.key
  swiftwater tunnel connect 127.0.0.1:4433 -L 5353:127.0.0.1:53 -L 8443:[2001:db8::1]:443 --insecure
  swiftwater tunnel connect proxy.example --socks 1080 --path wlan0 --path wwan0 --token-file token.txt
  swiftwater tunnel connect exit.example --via near.example,token-file=near.txt --socks 1080 --token-file token.txt
  swiftwater tunnel connect proxy.example -L 8443:server.example:443 --forwarding --token-file token.txt
  swiftwater tunnel connect proxy.example --tun sw0 --route 10.1.0.0/16 --token-file token.txt
  swiftwater tunnel connect 'https://proxy.example/masque{?target_host,target_port}' -L 8443:server.example:443

A proxy of --via has these options: ,token-file=FILE ,ca=FILE ,insecure ,cert=FILE,key=FILE ,http-version=VERSION ,repair
,forwarding[=TRANSFORM]. It is trusted as the last one if nothing else is said. Each proxy of a chain knows its neighbours
only.
Programs then use the local addresses: curl --socks5-hostname 127.0.0.1:1080 URL, curl --proxy 127.0.0.1:8080 URL.
With --path the connection to the proxy has several paths, if the proxy permits it (tunnel serve --multipath).
Each peer and each connection of a local address gets a tunnel of its own. The proxy resolves the names of targets.
Ctrl-C ends all tunnels and prints what passed."
)]
pub struct ConnectArgs {
    /// The proxy.
    #[arg(
        value_name = "PROXY",
        value_parser = parse_template,
        help = "The proxy: HOST[:PORT], or its URI template (RFC 9298) with the variables target_host and target_port"
    )]
    pub proxy: Template,

    /// Lead the connection to the proxy through this one, and those of further ones; repeatable, the nearest first
    #[arg(long, value_name = HOP_FORM)]
    pub via: Vec<HopArg>,

    /// Local addresses and the targets that they lead to.
    #[arg(
        short = 'L',
        long = "local",
        value_name = "FORWARD",
        help = "Local address that leads to a target: [udp:|tcp:][ADDRESS:]PORT:HOST:PORT, UDP by default; repeatable"
    )]
    pub forwards: Vec<Forward>,

    /// Serve SOCKS 5 at this local address, for TCP and UDP to any target; repeatable
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = local_address)]
    pub socks: Vec<SocketAddr>,

    /// Serve HTTP CONNECT at this local address, for TCP to any target; repeatable
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = local_address)]
    pub http: Vec<SocketAddr>,

    /// Make a TUN device of this name that leads through the proxy (CONNECT-IP, RFC 9484): with the addresses that the
    /// proxy assigns, and routes to what it advertises. Linux only, as root or with CAP_NET_ADMIN
    #[arg(long, value_name = "NAME", value_parser = interface_name)]
    pub tun: Option<String>,

    /// Ask the proxy for packets to these targets only: a prefix, an address or a DNS name [default: all]
    #[arg(long, value_name = "TARGET", requires = "tun", value_parser = parse_scope)]
    pub tun_scope: Option<Scope>,

    /// Route only this prefix, of what the proxy advertises, to the TUN device; repeatable [default: all of it]
    #[arg(long = "route", value_name = "PREFIX", requires = "tun")]
    pub routes: Vec<AddressPrefix>,

    /// When the tunnel of the TUN device ends, such as with a restart of the proxy, try for this long to open another one. What
    /// is routed to the device is lost meanwhile, and takes no other way. 0s: end at once [default: 1min]
    #[arg(long, value_name = "TIME", requires = "tun", value_parser = parse_duration)]
    pub tun_retry_max_time: Option<Duration>,

    /// Permit --socks and --http at addresses that other machines reach: who reaches them uses the proxy
    #[arg(long)]
    pub allow_remote_clients: bool,

    /// Version of HTTP to the proxy: auto is HTTP/3, and HTTP/2 or HTTP/1.1 if that has no connection after 3 s
    #[arg(long, value_name = "VERSION", value_enum, default_value_t)]
    pub http_version: HttpVersion,

    /// File whose first line is the token for the proxy, or the name of the user and the token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Certificate chain, PEM, for a proxy that asks for one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Ask the proxy to repair losses on its way to here: it keeps packets of QUIC until they are acknowledged, and
    /// sends lost ones again. Over HTTP/3 only
    #[arg(long, conflicts_with = "forwarding")]
    pub repair: bool,

    /// Ask the proxy to forward packets of QUIC beside the connection to it, without its encryption, congestion control
    /// and loss recovery: 'scramble' hides from who sees both sides of the proxy which packets are the same, 'identity'
    /// does not. Over HTTP/3 only
    #[arg(long, value_name = "TRANSFORM", value_enum,
          num_args = 0..=1, require_equals = true, default_missing_value = "scramble")]
    pub forwarding: Option<ForwardingTransform>,

    /// End a tunnel for UDP without datagrams after this time
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = parse_positive_duration)]
    pub idle_timeout: Duration,

    /// Whose certificates are trusted.
    #[command(flatten)]
    pub trust: TrustArgs,

    /// Paths to the proxy.
    #[command(flatten)]
    pub paths: PathArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per event
    #[arg(long)]
    pub json: bool,
}

/// The name of a network interface.
fn interface_name(text: &str) -> Result<String, String> {
    is_interface_name(text)
        .then(|| text.to_owned())
        .ok_or_else(|| {
            "the name of a network interface has 1 to 15 characters, none of them / : %".to_owned()
        })
}

/// Packets of all protocols to a target.
fn parse_scope(text: &str) -> Result<Scope, String> {
    Scope::new(text, "*").map_err(|error| error.to_string())
}
