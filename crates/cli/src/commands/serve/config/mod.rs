//! The configuration of `serve`, from a file and flags.
//!
//! - this module: its parts, their defaults and meanings.
//! - [`values`]: values that are checked as they are read.
//! - [`acme`]: a certificate from an authority.
//! - [`tunnels`]: routes that proxy UDP and TCP.
//! - `read`: reads and validates a file, errors with their line.
//! - `flags`: overrides by flags.

pub mod acme;
mod flags;
mod read;
pub mod tunnels;
pub mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swiftwater::quic::UsedTokens;
use swiftwater_http::web::files::FileCache;
use swiftwater_http::web::response_budget::ResponseBudget;
use toml::Spanned;

use acme::Acme;
pub use flags::effective;
pub use read::{ConfigError, parse, read};
use tunnels::Tunnels;
use values::{
    CheckPath, Count, Fields, HostPattern, Period, RedirectStatus, RedirectTarget, RoutePath,
    Upstreams,
};

use super::args::{LogFormat, LogLevel, TlsVersion, ZeroRtt};
use crate::cli::DEFAULT_LISTEN;
use crate::multipath::MultipathOffer;

/// All settings of a server. The keys are those of the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address and port to listen on, UDP and TCP. Default: `[::]:4433`.
    #[serde(deserialize_with = "values::address")]
    pub listen: SocketAddr,
    /// Whether to listen on TCP, for HTTP/2 and HTTP/1.1. Default: yes.
    pub tcp: bool,
    /// Whether files are also served over `hq-interop`. Default: no.
    pub hq: bool,
    /// Further addresses that are sent to clients as preferred address (RFC 9000, section 9.6).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferred_addresses: Vec<SocketAddr>,
    /// Further addresses to listen on, UDP only: clients may connect there, and open further paths to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_listen: Vec<SocketAddr>,
    /// Workers that share the UDP port; 0 means one per processor. Default: 1.
    pub workers: usize,
    /// How long requests in progress may take when the server stops. Default: 30 s.
    pub grace: Period,
    /// Whether responses are compressed for clients that accept it. Default: yes.
    pub compression: bool,
    /// Certificates; a client gets the first that is valid for its server name, else the first of
    /// all. Default: a development certificate.
    #[serde(rename = "certificate", skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateFiles>,
    /// A certificate that the server gets by itself; it comes after those of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acme: Option<Spanned<Acme>>,
    /// TLS.
    pub tls: Tls,
    /// Limits on clients.
    pub limits: Limits,
    /// Logs.
    pub log: Log,
    /// HTTP without TLS.
    pub http: Http,
    /// Metrics for Prometheus.
    pub metrics: Metrics,
    /// QUIC.
    pub transport: Transport,
    /// The content, by host.
    #[serde(rename = "site")]
    pub sites: Vec<Spanned<Site>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: default_listen(),
            tcp: true,
            hq: false,
            preferred_addresses: Vec::new(),
            also_listen: Vec::new(),
            workers: 1,
            grace: Period::seconds(30),
            compression: true,
            certificates: Vec::new(),
            acme: None,
            tls: Tls::default(),
            limits: Limits::default(),
            log: Log::default(),
            http: Http::default(),
            metrics: Metrics::default(),
            transport: Transport::default(),
            sites: Vec::new(),
        }
    }
}

fn default_listen() -> SocketAddr {
    // A constant that a test parses.
    DEFAULT_LISTEN
        .parse()
        .unwrap_or_else(|_| SocketAddr::from(([0; 16], 4433)))
}

/// A certificate and its key, PEM.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub cert: PathBuf,
    /// The private key. May be the same file.
    pub key: PathBuf,
}

