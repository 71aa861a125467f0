//! The flags of `get`, and the settings derived from them.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue, Method};
use swiftwater::link::parse_rate;
use swiftwater::units::Bandwidth;
use thiserror::Error;

use super::client::ClientFlags;
use super::selection::SelectArgs;
use crate::cli::TrustArgs;
use crate::duration::parse_positive_duration;
use crate::migrate::MigrateAfter;
use crate::multipath::{PathArgs, PathOperationArgs};
use crate::proxies::UdpProxyArgs;
use crate::size::parse_size;
use crate::transport::Tuning;
use crate::url::Url;

/// `get`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater get https://localhost:4433/video.mp4 --ca ~/.local/state/swiftwater/dev-cert.pem
  swiftwater get https://example.net/a https://example.net/b -o downloads/ -j 4
  swiftwater get https://example.net/big.iso -C
  swiftwater get https://example.net/ -o - -v --protocol h3
  swiftwater get https://example.net/x -o /dev/null --json
  swiftwater get https://example.net/api -d '{\"a\":1}' -H 'Content-Type: application/json'
  swiftwater get https://example.net/upload -X PUT -d @photo.jpg
  swiftwater get https://10.0.0.7:4433/big.bin --insecure --protocol hq -o downloads
  swiftwater get https://example.net/big.iso --protocol h3 --path wlan0 --path wwan0,backup
  swiftwater get https://127.0.0.1:4433/big.bin --insecure --protocol h3 --path 127.0.0.1 --path 127.0.0.2 --json
  swiftwater get https://example.net/big.iso --proxy proxy.example --proxy-token-file token.txt
  swiftwater get https://example.net/big.iso --proxy proxy.example --path wlan0 --path wwan0
  swiftwater get https://example.net/{a,b,c,d,e,f,g} -o downloads/ --select wise --json
  swiftwater get https://example.net/x --select plus --select-arms h2,h3,h3:bbr1 --select-state selection.json

With --path a QUIC connection has several paths at once, if the server permits it (serve --multipath): each is
opened when its address appears, and again when it failed. Each JSON object then lists the paths of its
connection. With --proxy they are paths to the proxy (tunnel serve --multipath), and the connection to the server sees one.

Files of one server share connections. Without --protocol, HTTP/3 and TCP race, HTTP/3 first. With --select, each
request after the first goes over what completes requests sooner; GET and HEAD without content may then be sent twice.

A file has its final name only when it is complete; until then it is called .NAME.part, and what the server
calls its version is in .NAME.part.json. If the connection is lost, get continues by itself a few times, as long as
more arrives within a minute (--retry-max-time). What is then missing, or after an interruption, -C fetches; if the file changed meanwhile, all of it. Servers that
name no version (a strong ETag or an old enough Last-Modified) make that impossible: nothing is kept.

Statuses from 400 up, and redirects unless -L follows them, are failures (exit code 13) and write no file.
-L goes from https to http never. To another origin it takes only fields that say nothing of you (Accept,
User-Agent, Range, If-... and the like), not Authorization, Cookie or fields of your own, unless
--location-trusted is given.

Where QUIC failed and TCP worked is remembered between runs, for a minute and longer each time, in
quic-failures.json in $XDG_STATE_HOME/swiftwater or ~/.local/state/swiftwater; --no-state leaves that out.

Over TCP, servers must speak TLS 1.2 or 1.3; QUIC has 1.3 only.

--protocol hq speaks HTTP/0.9 on QUIC streams (hq-interop), for tests of the transport: no flags about requests
and responses, -o is always a directory, and interrupted files can't be continued.")]
pub struct GetArgs {
    /// Addresses: https://host:port/path (port 443 if left out), or http://
    #[arg(value_name = "URL", required = true)]
    pub urls: Vec<Url>,

    /// Where to write: a directory if it is one, ends in '/' or there are several addresses; otherwise a
    /// file, and - is standard output [default: the present directory; standard output unless the method is
    /// GET]
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Overwrite files that exist
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,

