//! Shared state of a client, and the selection of a connection for a request.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Request};
use tokio::time::Instant;

use super::alt_svc::{AltSvcCache, Alternative};
use super::connect::{Contest, Outcome, Unfinished, Won};
use super::connect_locks::{ConnectLocks, FailedAttempt};
use super::error::Error;
use super::exchange::Link;
use super::measurements::Measurements;
use super::origin::Origin;
use super::policy::{Decision, Facts, Policy, Tcp, Way, decide};
use super::pool::Pool;
use super::protocol_choice::{Hint, Why};
use super::proxy::{Proxies, Proxy};
use super::quic::{EarlyResponse, Http3Link, QuicOpened, QuicPlan, QuicSide};
use super::quic_failures::{Network, QuicFailures};
use super::race::Race;
use super::resolver::{Resolved, Resolver};
use super::route::Route;
use super::stagger::Stagger;
use super::tcp::TcpPlan;
use super::tcp_share::TcpStatisticsSource;
use super::timeouts::Timeouts;
use crate::h3;
use crate::web::body::Body;

/// Capacity of the store of server settings for early data, origins.
const SETTINGS: usize = 1024;

/// The components of a client.
pub(super) struct State {
    pub(super) quic: Option<QuicSide>,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) proxies: Proxies,
    pub(super) network: Arc<dyn Fn() -> Network + Send + Sync>,
    pub(super) policy: Policy,
    pub(super) assume_http3: bool,
    pub(super) early_data: bool,
    pub(super) stagger: Arc<Mutex<Stagger>>,
    pub(super) timeouts: Timeouts,
    pub(super) http3: h3::Config,
    /// Connections of HTTP/3.
    pub(super) pool: Arc<Pool>,
    /// Connections over TCP.
    pub(super) tcp_pool: Arc<Pool>,
    /// Present if the kernel is asked about connections over TCP.
    pub(super) tcp_statistics: Option<Arc<TcpStatisticsSource>>,
    pub(super) gates: ConnectLocks,
    pub(super) alternatives: Arc<Mutex<AltSvcCache>>,
    pub(super) broken: Arc<Mutex<QuicFailures>>,
    /// Origins with a QUIC handshake in progress that TCP overtook.
    pub(super) pending: Mutex<HashSet<Origin>>,
    pub(super) settings: Mutex<HashMap<Origin, h3::Settings>>,
}

/// A connection for a request.
pub(super) struct Selected {
    pub(super) link: Link,
    pub(super) why: Why,
    pub(super) attempts: u32,
    pub(super) reused: bool,
    /// From the search for a connection to its end; zero if there was one.
    pub(super) waited: Duration,
}