/// TLS.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// The oldest version over TCP; HTTP/3 always has TLS 1.3. Default: 1.2.
    pub min_version: TlsVersion,
    /// Further names of the development certificate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// File of authorities, PEM: clients are asked for a certificate of one of them. Default: they are not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
    /// File of the revocation lists of these authorities, PEM. Default: none, nothing is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_crl: Option<PathBuf>,
    /// Directory of the development certificate and of the per-address secrets. Default: the state directory of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            min_version: TlsVersion::Tls12,
            names: Vec::new(),
            client_ca: None,
            client_crl: None,
            state_dir: None,
        }
    }
}

/// Limits on clients. All hold for HTTP/3 and TCP unless stated otherwise.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Concurrent connections, over QUIC and separately over TCP. Default: 10 000.
    pub connections: Count<1, 1_000_000>,
    /// Connections are shared by client address, so that no client can take all: beyond its share a client's
    /// connections are refused. Switch it off behind a load balancer that hides addresses. Default: true.
    pub share_by_address: bool,
    /// Files open at once for responses of all clients; at most half of what the process may have open.
    /// Default: that half, but no more than 65 536.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<Count<8, 1_000_000>>,
    /// Memory for contents of small files, bytes; 0 for none. Default: 64 MiB.
    pub file_cache: Count<0, 1_099_511_627_776>,
    /// How long a content in the file cache is served without a look at its file: a change is seen this much later at
    /// most. Default: 1 s.
    pub file_cache_time: Period,
    /// Concurrent requests of one connection, over HTTP/3 and HTTP/2. Default: 100.
    pub requests: Count<1, 100_000>,
    /// Bytes of the head of a request; larger ones are answered with 431. Default: 64 KiB.
    pub header_size: Count<8192, 16_777_216>,
    /// Fields in the head of a request; more are answered with 431. Default: 100.
    pub header_count: Count<1, 10_000>,
    /// Time for the handshake. Default: 10 s.
    pub handshake_timeout: Period,
    /// Time for the head of a request. Default: 15 s.
    pub header_timeout: Period,
    /// The longest gap between pieces of a request's content. Default: 30 s.
    pub body_timeout: Period,
    /// Least average rate of a request's content after its first 10 s, bytes per second. Default:
    /// 500.
    pub body_rate: u64,
    /// How long a client may leave a response unread. Default: 30 s.
    pub send_timeout: Period,
    /// Memory of responses that clients have not read yet, bytes, of all connections together. Default:
    /// 256 MiB.
    pub response_memory: Count<1_048_576, 1_099_511_627_776>,
    /// Bytes in which used address validation tokens are recorded, so that none is accepted twice; 6 for each
    /// that clients use within two weeks. Default: 2 MiB.
    pub token_memory: Count<65_536, 4_294_967_296>,
    /// How long a connection may be without a request (TCP), or silent (QUIC). Default: 60 s, and 30 s
    /// for QUIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Period>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: Count::clamped(10_000),
            share_by_address: true,
            open_files: None,
            file_cache: Count::clamped(FileCache::DEFAULT_BYTES),
            file_cache_time: Period(FileCache::DEFAULT_VALIDITY),
            requests: Count::clamped(100),
            header_size: Count::clamped(64 << 10),
            header_count: Count::clamped(100),
            handshake_timeout: Period::seconds(10),
            header_timeout: Period::seconds(15),
            body_timeout: Period::seconds(30),
            body_rate: 500,
            send_timeout: Period::seconds(30),
            response_memory: Count::clamped(ResponseBudget::DEFAULT_BYTES as u64),
            token_memory: Count::clamped(UsedTokens::DEFAULT_MEMORY.get()),
            idle_timeout: None,
        }
    }
}

/// The name that stands for no access log.
pub const OFF: &str = "off";

/// Logs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// What goes to standard error. Default: errors, unless `-v` or RUST_LOG is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    /// File of the access log, `-` for standard output, `off` for no lines of requests at all. Default: none, and lines on
    /// standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<PathBuf>,
    /// Format of the access log. Default: common.
    pub format: LogFormat,
    /// Whether the access log shows queries, which often hold secrets. Default: no.
    pub query: bool,
}

