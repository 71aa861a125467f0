//! Configures the HTTP client from the flags of commands that send requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swiftwater::units::Bandwidth;
use swiftwater::{Client, MemorySessionStore};
use swiftwater_http::client::{
    BackOff, BuildError, HttpClient, KnownFailure, Policy, Proxies, Timeouts,
};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_tunnel::client::ProxyResolver;
use tokio::time::timeout;

use super::args::Protocol;
use super::selection::SelectArgs;
use super::{quic_failures, trust};
use crate::cli::TrustArgs;
use crate::exit::{Exit, Failure};
use crate::identity::default_state_dir;
use crate::multipath::PathArgs;
use crate::output;
use crate::proxies::{ChainSettings, UdpProxy, UdpProxyArgs};
use crate::transport::{Tuning, build_failure, client};

/// Time limit of QUIC's handshake where TCP is an alternative.
const QUIC_TIME_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for the head of a response, for requests that the server processes for long.
const HEAD_PATIENCE: Duration = Duration::from_secs(300);

/// After this time without a packet from the server, a PING is sent: slow responses do not end a connection,
/// and a server that was restarted sends a stateless reset at once.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Pause after a failure of QUIC, in this run and later ones.
const BACK_OFF: BackOff = BackOff {
    first: Duration::from_secs(60),
    longest: Duration::from_secs(24 * 60 * 60),
};

/// How long the end of the program waits until CONNECTION_CLOSE is sent.
const FAREWELL: Duration = Duration::from_millis(500);

/// The same without a connection, but perhaps with an attempt.
const SHORT_FAREWELL: Duration = Duration::from_millis(20);

/// H3_NO_ERROR (RFC 9114, section 8.1).
const NO_ERROR: u64 = 0x100;

/// The flags that matter for the client.
#[derive(Clone, Copy)]
pub(crate) struct ClientFlags<'a> {
    pub(crate) trust: &'a TrustArgs,
    pub(crate) tuning: &'a Tuning,
    pub(crate) paths: &'a PathArgs,
    /// The only host that requests go to, if there is one.
    pub(crate) host: Option<&'a str>,
    pub(crate) protocol: Protocol,
    /// Requests before the handshake is complete.
    pub(crate) zero_rtt: bool,
    /// Limit of what arrives.
    pub(crate) limit_rate: Option<Bandwidth>,
    /// What is told to the server's policies, by name.
    pub(crate) feedback: Option<&'a str>,
    /// Neither read nor write what earlier runs recorded.
    pub(crate) no_state: bool,
    /// The choice between TCP and QUIC request by request.
    pub(crate) selection: Option<&'a SelectArgs>,
    /// The proxy that HTTP/3 goes through.
    pub(crate) proxy: &'a UdpProxyArgs,
}

/// The client, and its QUIC side if it has one.
pub(crate) struct Clients {
    pub(crate) http: HttpClient,
    pub(crate) quic: Option<Client>,
    /// The connection to the proxy, if there is one.
    proxy: Option<UdpProxy>,
    /// File of the record of QUIC failures.
    memory: Option<PathBuf>,
    remembered: Vec<KnownFailure>,
}

