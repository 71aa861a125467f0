//! Configuration of a client.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use swiftwater_net::Endpoint;
use swiftwater_net::quic::ClientConfig;
use thiserror::Error;
use tokio::time::Instant;

use super::connect_locks::ConnectLocks;
use super::http_client::HttpClient;
#[cfg(doc)]
use super::measurements::Snapshot;
use super::policy::Policy;
use super::pool::Pool;
use super::proxy::Proxies;
use super::quic::QuicSide;
use super::quic_failures::{BackOff, KnownFailure, Network, QuicFailures};
use super::resolver::{Resolver, SystemResolver};
use super::selection::{Select, SelectError, Selection};
use super::stagger::Stagger;
use super::state::State;
use super::timeouts::Timeouts;
use crate::h3;
use crate::tcp::{ALPN_HTTP2, ALPN_HTTP11};

/// Why a client can't be built.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither QUIC nor TLS over TCP was configured.
    #[error("the client has neither QUIC nor TLS over TCP")]
    NoTransport,
    /// The policy permits HTTP/3 only, and no QUIC endpoint was configured.
    #[error("the policy requires HTTP/3, and the client has no QUIC endpoint")]
    NoQuic,
    /// The selection of protocols is misconfigured.
    #[error("the selection of protocols: {0}")]
    Select(#[from] SelectError),
}

/// Configures an [`HttpClient`].
pub struct Builder {
    quic: Option<QuicSide>,
    tls: Option<rustls::ClientConfig>,
    http1_only: bool,
    resolver: Arc<dyn Resolver>,
    proxies: Proxies,
    network: Arc<dyn Fn() -> Network + Send + Sync>,
    policy: Policy,
    assume_http3: bool,
    early_data: bool,
    stagger: Option<Duration>,
    timeouts: Timeouts,
    back_off: BackOff,
    known_failures: Vec<KnownFailure>,
    http3: h3::Config,
    idle_per_origin: usize,
    idle: Duration,
    tcp_statistics: bool,
    select: Option<Select>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            quic: None,
            tls: None,
            http1_only: false,
            resolver: Arc::new(SystemResolver),
            proxies: Proxies::none(),
            network: Arc::new(Network::current),
            policy: Policy::default(),
            assume_http3: false,
            early_data: false,
            stagger: None,
            timeouts: Timeouts::default(),
            back_off: BackOff::default(),
            known_failures: Vec::new(),
            http3: h3::Config::default(),
            idle_per_origin: 6,
            idle: Duration::from_secs(90),
            tcp_statistics: false,
            select: None,
        }
    }
}

impl Builder {
    /// HTTP/3 from `endpoint`, with `config`: its TLS must offer the ALPN name `h3`.
    #[must_use]
    pub fn quic(mut self, endpoint: Endpoint, config: ClientConfig) -> Self {
        self.quic = Some(QuicSide { endpoint, config });
        self
    }

    /// TLS over TCP. The ALPN names are replaced by `h2` and `http/1.1`.
    #[must_use]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Whether TLS over TCP offers HTTP/1.1 alone. Default: false.
    #[must_use]
    pub fn http1_only(mut self, only: bool) -> Self {
        self.http1_only = only;
        self
    }

    /// Resolver of host names. Default: [`SystemResolver`].
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Proxies of the TCP side. Default: none; see [`Proxies::from_env`].
    #[must_use]
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// How networks are identified in the record of QUIC failures. Default: [`Network::current`].
    #[must_use]
    pub fn network(mut self, network: impl Fn() -> Network + Send + Sync + 'static) -> Self {
        self.network = Arc::new(network);
        self
    }

    /// Which protocols requests may use, unless the request sets its own policy. Default:
    /// [`Policy::Race`].
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Whether [`Policy::Race`] tries HTTP/3 at the URI's port without a hint, too. Default: false.
    #[must_use]
    pub fn assume_http3(mut self, assume: bool) -> Self {
        self.assume_http3 = assume;
        self
    }

    /// Whether requests with safe methods and no content are sent as early data (0-RTT) where the
    /// session permits it. An attacker can replay them (RFC 8470), and they are also sent twice if
    /// TCP wins the race. Default: false.
    #[must_use]
    pub fn early_data(mut self, permit: bool) -> Self {
        self.early_data = permit;
        self
    }

