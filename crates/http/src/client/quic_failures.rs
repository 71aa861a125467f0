//! Record of QUIC failures by network and origin, with exponential back-off, and the identification
//! of networks.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::origin::Origin;

/// Capacity of the record, pairs of network and origin; expired pairs are evicted first.
const CAPACITY: usize = 1024;

/// How long QUIC is not attempted after a failure.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    /// After the first failure; default 5 minutes.
    pub first: Duration,
    /// At most, after doubling with each failure; default 2 days.
    pub longest: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5 * 60),
            longest: Duration::from_secs(48 * 60 * 60),
        }
    }
}

/// Identifies one attachment to the Internet: the local addresses of its default routes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Network {
    /// The IPv4 address of this host.
    pub v4: Option<Ipv4Addr>,
    /// The first 64 bits of its IPv6 address: hosts change the other 64 bits themselves (RFC 8981).
    pub v6: Option<u64>,
}

impl Network {
    /// The network that this host is attached to now, by its default routes. Sends nothing.
    pub fn current() -> Self {
        // Addresses for documentation (RFC 5737, RFC 3849): only the route to them is looked up.
        let v4 = route_to((Ipv4Addr::new(192, 0, 2, 1), 443).into());
        let v6 = route_to((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 443).into());
        Self {
            v4: v4.and_then(|address| match address {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            }),
            v6: v6.and_then(|address| match address {
                IpAddr::V6(address) => Some((u128::from(address) >> 64) as u64),
                IpAddr::V4(_) => None,
            }),
        }
    }
}

fn route_to(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Failures of one pair.
#[derive(Clone, Copy, Debug)]
struct FailureRecord {
    failures: u32,
    until: Instant,
}

/// A QUIC failure to an origin where TCP worked, in a form that can be stored and given to another
/// client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownFailure {
    /// The network of the attempt.
    pub network: Network,
    /// The origin.
    pub origin: Origin,
    /// Consecutive failures.
    pub failures: u32,
    /// When QUIC may be attempted again.
    pub until: SystemTime,
}

/// The record of failures.
#[derive(Debug, Default)]
pub(super) struct QuicFailures {
    back_off: BackOff,
    /// By origin, so that requests to origins without failures need not know the network.
    origins: HashMap<Origin, HashMap<Network, FailureRecord>>,
}

impl QuicFailures {
    pub(super) fn new(back_off: BackOff) -> Self {
        Self {
            back_off,
            origins: HashMap::new(),
        }
    }

    /// Imports the exported entries of another record, whose times are on the clock that now shows `clock`.
    /// An expired entry contributes its number of failures only.
    pub(super) fn import(
        &mut self,
        known: impl IntoIterator<Item = KnownFailure>,
        now: Instant,
        clock: SystemTime,
    ) {
        for failure in known.into_iter().take(CAPACITY) {
            // A clock that was set back must not make the pause longer.
            let left = failure.until.duration_since(clock).unwrap_or_default();
            let past = FailureRecord {
                failures: failure.failures,
                until: now + left.min(self.back_off.longest),
            };
            let networks = self.origins.entry(failure.origin).or_default();
            networks.insert(failure.network, past);
        }
    }

    /// Exports the record.
    pub(super) fn export(&self, now: Instant, clock: SystemTime) -> Vec<KnownFailure> {
        let known = self.pairs().map(|(origin, network, past)| {
            let left = past.until.saturating_duration_since(now);
            let ago = now.saturating_duration_since(past.until);
            KnownFailure {
                network,
                origin: origin.clone(),
                failures: past.failures,
                until: (clock + left).checked_sub(ago).unwrap_or(clock),
            }
        });
        let mut known: Vec<_> = known.collect();
        known.sort_by(|a, b| a.origin.cmp(&b.origin).then(a.until.cmp(&b.until)));
        known
    }

    fn pairs(&self) -> impl Iterator<Item = (&Origin, Network, &FailureRecord)> {
        self.origins.iter().flat_map(|(origin, networks)| {
            let pairs = networks.iter();
            pairs.map(move |(network, past)| (origin, *network, past))
        })
    }

    /// True if QUIC to `origin` failed in some network.
    pub(super) fn knows(&self, origin: &Origin) -> bool {
        self.origins.contains_key(origin)
    }

    /// True while QUIC to `origin` is not to be attempted in `network`.
    pub(super) fn is_broken(&self, network: Network, origin: &Origin, now: Instant) -> bool {
        let networks = self.origins.get(origin);
        let past = networks.and_then(|networks| networks.get(&network));
        past.is_some_and(|past| now < past.until)
    }

    /// Records that QUIC failed where TCP worked. Each consecutive failure doubles the pause.
    pub(super) fn failed(&mut self, network: Network, origin: &Origin, now: Instant) {
        let networks = self.origins.get(origin);
        let past = networks.and_then(|networks| networks.get(&network));
        let failures = past.map_or(0, |past| past.failures);
        if failures == 0 && self.pairs().count() >= CAPACITY {
            let oldest = self.pairs().min_by_key(|(_, _, past)| past.until);
            if let Some((origin, network)) = oldest.map(|(origin, at, _)| (origin.clone(), at)) {
                self.worked(network, &origin);
            }
        }
        let doubled = 2_u32.saturating_pow(failures);
        let pause = self.back_off.first.saturating_mul(doubled);
        let past = FailureRecord {
            failures: failures.saturating_add(1),
            until: now + pause.min(self.back_off.longest),
        };
        let networks = self.origins.entry(origin.clone()).or_default();
        networks.insert(network, past);
    }

    /// Records that QUIC worked: the failures are erased.
    pub(super) fn worked(&mut self, network: Network, origin: &Origin) {
        if let Some(networks) = self.origins.get_mut(origin) {
            networks.remove(&network);
            if networks.is_empty() {
                self.origins.remove(origin);
            }
        }
    }
}

#[cfg(test)]
mod tests;