/// Inputs known before a lookup.
pub(super) struct Situation<'a> {
    pub(super) origin: &'a Origin,
    pub(super) way: Way,
    pub(super) proxy: Option<Arc<Proxy>>,
    pub(super) alternative: Option<Alternative>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The same client with connections of its own: HTTP/3 by `quic` beside the same ones over TCP, or all of
    /// them if `tls` is other than this client's.
    pub(super) fn beside(&self, quic: Option<QuicSide>, tls: Option<rustls::ClientConfig>) -> Self {
        let pool = Arc::new(self.pool.fresh());
        let own_tcp = tls.is_some();
        Self {
            quic,
            tls: tls.map(Arc::new).or_else(|| self.tls.clone()),
            resolver: Arc::clone(&self.resolver),
            proxies: self.proxies.clone(),
            network: Arc::clone(&self.network),
            policy: self.policy,
            assume_http3: self.assume_http3,
            early_data: self.early_data,
            stagger: Arc::clone(&self.stagger),
            timeouts: self.timeouts,
            http3: self.http3,
            tcp_pool: Arc::clone(if own_tcp { &pool } else { &self.tcp_pool }),
            pool,
            tcp_statistics: self.tcp_statistics.clone(),
            gates: ConnectLocks::default(),
            alternatives: Arc::clone(&self.alternatives),
            broken: Arc::clone(&self.broken),
            pending: Mutex::default(),
            settings: Mutex::default(),
        }
    }

    /// A connection to `origin`, from the pool or new. `early` builds the HTTP/3 request from a value
    /// for Alt-Used; present if the request may be sent as early data.
    pub(super) async fn select(
        self: &Arc<Self>,
        origin: &Origin,
        way: Way,
        early: Option<impl Fn(Option<&HeaderValue>) -> Request<Body>>,
        measurements: &Measurements,
    ) -> Result<Selected, Error> {
        let situation = Situation {
            origin,
            way,
            proxy: self.proxies.of(origin).cloned(),
            alternative: lock(&self.alternatives).get(origin, Instant::now),
        };
        if let Some(selected) = self.standing(&situation)? {
            return Ok(selected);
        }
        // In memory of its own: it is large, and most requests find a connection.
        Box::pin(self.open_in_turn(situation, early, measurements)).await
    }

    /// Opens a connection, unless one is there once the attempts of others have ended.
    async fn open_in_turn(
        self: &Arc<Self>,
        situation: Situation<'_>,
        early: Option<impl Fn(Option<&HeaderValue>) -> Request<Body>>,
        measurements: &Measurements,
    ) -> Result<Selected, Error> {
        let begun = Instant::now();
        let Situation { origin, way, .. } = situation;
        let gate = self.gates.of(origin, way.policy());
        let mut turn = gate.lock().await;
        // The awaited connection may be in the pool now.
        if let Some(mut selected) = self.standing(&situation)? {
            selected.waited = begun.elapsed();
            return Ok(selected);
        }
        let is_http1 = self.tcp_pool.speaks_http1(origin) && !self.may_use_http3(&situation);
        let is_excused = turn.is_some_and(|failed| failed.excuses(begun));
        let mut selected = if is_http1 || is_excused {
            // HTTP/1.1 connections can't be shared, so waiting for one is useless; and who has waited for an attempt that
            // failed does not wait for the next one as well.
            drop(turn);
            self.open(&situation, early, measurements).await?
        } else {
            let began = Instant::now();
            let opened = self.open(&situation, early, measurements).await;
            *turn = opened.is_err().then(|| FailedAttempt {
                began,
                ended: Instant::now(),
            });
            opened?
        };
        selected.waited = begun.elapsed();
        Ok(selected)
    }

    /// An open connection that the policy permits now.
    fn standing(&self, situation: &Situation<'_>) -> Result<Option<Selected>, Error> {
        let origin = situation.origin;
        let (link, why) = match self.decide(situation, None) {
            Decision::Impossible(why) => return Err(Error::Http3Impossible(why)),
            Decision::Http3 { why, .. } => {
                let link = self.pool.http3(origin);
                (link.map(|link| Link::Http3(link, None)), why)
            }
            Decision::Tcp(why) => (self.tcp_pool.tcp(origin).map(Link::Tcp), why),
        };
        Ok(link.map(|link| Selected {
            link,
            why,
            attempts: 0,
            reused: true,
            waited: Duration::ZERO,
        }))
    }

    fn may_use_http3(&self, situation: &Situation<'_>) -> bool {
        matches!(self.decide(situation, None), Decision::Http3 { .. })
    }

    /// Applies the policy. `resolved` is the result of the lookup, if there was one.
    pub(super) fn decide(
        &self,
        situation: &Situation<'_>,
        resolved: Option<&Resolved>,
    ) -> Decision {
        let origin = situation.origin;
        let policy = match situation.way {
            Way::Policy(_) | Way::Compared => situation.way.policy(),
            Way::Http3 { tcp, .. } => {
                // Requests that wait for each other's connections must not wait for the same handshake in turn.
                let is_overtaken = lock(&self.pending).contains(origin);
                if is_overtaken && tcp != Tcp::Never && !self.pool.has_http3(origin) {
                    return Decision::Tcp(Why::QuicPending);
                }
                let why = Why::Selected;
                return Decision::Http3 { why, tcp };
            }
        };
        let record = resolved.and_then(|resolved| resolved.https.as_ref());
        let hint = if self.pool.has_http3(origin) {
            Some(Hint::Connected)
        } else if situation.alternative.is_some() {
            Some(Hint::AltSvc)
        } else if record.is_some_and(super::resolver::HttpsRecord::has_http3) {
            Some(Hint::HttpsRecord)
        } else {
            self.assume_http3.then_some(Hint::Assumed)
        };
        // The network is only identified where it matters.
        let tries = hint.is_some() || policy == Policy::PreferHttp3;
        let facts = Facts {
            https: origin.is_https(),
            quic: self.quic.is_some(),
            proxied: situation.proxy.is_some(),
            broken: tries && self.is_broken(origin),
            pending: tries && lock(&self.pending).contains(origin),
            hint,
        };
        decide(policy, facts)
    }

    pub(super) fn is_broken(&self, origin: &Origin) -> bool {
        // Asking for the network costs system calls.
        if !lock(&self.broken).knows(origin) {
            return false;
        }
        let network = (self.network)();
        lock(&self.broken).is_broken(network, origin, Instant::now())
    }

    /// The interval between the starts of connection attempts on the present network.
    pub(super) fn stagger(&self) -> Duration {
        let network = (self.network)();
        lock(&self.stagger).on(network)
    }

    /// How long TCP waits for QUIC in the race.
    fn first_tcp_after(&self, way: Way) -> Duration {
        let network = (self.network)();
        let stagger = lock(&self.stagger);
        match way {
            Way::Http3 { stagger, .. } => stagger,
            Way::Policy(_) => stagger.on(network),
            Way::Compared => stagger.of_compared(network),
        }
    }

    /// Looks up the host and connects.
    async fn open(
        self: &Arc<Self>,
        situation: &Situation<'_>,
        early: Option<impl Fn(Option<&HeaderValue>) -> Request<Body>>,
        measurements: &Measurements,
    ) -> Result<Selected, Error> {
        let origin = situation.origin;
        let begun = Instant::now();
        let route = self.route(situation).await?;
        let elapsed = begun.elapsed();
        measurements.note(|snapshot| snapshot.resolve = Some(elapsed));
        let quic = self.quic.as_ref().filter(|_| !route.quic.is_empty());
        let now = Instant::now();
        let stagger = match situation.way {
            Way::Http3 { stagger, .. } => stagger,
            Way::Policy(_) | Way::Compared => self.stagger(),
        };
        let contest = Contest {
            race: Race::new(&route.quic, &route.tcp, route.mode, stagger, now)
                .first_tcp_after(self.first_tcp_after(situation.way)),
            quic: quic.map(|side| self.quic_plan(side, origin)),
            tcp: TcpPlan {
                origin: origin.clone(),
                proxy: situation.proxy.clone(),
                tls: self.tls.clone().filter(|_| origin.is_https()),
                timeouts: self.timeouts,
            },
            early: early
                .filter(|_| quic.is_some())
                .map(|request| request(route.alt_used.as_ref())),
            pool: &self.tcp_pool,
        };
        let outcome = contest.run().await?;
        Ok(self.settle(origin, outcome, route, measurements))
    }

    /// Stores the connection of a race and records the outcome of QUIC.
    fn settle(
        self: &Arc<Self>,
        origin: &Origin,
        outcome: Outcome,
        route: Route,
        measurements: &Measurements,
    ) -> Selected {
        let Route { why, alt_used, .. } = route;
        let over_tcp = match (why, &outcome.unfinished) {
            (_, Some(_)) => Why::QuicSlower,
            // There may also have been no address for QUIC.
            (Why::Hinted(_) | Why::Selected, None) => Why::QuicFailed,
            (why, None) => why,
        };
        let (link, why, reused) = match outcome.won {
            Won::Quic(opened) => {
                let handshake = opened.handshake;
                measurements.note(|snapshot| snapshot.handshake = Some(handshake));
                let (link, early) = self.adopt(origin, opened, alt_used.clone());
                (Link::Http3(link, early), why, false)
            }
            Won::Tcp(opened) => {
                measurements.note(|snapshot| {
                    snapshot.connect = Some(opened.connect);
                    snapshot.handshake = opened.handshake;
                });
                self.tcp_pool.add_tcp(origin, &opened.link);
                (Link::Tcp(opened.link), over_tcp, false)
            }
            Won::Standing(link) => (Link::Tcp(link), over_tcp, true),
        };
        if matches!(link, Link::Tcp(_)) && outcome.quic_failed {
            let network = (self.network)();
            lock(&self.broken).failed(network, origin, Instant::now());
            lock(&self.stagger).quic_ended(network, false);
        }
        if let Some(unfinished) = outcome.unfinished {
            self.watch(origin, unfinished, alt_used);
        }
        Selected {
            link,
            why,
            attempts: outcome.attempts,
            reused,
            waited: Duration::ZERO,
        }
    }

    /// Adds an HTTP/3 connection to the pool.
    fn adopt(
        &self,
        origin: &Origin,
        opened: QuicOpened,
        alternative: Option<HeaderValue>,
    ) -> (Http3Link, Option<EarlyResponse>) {
        let link = Http3Link {
            sender: opened.sender,
            alternative,
        };
        self.pool.add_http3(origin, link.clone());
        let network = (self.network)();
        lock(&self.broken).worked(network, origin);
        lock(&self.stagger).quic_ended(network, true);
        (link, opened.early)
    }

    /// Waits, independently of any request, for QUIC attempts that TCP overtook: a success is added
    /// to the pool for later requests, a failure is recorded.
    fn watch(
        self: &Arc<Self>,
        origin: &Origin,
        unfinished: Unfinished,
        alt_used: Option<HeaderValue>,
    ) {
        lock(&self.pending).insert(origin.clone());
        let (state, origin) = (Arc::clone(self), origin.clone());
        let network = (self.network)();
        tokio::spawn(async move {
            let opened = unfinished.finish().await;
            if let Some(opened) = opened {
                // Its early request was sent over TCP instead.
                state.adopt(&origin, opened, alt_used);
            } else {
                lock(&state.broken).failed(network, &origin, Instant::now());
                lock(&state.stagger).quic_ended(network, false);
            }
            lock(&state.pending).remove(&origin);
        });
    }

    fn quic_plan(&self, side: &QuicSide, origin: &Origin) -> QuicPlan {
        QuicPlan {
            side: side.clone(),
            host: origin.host().to_owned(),
            http3: h3::Config {
                remembered: lock(&self.settings).get(origin).copied(),
                ..self.http3
            },
            limit: self.timeouts.quic,
        }
    }

    /// Stores the settings of a server for early data on the next connection.
    pub(super) fn remember_settings(&self, origin: &Origin, settings: h3::Settings) {
        let mut all = lock(&self.settings);
        if all.get(origin) == Some(&settings) {
            return;
        }
        if all.len() >= SETTINGS && !all.contains_key(origin) {
            // Without stored settings, early data use the defaults.
            all.clear();
        }
        all.insert(origin.clone(), settings);
    }
}