    /// Interval between the starts of connection attempts, so also how long TCP waits for QUIC. Default: 250 ms where
    /// QUIC worked at the latest attempt on the network, and else 100 ms (default and recommended minimum of RFC 8305,
    /// section 5); with a selection that sends requests over both protocols, 10 ms from the first attempt of QUIC to that of
    /// TCP (the least that the RFC permits) in place of 100.
    #[must_use]
    pub fn stagger(mut self, stagger: Duration) -> Self {
        self.stagger = Some(stagger);
        self
    }

    /// Time limits of the phases of requests.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// How long QUIC is not attempted after it failed.
    #[must_use]
    pub fn back_off(mut self, back_off: BackOff) -> Self {
        self.back_off = back_off;
        self
    }

    /// QUIC failures that an earlier client exported ([`HttpClient::known_failures`]). Default: none.
    #[must_use]
    pub fn known_failures(mut self, known: Vec<KnownFailure>) -> Self {
        self.known_failures = known;
        self
    }

    /// Configuration of HTTP/3 connections; `remembered` is replaced by the settings that the
    /// client has stored.
    #[must_use]
    pub fn http3(mut self, config: h3::Config) -> Self {
        self.http3 = config;
        self
    }

    /// Idle HTTP/1.1 connections that are kept: at most so many per origin (default 6), each for so
    /// long (default 90 s).
    #[must_use]
    pub fn idle_http1(mut self, per_origin: usize, time: Duration) -> Self {
        self.idle_per_origin = per_origin;
        self.idle = time;
        self
    }

    /// Whether the kernel is asked about the TCP connection at the start and the end of each request over TCP
    /// without a proxy, for [`Snapshot::rtt`] and [`Snapshot::out_of_order`]. Each time costs about 2 µs.
    /// Effective on Linux only. Default: only with [`Builder::protocol`].
    #[must_use]
    pub fn tcp_statistics(mut self, ask: bool) -> Self {
        self.tcp_statistics = ask;
        self
    }

    /// How TCP or QUIC is chosen for each request under [`Policy::Race`]; requests under another policy go by
    /// that alone. Default: none, so that the connection that is established first is used as long as it is
    /// open.
    ///
    /// QUIC is used only for origins that are known to speak HTTP/3 (Alt-Svc, an HTTPS record, an earlier
    /// connection, or [`Builder::assume_http3`]), and only without a proxy. The race finds out about new
    /// origins.
    #[must_use]
    pub fn protocol(mut self, select: Select) -> Self {
        self.select = Some(select);
        self
    }

    /// Builds the client.
    pub fn build(self) -> Result<HttpClient, BuildError> {
        if self.quic.is_none() && self.tls.is_none() {
            return Err(BuildError::NoTransport);
        }
        if self.quic.is_none() && self.policy == Policy::Http3Only {
            return Err(BuildError::NoQuic);
        }
        let names: &[&[u8]] = if self.http1_only {
            &[ALPN_HTTP11]
        } else {
            &[ALPN_HTTP2, ALPN_HTTP11]
        };
        let tls = self.tls.map(|mut tls| {
            tls.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
            tls
        });
        let mut broken = QuicFailures::new(self.back_off);
        broken.import(self.known_failures, Instant::now(), SystemTime::now());
        let asks_kernel = self.tcp_statistics || self.select.is_some();
        let pool = Arc::new(Pool::new(self.idle_per_origin, self.idle));
        let state = State {
            quic: self.quic,
            tls: tls.map(Arc::new),
            resolver: self.resolver,
            proxies: self.proxies,
            network: self.network,
            policy: self.policy,
            assume_http3: self.assume_http3,
            early_data: self.early_data,
            stagger: Arc::new(Mutex::new(Stagger::new(self.stagger))),
            timeouts: self.timeouts,
            http3: self.http3,
            tcp_pool: Arc::clone(&pool),
            pool,
            tcp_statistics: asks_kernel.then(Arc::default),
            gates: ConnectLocks::default(),
            alternatives: Arc::default(),
            broken: Arc::new(Mutex::new(broken)),
            pending: Mutex::default(),
            settings: Mutex::default(),
        };
        let Some(select) = self.select else {
            return Ok(HttpClient::new(Arc::new(state), None));
        };
        let (selection, state) = Selection::new(&select, state)?;
        Ok(HttpClient::new(state, Some(selection)))
    }
}