impl Clients {
    /// Must be called inside the runtime.
    pub(crate) fn new(flags: ClientFlags<'_>) -> Result<Self, Failure> {
        let time_limit = flags.trust.connect_timeout;
        let trusted = trust(flags.trust)?;
        let settings = ChainSettings {
            time_limit,
            tuning: flags.tuning,
            paths: flags.paths,
        };
        let proxy = flags.proxy.open(&trusted, &settings)?;
        // Proxies are connected to first, and what the first connection fails of is the reason.
        let proxies = proxy.as_ref().map_or(0, |proxy| proxy.chain.len());
        let quic_limit = time_limit * u32::try_from(proxies + 1).unwrap_or(u32::MAX);
        let mut quic = client(&trusted, ALPN_HTTP3, flags.tuning)
            .sessions(Some(Arc::new(MemorySessionStore::default())))
            .early_data(flags.zero_rtt)
            .transport(|transport| {
                transport.handshake_timeout = quic_limit;
                transport.receive_rate = flags.limit_rate;
                transport.keep_alive_interval.get_or_insert(KEEP_ALIVE);
            });
        if let Some(feedback) = flags.feedback {
            quic = quic.feedback(feedback);
        }
        // Through a proxy the connection sees one path: those of the flags lead to the proxy.
        let quic = match &proxy {
            Some(proxy) => proxy.apply(quic),
            None => flags.paths.apply(quic, flags.host)?,
        };
        let tls = quic.tls_over_tcp().map_err(|error| build_failure(&error))?;
        let policy = match &proxy {
            Some(_) => policy_through_proxy(flags.protocol)?,
            None => policy(flags.protocol),
        };
        let proxies = Proxies::from_env().map_err(|error| Failure::new(Exit::Usage, error))?;
        let mut builder = HttpClient::builder()
            .tls(tls)
            .http1_only(flags.protocol == Protocol::Http1)
            .proxies(proxies)
            .policy(policy)
            // HTTPS records are not looked up: without this, HTTP/3 would never be attempted for a
            // single URL.
            .assume_http3(true)
            .early_data(flags.zero_rtt)
            .tcp_statistics(true)
            .back_off(BACK_OFF)
            .timeouts(Timeouts {
                resolve: time_limit,
                connect: time_limit,
                handshake: time_limit,
                quic: match policy {
                    Policy::Http3Only => quic_limit,
                    _ => time_limit.min(QUIC_TIME_LIMIT),
                },
                head: HEAD_PATIENCE,
                ..Timeouts::default()
            });
        if let Some(proxy) = &proxy {
            builder = builder.resolver(ProxyResolver::new(Arc::clone(&proxy.carrier)));
        }
        if let Some(args) = flags.selection
            && let Some(select) = args.select(flags.protocol)?
        {
            builder = builder.protocol(select);
        }
        let (mut kept, mut memory, mut remembered) = (None, None, Vec::new());
        if policy != Policy::NoHttp3 {
            let quic = quic.build().map_err(|error| build_failure(&error))?;
            builder = builder.quic(quic.endpoint().clone(), quic.config().clone());
            kept = Some(quic);
            // Without a directory, nothing is recorded.
            memory = default_state_dir().ok().filter(|_| !flags.no_state);
            if let Some(directory) = &memory {
                remembered = quic_failures::read(directory, BACK_OFF.longest);
                builder = builder.known_failures(remembered.clone());
            }
        }
        let http = builder.build().map_err(|error| match error {
            BuildError::Select(_) => Failure::new(Exit::Usage, error),
            _ => Failure::new(Exit::Failure, error),
        })?;
        if let Some(problem) = http.selection().and_then(|it| it.state_problem)
            // Otherwise it is in the log.
            && !tracing::enabled!(tracing::Level::WARN)
        {
            output::note(&format!(
                "warning: --select-state: the selection starts anew: {problem}"
            ));
        }
        Ok(Self {
            http,
            quic: kept,
            proxy,
            memory,
            remembered,
        })
    }

    /// Closes all connections and waits, with a time limit, until the servers have received
    /// CONNECTION_CLOSE.
    pub(crate) async fn hang_up(self) {
        let time_limit = if self.http.pool_stats().http3 > 0 {
            FAREWELL
        } else {
            SHORT_FAREWELL
        };
        self.http.close_idle();
        if let Err(error) = self.http.save_selection() {
            output::note(&format!(
                "warning: --select-state: the file was not written: {error}"
            ));
        }
        let known = self.http.known_failures();
        if let Some(directory) = &self.memory
            && quic_failures::differ(&known, &self.remembered)
            && let Err(error) = quic_failures::write(directory, &known)
        {
            // Only performance is affected.
            tracing::debug!(%error, "the record of QUIC failures was not written");
        }
        if let Some(quic) = self.quic {
            quic.endpoint().close(NO_ERROR, b"");
            // If it is late, the servers detect the end by their idle timeouts.
            let _ = timeout(time_limit, quic.endpoint().wait_idle()).await;
        }
        if let Some(proxy) = self.proxy {
            proxy.chain.hang_up().await;
        }
    }
}

/// The same through a proxy for UDP, which carries QUIC only.
fn policy_through_proxy(protocol: Protocol) -> Result<Policy, Failure> {
    match protocol {
        Protocol::Auto | Protocol::H3 | Protocol::PreferH3 => Ok(Policy::Http3Only),
        Protocol::Tcp | Protocol::Http1 | Protocol::Hq => Err(Failure::new(
            Exit::Usage,
            "--proxy carries HTTP/3 only: leave --protocol out, or use the environment (HTTPS_PROXY) for TCP",
        )),
    }
}

/// How QUIC and TCP are chosen for `--protocol`.
fn policy(protocol: Protocol) -> Policy {
    match protocol {
        Protocol::Auto | Protocol::Hq => Policy::Race,
        Protocol::H3 => Policy::Http3Only,
        Protocol::PreferH3 => Policy::PreferHttp3,
        Protocol::Tcp | Protocol::Http1 => Policy::NoHttp3,
    }
}
