//! The flags of `get`.

use std::path::PathBuf;

use clap::Args;
use swiftwater::link::parse_rate;
use swiftwater::units::Bandwidth;

use crate::cli::TrustArgs;
use crate::migrate::MigrateAfter;
use crate::transport::Tuning;
use crate::url::Url;

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
