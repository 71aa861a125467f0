//! The command line, which is the same for every peer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::hq::Url;

/// A side that is to update its keys does so each time a stream has moved this many bytes.
pub const KEY_UPDATE_AFTER: u64 = 100_000;

/// A client that is to migrate does so when it has received this many bytes.
pub const MIGRATE_AFTER: u64 = 200_000;

/// A client that is to resume its session waits this long, after the first file, for the ticket.
pub const TICKET_WAIT: Duration = Duration::from_millis(200);

/// Idle time limit; long enough for probes that back off under heavy loss.
pub const IDLE: Duration = Duration::from_secs(40);

/// Exit code of a program whose library lacks a requested feature.
const UNABLE: i32 = 3;

/// Which cipher suites are offered and accepted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Suite {
    /// Whatever the library prefers.
    #[default]
    Any,
    /// `TLS_AES_128_GCM_SHA256` only.
    Aes128,
    /// `TLS_AES_256_GCM_SHA384` only.
    Aes256,
    /// `TLS_CHACHA20_POLY1305_SHA256` only.
    Chacha20,
}

/// Serves the files of a directory.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ServerArguments {
    /// Directory with the files.
    #[arg(long)]
    pub dir: PathBuf,
    /// UDP address.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM.
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key, PEM.
    #[arg(long)]
    pub key: PathBuf,
    /// Validate each client's address with a Retry packet.
    #[arg(long)]
    pub retry: bool,
    /// Accept requests in 0-RTT.
    #[arg(long)]
    pub zero_rtt: bool,
    /// Update keys each time this much was sent (100 kB).
    #[arg(long)]
    pub key_update: bool,
    /// Take connections of version 1 to version 2 by compatible negotiation (RFC 9368).
    #[arg(long)]
    pub v2: bool,
    /// Speak no version but this, in hexadecimal, for example ff00001d.
    #[arg(long, value_parser = version)]
    pub quic_version: Option<u32>,
    /// Cipher suite.
    #[arg(long, value_enum, default_value_t)]
    pub suite: Suite,
}

/// Downloads files over one connection, all of them at the same time.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ClientArguments {
    /// What to get; all from the same server.
    #[arg(required = true)]
    pub urls: Vec<Url>,
    /// Where to put the files.
    #[arg(long)]
    pub out: PathBuf,
    /// Trusted certificates, PEM.
    #[arg(long)]
    pub ca: PathBuf,
    /// Get each file over a separate connection, one after the other.
    #[arg(long, conflicts_with_all = ["resume", "zero_rtt"])]
    pub per_connection: bool,
    /// Get the first file, and the others over a second connection that resumes the session.
    #[arg(long, conflicts_with = "zero_rtt")]
    pub resume: bool,
    /// As with `--resume`, the second connection's requests being sent in 0-RTT.
    #[arg(long)]
    pub zero_rtt: bool,
    /// Move to another local address after 200 kB.
    #[arg(long)]
    pub migrate: bool,
    /// Update keys each time a file has brought this much (100 kB).
    #[arg(long)]
    pub key_update: bool,
    /// Begin with version 1 and get to version 2 by compatible negotiation (RFC 9368).
    #[arg(long)]
    pub v2: bool,
    /// Version of the first packets, in hexadecimal, for example ff00001d.
    #[arg(long, value_parser = version)]
    pub quic_version: Option<u32>,
    /// Cipher suite.
    #[arg(long, value_enum, default_value_t)]
    pub suite: Suite,
}

fn version(text: &str) -> Result<u32, std::num::ParseIntError> {
    u32::from_str_radix(text.trim_start_matches("0x"), 16)
}

/// Ends the program, with a line for the harness, if its library lacks a requested feature: nothing is
/// left out silently. Each entry is a missing feature, and whether it was requested.
pub fn refuse(stack: &str, lacking: &[(&str, bool)]) {
    if let Some((what, _)) = lacking.iter().find(|(_, asked)| *asked) {
        eprintln!("unsupported: {stack} {what}");
        std::process::exit(UNABLE);
    }
}

/// What one connection of a client is for.
#[derive(Clone, Debug)]
pub struct Round {
    /// The files.
    pub urls: Vec<Url>,
    /// The requests are to be sent in 0-RTT.
    pub early: bool,
}

impl ClientArguments {
    /// The connections to make, one after the other.
    #[must_use]
    pub fn rounds(&self) -> Vec<Round> {
        let round = |urls: &[Url], early| Round {
            urls: urls.to_vec(),
            early,
        };
        if self.per_connection {
            self.urls.chunks(1).map(|url| round(url, false)).collect()
        } else if self.resume || self.zero_rtt {
            let (first, rest) = self.urls.split_at(1);
            vec![round(first, false), round(rest, self.zero_rtt)]
        } else {
            vec![round(&self.urls, false)]
        }
    }
}

/// The local address to start from: any, of the server's family.
#[must_use]
pub fn local_address(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// The local address to move to: another address of the loopback network if the server is there,
/// else just another port.
#[must_use]
pub fn second_address(server: SocketAddr) -> SocketAddr {
    match server.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => (Ipv4Addr::new(127, 0, 0, 2), 0).into(),
        _ => local_address(server),
    }
}