    /// Continue incomplete downloads of an earlier get; files that exist are complete
    #[arg(
        short = 'C',
        long = "continue",
        conflicts_with = "force",
        help_heading = "Output"
    )]
    pub continuation: bool,

    /// Which protocols to use
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHICH",
        help_heading = "Protocol"
    )]
    pub protocol: Protocol,

    /// The choice between TCP and QUIC request by request.
    #[command(flatten)]
    pub selection: SelectArgs,

    /// Content and fields to send, and parts of the response to show.
    #[command(flatten)]
    pub request: RequestArgs,

    /// The certificates to trust.
    #[command(flatten)]
    pub trust: TrustArgs,

    /// Abort a URL after this time, redirects and continuations included
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration, help_heading = "Limits")]
    pub max_time: Option<Duration>,

    /// Repeat a request up to this many times if the server is unreachable or busy (408, 429, 500, 502,
    /// 503, 504); only methods that may be repeated
    #[arg(long, value_name = "TIMES", default_value_t = 0, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retry: u32,

    /// Give a URL up when it has failed, was requested again, and nothing more of it has arrived for this time: its server,
    /// or the proxy, is gone [default: 1min; none with --retry]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration, help_heading = "Limits")]
    pub retry_max_time: Option<Duration>,

    /// Concurrent downloads
    #[arg(short = 'j', long, value_name = "N", default_value_t = 8, help_heading = "Limits",
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub parallel: u16,

    /// Migrate to another local address after this much content over QUIC, e.g. 1MB (another port),
    /// 1MB,192.0.2.7 or 1MB,192.0.2.7:5000
    #[arg(long, value_name = "SIZE[,ADDR]", help_heading = "Protocol")]
    pub migrate_after: Option<MigrateAfter>,

    /// Limit the rate of each server, e.g. 20mbit (content, on average)
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Limits")]
    pub limit_rate: Option<Bandwidth>,

    /// Abort a URL with more content than this, counted after decompression [default: none; 1GB with
    /// --compressed]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub max_filesize: Option<u64>,

    /// A proxy for UDP.
    #[command(flatten)]
    pub proxy: UdpProxyArgs,

    /// Several paths.
    #[command(flatten)]
    pub paths: PathArgs,

    /// What is done to paths.
    #[command(flatten)]
    pub operations: PathOperationArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Fetch the first URL of each server, then connect again for the rest, resuming the TLS session
    /// over QUIC
    #[arg(long, help_heading = "Protocol")]
    pub tls_resume: bool,

    /// As --tls-resume, and send requests before the handshake is complete (0-RTT), if their method is
    /// safe
    #[arg(long, help_heading = "Protocol")]
    pub zero_rtt: bool,

    /// Neither read nor write state kept between runs (the record of QUIC failures)
    #[arg(long, help_heading = "Protocol")]
    pub no_state: bool,

    /// Print one JSON object per address, then one with totals
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Limit of decompressed content with `--compressed`, bytes, unless `--max-filesize` is given: a few bytes can
/// expand by a factor of a thousand and more.
const MAX_DECOMPRESSED: u64 = 1_000_000_000;

impl GetArgs {
    /// Bytes of content beyond which a URL is aborted.
    pub(super) fn max_size(&self) -> Option<u64> {
        let default = self.request.compressed.then_some(MAX_DECOMPRESSED);
        self.max_filesize.or(default)
    }

    /// The flags that matter for the client.
    pub(super) fn client(&self) -> ClientFlags<'_> {
        ClientFlags {
            trust: &self.trust,
            tuning: &self.tuning,
            paths: &self.paths,
            host: self.only_host(),
            protocol: self.protocol,
            zero_rtt: self.zero_rtt,
            limit_rate: self.limit_rate,
            feedback: None,
            no_state: self.no_state,
            selection: Some(&self.selection),
            proxy: &self.proxy,
        }
    }

    /// The host of the URLs, if it is one.
    pub(super) fn only_host(&self) -> Option<&str> {
        let mut hosts = self.urls.iter().map(Url::host);
        let first = hosts.next()?;
        hosts.all(|host| host == first).then_some(first)
    }
}

