//! Resolution of an origin to a decision and the addresses of each protocol.

use std::net::SocketAddr;

use http::HeaderValue;

use super::alt_svc::Alternative;
use super::error::Error;
use super::origin::Origin;
use super::policy::{Decision, Tcp};
use super::protocol_choice::Why;
use super::resolver::Resolved;
use super::state::{Situation, State, lock};
use super::timeouts::{Phase, within};

/// The protocol decision for one request, with addresses.
pub(super) struct Route {
    pub(super) why: Why,
    pub(super) mode: Tcp,
    pub(super) quic: Vec<SocketAddr>,
    /// The proxy's, if there is one.
    pub(super) tcp: Vec<SocketAddr>,
    /// The alternative service that QUIC connects to (RFC 7838, section 5).
    pub(super) alt_used: Option<HeaderValue>,
}

impl State {
    /// Looks up what is needed, and decides. The route has at least one address.
    pub(super) async fn route(&self, situation: &Situation<'_>) -> Result<Route, Error> {
        let origin = situation.origin;
        let (resolved, decision) = if let Some(proxy) = &situation.proxy {
            // The proxy resolves the origin's name itself.
            let (host, port) = (proxy.origin.host(), proxy.origin.port());
            let resolved = self.resolve(host, port).await?;
            (resolved, self.decide(situation, None))
        } else {
            let resolved = self.resolve(origin.host(), origin.port()).await?;
            let decision = self.decide(situation, Some(&resolved));
            (resolved, decision)
        };
        let (why, mode, by_quic) = match decision {
            Decision::Impossible(why) => return Err(Error::Http3Impossible(why)),
            Decision::Tcp(why) => (why, Tcp::AfterDelay, false),
            Decision::Http3 { why, tcp } => (why, tcp, true),
        };
        let alternative = situation.alternative.as_ref().filter(|_| by_quic);
        let quic = if by_quic {
            let mut addresses = self.quic_addresses(situation, &resolved).await;
            addresses.retain(|address| self.quic_reaches(*address));
            addresses
        } else {
            Vec::new()
        };
        let tcp = self.tcp_addresses(situation, &resolved, mode);
        if quic.is_empty() && tcp.is_empty() {
            return Err(match alternative {
                Some(alternative) => Error::NoAddress(alternative.host_of(origin).to_owned()),
                None => Error::NoTls,
            });
        }
        Ok(Route {
            why,
            mode,
            quic,
            tcp,
            alt_used: alternative.and_then(|alternative| alternative.used(origin)),
        })
    }

    async fn resolve(&self, host: &str, port: u16) -> Result<Resolved, Error> {
        if let Ok(address) = host.parse() {
            return Ok(Resolved {
                addresses: vec![address],
                https: None,
            });
        }
        let lookup = self.resolver.resolve(host, port);
        let resolved = within(self.timeouts.resolve, Phase::Resolve, lookup).await?;
        let resolved = resolved.map_err(|source| Error::Resolve {
            host: host.to_owned(),
            source,
        })?;
        if resolved.addresses.is_empty() {
            return Err(Error::NoAddress(host.to_owned()));
        }
        Ok(resolved)
    }

    async fn quic_addresses(
        &self,
        situation: &Situation<'_>,
        resolved: &Resolved,
    ) -> Vec<SocketAddr> {
        let of = |resolved: &Resolved, port| {
            let addresses = resolved.addresses.iter();
            addresses.map(|ip| SocketAddr::new(*ip, port)).collect()
        };
        match &situation.alternative {
            Some(Alternative {
                host: Some(host),
                port,
            }) if **host != *situation.origin.host() => {
                if let Ok(elsewhere) = self.resolve(host, *port).await {
                    return of(&elsewhere, *port);
                }
                // Later requests work without it.
                lock(&self.alternatives).discard(situation.origin);
                Vec::new()
            }
            Some(Alternative { port, .. }) => of(resolved, *port),
            None => of(resolved, record_port(situation.origin, resolved)),
        }
    }

    /// Keeps addresses of the family of the endpoint's socket: an unreachable family is not a
    /// failure of QUIC.
    fn quic_reaches(&self, address: SocketAddr) -> bool {
        let local = self.quic.as_ref().map(|quic| quic.endpoint.local_addr());
        local.is_some_and(|local| {
            local.is_ipv4() == address.is_ipv4() || local.is_ipv6() && local.ip().is_unspecified()
        })
    }

    fn tcp_addresses(
        &self,
        situation: &Situation<'_>,
        resolved: &Resolved,
        mode: Tcp,
    ) -> Vec<SocketAddr> {
        let origin = situation.origin;
        if mode == Tcp::Never || (origin.is_https() && self.tls.is_none()) {
            return Vec::new();
        }
        let port = match &situation.proxy {
            Some(proxy) => proxy.origin.port(),
            None => record_port(origin, resolved),
        };
        let addresses = resolved.addresses.iter();
        addresses.map(|ip| SocketAddr::new(*ip, port)).collect()
    }
}

fn record_port(origin: &Origin, resolved: &Resolved) -> u16 {
    let record = resolved.https.as_ref().filter(|_| origin.is_https());
    record
        .and_then(|record| record.port)
        .unwrap_or(origin.port())
}