/// HTTP without TLS: all requests are redirected.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Address and port to listen on, usually port 80. Default: none.
    #[serde(
        deserialize_with = "values::some_address",
        skip_serializing_if = "Option::is_none"
    )]
    pub listen: Option<SocketAddr>,
    /// Where requests are redirected. Default: the same host and path over HTTPS, at the port of `listen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<RedirectTarget>,
}

/// Metrics for Prometheus.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// Address where they are served without TLS, at `/metrics`. Default: none.
    #[serde(
        deserialize_with = "values::some_address",
        skip_serializing_if = "Option::is_none"
    )]
    pub listen: Option<SocketAddr>,
}

/// QUIC. Absent values are those of the profile.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transport {
    /// Settings for a kind of traffic. Default: web.
    #[serde(
        deserialize_with = "values::profile",
        skip_serializing_if = "Option::is_none"
    )]
    pub profile: Option<String>,
    /// Congestion controller.
    #[serde(
        deserialize_with = "values::controller",
        skip_serializing_if = "Option::is_none"
    )]
    pub cc: Option<String>,
    /// How losses are repaired.
    #[serde(
        deserialize_with = "values::recovery",
        skip_serializing_if = "Option::is_none"
    )]
    pub recovery: Option<String>,
    /// Whether the server cooperates with tunnels near clients that repair losses and report (TECC), with its own
    /// congestion controller. Default: no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tecc: Option<Spanned<bool>>,
    /// Whether clients may open several paths in a connection (RFC 10069). Default: no.
    pub multipath: bool,
    /// Paths that may be open at once, with `multipath`. Default: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_paths: Option<Count<1, 8>>,
    /// Which path carries the next packet, with `multipath`. Default: min-rtt.
    #[serde(
        deserialize_with = "values::scheduler",
        skip_serializing_if = "Option::is_none"
    )]
    pub scheduler: Option<String>,

    /// What players of video are told about the paths, and whether what they tell is accepted; `None` for nothing.
    #[serde(
        deserialize_with = "values::feedback",
        skip_serializing_if = "Option::is_none"
    )]
    pub feedback: Option<String>,
    /// Which versions of the multipath extension are declared, with `multipath`. Default: rfc10069.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multipath_version: Option<MultipathOffer>,
    /// Initial congestion window, packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Count<2, 10_000>>,
    /// Largest UDP payload that path MTU discovery probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_datagram_size: Option<Count<1200, 65_527>>,
    /// Directory for qlog files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qlog: Option<PathBuf>,
    /// How to treat early data. Default: accept.
    pub zero_rtt: ZeroRtt,
    /// Whether every client's address is validated first (Retry). Default: no.
    pub retry: bool,
    /// File with the secret of address tokens and stateless resets; created if missing. Default: one
    /// for each address in the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<PathBuf>,
}

/// Content of some hosts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Site {
    /// Host names; none means all hosts of no other site.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPattern>,
    /// Whether clients need a certificate. Default: no.
    #[serde(skip_serializing_if = "is_false")]
    pub client_certificate: bool,
    /// Fields of all responses; an empty value removes a field.
    #[serde(skip_serializing_if = "Fields::is_empty")]
    pub headers: Fields,
    /// Routes; the longest matching path applies.
    #[serde(rename = "route")]
    pub routes: Vec<Spanned<Route>>,
}