/// Content and fields of the request, and the parts of the response to show.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Method [default: GET; with -d POST, with -I HEAD]
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub method: Option<Method>,

    /// A field of the request; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<Header>,

    /// Content: text, @FILE, or @- for standard input. Its type is application/x-www-form-urlencoded for text
    /// and application/octet-stream otherwise, unless set by -H
    #[arg(short, long, value_name = "DATA|@FILE")]
    pub data: Option<Data>,

    /// Request only the head of the response (HEAD), and print it
    #[arg(short = 'I', long, conflicts_with_all = ["method", "data"])]
    pub head: bool,

    /// Print the head of the response to standard output
    #[arg(short, long, conflicts_with = "json", help_heading = "Output")]
    pub include: bool,

    /// Follow redirects, up to ten in a row
    #[arg(short = 'L', long)]
    pub location: bool,

    /// As -L, and send all fields of -H to other origins too, including Authorization and Cookie
    #[arg(long)]
    pub location_trusted: bool,

    /// Request compressed content (gzip, br, zstd), and decompress it
    #[arg(long, conflicts_with = "continuation")]
    pub compressed: bool,

    /// Write the content of failed responses too
    #[arg(long, help_heading = "Output")]
    pub fail_with_body: bool,
}

/// Which protocols may carry requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Protocol {
    /// HTTP/3 with HTTP/2 and HTTP/1.1 starting 100 ms later, whichever connects first
    #[default]
    Auto,
    /// HTTP/3 only
    H3,
    /// HTTP/3, and the others only if it fails
    PreferH3,
    /// HTTP/2 or HTTP/1.1, as the server chooses
    Tcp,
    /// HTTP/1.1 only
    #[value(name = "http1.1", alias = "h1")]
    Http1,
    /// HTTP/0.9 on QUIC streams (hq-interop)
    Hq,
}

/// A field of a request, `Name: value`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    /// The name.
    pub name: HeaderName,
    /// The value; empty if nothing follows the colon.
    pub value: HeaderValue,
}

/// A text that is not a field, or a field that can't be set.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum HeaderError {
    /// There is no colon, or a character that is not permitted in a name or value.
    #[error("write 'Name: value'")]
    Malformed,
    /// It belongs to the connection, or follows from the URL or the content (RFC 9110, section 7.6.1).
    #[error("'{0}' follows from the address, the content or the protocol, and can't be set")]
    Reserved(HeaderName),
}

/// Fields set by the client or not defined for HTTP/2 and HTTP/3.
const RESERVED: [HeaderName; 7] = [
    http::header::CONNECTION,
    http::header::CONTENT_LENGTH,
    http::header::HOST,
    http::header::TE,
    http::header::TRANSFER_ENCODING,
    http::header::UPGRADE,
    http::header::EXPECT,
];

impl FromStr for Header {
    type Err = HeaderError;

    fn from_str(text: &str) -> Result<Self, HeaderError> {
        let (name, value) = text.split_once(':').ok_or(HeaderError::Malformed)?;
        let name: HeaderName = name.trim().parse().map_err(|_| HeaderError::Malformed)?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| HeaderError::Malformed)?;
        if RESERVED.contains(&name) {
            return Err(HeaderError::Reserved(name));
        }
        Ok(Self { name, value })
    }
}

/// The content of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Data {
    /// Text from the command line.
    Text(String),
    /// A file, read while it is sent.
    File(PathBuf),
    /// Standard input, which can be read once.
    Stdin,
}

impl FromStr for Data {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix('@') {
            None => Self::Text(text.to_owned()),
            Some("-") => Self::Stdin,
            Some(path) => Self::File(path.into()),
        })
    }
}