/// Content below a path: a directory, upstreams, a redirection or tunnels, only one of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The path. Default: all.
    #[serde(default = "RoutePath::root")]
    pub path: RoutePath,
    /// The directory; the route's path is removed before files are looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The upstreams, which get whole paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Upstreams>,
    /// The address that requests are redirected to, with `{path}` for what follows the route's path, and `{host}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<RedirectTarget>,
    /// Redirection: its status. Default: 308.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RedirectStatus>,
    /// Tunnels for UDP and TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnels: Option<Tunnels>,
    /// Directory: list directories that have no index.
    #[serde(default, skip_serializing_if = "is_false")]
    pub listing: bool,
    /// Directory: the page of a single-page application, relative to the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spa: Option<PathBuf>,
    /// Directory: serve names with a leading dot.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Directory: serve `x.br`, `x.zst`, `x.gz` for `x` to clients that accept them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub precompressed: bool,
    /// Directory: follow symbolic links that lead out of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub follow_symlinks: bool,
    /// Directory: the value of `Cache-Control`.
    #[serde(
        default,
        deserialize_with = "values::field_value",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache_control: Option<String>,
    /// Upstream: remove the route's path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strip_path: bool,
    /// Upstream: send the client's host, instead of the upstream's own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub preserve_host: bool,
    /// Upstream: the host that it gets, whatever the client's is.
    #[serde(
        default,
        deserialize_with = "values::upstream_host",
        skip_serializing_if = "Option::is_none"
    )]
    pub upstream_host: Option<String>,
    /// Upstream over TLS: the name that is asked for and must be in its certificate. Default: its host.
    #[serde(
        default,
        deserialize_with = "values::upstream_name",
        skip_serializing_if = "Option::is_none"
    )]
    pub upstream_name: Option<String>,
    /// Upstream over TLS: file of the certificates that are trusted, PEM. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_ca: Option<PathBuf>,
    /// Upstream over TLS: file of the certificate chain that it gets if it asks for one, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_cert: Option<PathBuf>,
    /// Upstream over TLS: file of the key of `upstream_cert`, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_key: Option<PathBuf>,
    /// Upstream: trust the `Forwarded` and `X-Forwarded-*` fields of clients, as behind another
    /// proxy.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trust_forwarded: bool,
    /// Upstream: time to connect. Default: 5 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Period>,
    /// Upstream: time for the head of a response, from the last piece of the request. Default: 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_timeout: Option<Period>,
    /// Upstream: longest gap between pieces of a response. Default: 120 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_timeout: Option<Period>,
    /// Upstream: forward WebSocket. Default: yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<bool>,
    /// Upstream: how long a WebSocket connection may be without a byte either way. Default: 10 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket_timeout: Option<Period>,
    /// Upstream: path that is requested regularly to see whether the upstream works. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_path: Option<CheckPath>,
    /// Upstream: time between these requests. Default: 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_interval: Option<Period>,
    /// Fields of responses, in addition to those of the site; an empty value removes a field.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub headers: Fields,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde requires"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Config {
    /// What is missing for the certificates of clients, if anything is.
    pub(super) fn client_problem(&self) -> Option<&'static str> {
        if self.tls.client_ca.is_some() {
            return None;
        }
        let mut sites = self.sites.iter().map(Spanned::get_ref);
        let mut routes = sites.clone().flat_map(|site| &site.routes);
        let by_certificate = |tunnels: &Tunnels| tunnels.certificates;
        if self.tls.client_crl.is_some() {
            return Some("client_crl needs a client_ca");
        }
        if sites.any(|site| site.client_certificate) {
            return Some("client_certificate = true needs client_ca in [tls]");
        }
        let is_needed = routes.any(|it| it.get_ref().tunnels.as_ref().is_some_and(by_certificate));
        is_needed.then_some("certificates = true of tunnels needs client_ca in [tls]")
    }
}

impl Transport {
    /// Whether the server cooperates with tunnels.
    pub(in crate::commands::serve) fn has_tecc(&self) -> bool {
        self.tecc.as_ref().is_some_and(|tecc| *tecc.get_ref())
    }

    /// What contradicts the cooperation with tunnels, if anything does.
    pub(super) fn tecc_problem(&self) -> Option<&'static str> {
        let contradicted = self.cc.is_some() || self.feedback.is_some();
        let problem = "tecc brings its own congestion controller and feedback: leave out cc and feedback, or tecc";
        (self.has_tecc() && contradicted).then_some(problem)
    }
}
