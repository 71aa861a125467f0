//! Address validation tokens: what they hold, when they are valid, and that each is used once
//! (RFC 9000, sections 8.1.2 to 8.1.4).
//!
//! A token is a byte for its kind, then what [`EndpointKey::seal_token`] makes of its content. The kind
//! is not encrypted because an unreadable token of a Retry ends the connection whereas an unreadable one
//! of `NEW_TOKEN` counts as none (section 8.1.3); it is repeated in the content, where it can't be
//! changed.
//!
//! Times are those of the driver's clock. When the clock starts anew, as in another process, tokens that
//! seem to come from the future are refused, others may look younger than they are, and none has been
//! used yet. An endpoint that must rule this out changes its key with each start of the clock.

#[cfg(test)]
mod tests;
mod used;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::Instant;
use swiftwater_wire::{ConnectionId, DecodeError, Reader, Writer};

use crate::crypto::EndpointKey;
pub use used::UsedTokens;
use used::{TokenHash, TokenHasher};

/// Issued by Retry; valid for one connection attempt from the same address and port.
const KIND_RETRY: u8 = 0x52;
/// Issued by `NEW_TOKEN`; valid for one later connection from the same IP address.
const KIND_ADDRESS: u8 = 0x41;

/// Longest token that is opened, bytes; those that are issued are shorter.
const MAX_LEN: usize = 256;
/// Longest content: kind, time, version, address, port and two connection IDs.
const MAX_CONTENT: usize = 1 + 8 + 4 + 16 + 2 + 2 * 21;

/// What the token of a client's Initial proves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TokenStatus {
    /// Nothing: there is none, or it is unknown, expired, or of another address.
    Nothing,
    /// The client received a `NEW_TOKEN` frame at this IP address.
    Address(UnusedToken),
    /// The same, but the token has been used before, so that it validates no address.
    UsedAddress,
    /// The client answers a Retry from the address and port that the Retry was sent to.
    Retry {
        token: UnusedToken,
        /// Destination of the client's first Initial, before the Retry.
        original_dst_cid: ConnectionId,
    },
    /// The same, but the token has been used before, so that it validates no address.
    UsedRetry {
        /// Destination of the client's first Initial, before the Retry.
        original_dst_cid: ConnectionId,
    },
    /// It is of a Retry but not valid for this address, version, destination or time.
    InvalidRetry,
}

impl TokenStatus {
    /// The token, if it validates the client's address.
    pub(crate) const fn validating(&self) -> Option<UnusedToken> {
        match self {
            Self::Address(token) | Self::Retry { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// True if the client answers a Retry: it would ignore another (RFC 9000, section 17.2.5.2).
    pub(crate) const fn answers_retry(&self) -> bool {
        matches!(
            self,
            Self::Retry { .. } | Self::UsedRetry { .. } | Self::InvalidRetry
        )
    }

    /// True if the token is valid, but for having been used before.
    pub(crate) const fn is_used(&self) -> bool {
        matches!(self, Self::UsedAddress | Self::UsedRetry { .. })
    }

    /// Destination of the client's first Initial, if it is the token of a Retry.
    pub(crate) const fn original_dst_cid(&self) -> Option<ConnectionId> {
        match self {
            Self::Retry {
                original_dst_cid, ..
            }
            | Self::UsedRetry { original_dst_cid } => Some(*original_dst_cid),
            _ => None,
        }
    }

    /// The status of the same token once it has been used.
    pub(crate) const fn once_used(self) -> Self {
        match self {
            Self::Address(_) => Self::UsedAddress,
            Self::Retry {
                original_dst_cid, ..
            } => Self::UsedRetry { original_dst_cid },
            other => other,
        }
    }
}

/// A valid token that no client has used yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UnusedToken {
    issued: Instant,
    hash: TokenHash,
}

/// The Initial that a token came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presented {
    pub(crate) now: Instant,
    pub(crate) remote: SocketAddr,
    pub(crate) version: u32,
    pub(crate) dst_cid: ConnectionId,
}

/// How long tokens are valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenLifetimes {
    pub(crate) retry: Duration,
    pub(crate) address: Duration,
}

/// Issues the tokens of Retry packets and validates those of Initials, for one endpoint.
#[derive(Debug)]
pub(crate) struct TokenValidator {
    key: Arc<dyn EndpointKey>,
    hasher: TokenHasher,
    used: Arc<UsedTokens>,
}

impl TokenValidator {
    /// With an endpoint's key and its record of used tokens.
    pub(crate) fn new(key: &Arc<dyn EndpointKey>, used: &Arc<UsedTokens>) -> Self {
        Self {
            key: Arc::clone(key),
            hasher: TokenHasher::new(&**key),
            used: Arc::clone(used),
        }
    }

    /// Issues the token of a Retry for a client at `remote`. `cids`: the destination of its Initial, and
    /// of the next one, in the same `version`, that answers the Retry.
    pub(crate) fn issue_retry_token(
        &self,
        rng: &mut impl Rng,
        now: Instant,
        version: u32,
        remote: SocketAddr,
        cids: [ConnectionId; 2],
    ) -> Vec<u8> {
        let issue = Issue { now, version };
        seal(&*self.key, rng, KIND_RETRY, issue, remote.ip(), |w| {
            w.u16(remote.port());
            for cid in cids {
                w.u8(cid.len() as u8);
                w.bytes(cid.as_bytes());
            }
        })
    }

    /// Validates the token of a client's Initial; an empty one proves nothing.
    pub(crate) fn check(
        &self,
        token: &[u8],
        presented: &Presented,
        lifetimes: &TokenLifetimes,
    ) -> TokenStatus {
        let Some((&kind, sealed)) = token.split_first() else {
            return TokenStatus::Nothing;
        };
        let content = || {
            (token.len() <= MAX_LEN)
                .then(|| self.key.open_token(sealed))
                .flatten()
        };
        let unused = |issued| UnusedToken {
            issued,
            hash: self.hasher.hash(token),
        };
        let status = match kind {
            KIND_RETRY => content()
                .and_then(|content| read_retry(&content, presented, lifetimes.retry))
                .map_or(TokenStatus::InvalidRetry, |(issued, original_dst_cid)| {
                    TokenStatus::Retry {
                        token: unused(issued),
                        original_dst_cid,
                    }
                }),
            KIND_ADDRESS => content()
                .and_then(|content| read_address(&content, presented, lifetimes.address))
                .map_or(TokenStatus::Nothing, |issued| {
                    TokenStatus::Address(unused(issued))
                }),
            _ => TokenStatus::Nothing,
        };
        match status.validating() {
            Some(token) if self.used.contains(token.issued, token.hash) => status.once_used(),
            _ => status,
        }
    }

    /// Records that a client uses `token`; false if another worker has recorded that meanwhile.
    pub(crate) fn use_up(
        &self,
        now: Instant,
        token: UnusedToken,
        lifetimes: &TokenLifetimes,
    ) -> bool {
        let lifetime = lifetimes.retry.max(lifetimes.address);
        self.used.insert(now, lifetime, token.issued, token.hash)
    }
}

/// Issues a token for a later connection of the client at `ip` in the same `version`, to be sent in
/// `NEW_TOKEN`.
pub(crate) fn issue_address_token(
    key: &dyn EndpointKey,
    rng: &mut impl Rng,
    now: Instant,
    version: u32,
    ip: IpAddr,
) -> Vec<u8> {
    seal(key, rng, KIND_ADDRESS, Issue { now, version }, ip, |_| {})
}

/// When a token is issued, and in a connection of which version.
#[derive(Clone, Copy)]
struct Issue {
    now: Instant,
    version: u32,
}

/// Seals the fields that both kinds have and what `write` adds.
fn seal(
    key: &dyn EndpointKey,
    rng: &mut impl Rng,
    kind: u8,
    issue: Issue,
    ip: IpAddr,
    write: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let mut content = [0; MAX_CONTENT];
    let mut w = Writer::new(&mut content);
    w.u8(kind);
    w.bytes(&issue.now.as_nanos().to_be_bytes());
    w.u32(issue.version);
    w.bytes(&as_v6(ip).octets());
    write(&mut w);
    let len = w.written();
    let mut nonce = [0; 12];
    rng.fill_bytes(&mut nonce);
    let mut token = key.seal_token(nonce, &content[..len]);
    token.insert(0, kind);
    token
}

/// When the token of a Retry was issued, and the original destination in it, if it is valid.
fn read_retry(
    content: &[u8],
    presented: &Presented,
    lifetime: Duration,
) -> Option<(Instant, ConnectionId)> {
    let mut r = Reader::new(content);
    let issued = read_common(&mut r, KIND_RETRY, presented, lifetime)?;
    let port = r.u16().ok()?;
    let original_dst_cid = read_cid(&mut r)?;
    let retry_src_cid = read_cid(&mut r)?;
    let valid =
        r.is_empty() && port == presented.remote.port() && retry_src_cid == presented.dst_cid;
    valid.then_some((issued, original_dst_cid))
}

/// When the token of an earlier connection was issued, if it is valid.
fn read_address(content: &[u8], presented: &Presented, lifetime: Duration) -> Option<Instant> {
    let mut r = Reader::new(content);
    let issued = read_common(&mut r, KIND_ADDRESS, presented, lifetime)?;
    r.is_empty().then_some(issued)
}

/// When the token was issued, if kind, age, version and IP address are right: tokens are valid for the
/// version of the connection that gave them (RFC 9369, section 5).
fn read_common(
    r: &mut Reader<'_>,
    kind: u8,
    presented: &Presented,
    lifetime: Duration,
) -> Option<Instant> {
    let fields = |r: &mut Reader<'_>| -> Result<_, DecodeError> {
        Ok((
            r.u8()?,
            Instant::from_nanos(u64::from_be_bytes(r.array()?)),
            r.u32()?,
            Ipv6Addr::from(r.array::<16>()?),
        ))
    };
    let (sealed_kind, issued, version, ip) = fields(r).ok()?;
    let age = presented.now.checked_since(issued)?;
    let same_client = version == presented.version && ip == as_v6(presented.remote.ip());
    let valid = sealed_kind == kind && age <= lifetime && same_client;
    valid.then_some(issued)
}

fn read_cid(r: &mut Reader<'_>) -> Option<ConnectionId> {
    let len = r.u8().ok()?;
    ConnectionId::new(r.bytes(usize::from(len)).ok()?)
}

/// The IPv6 form of an address: sockets show an IPv4 address in either form.
fn as_v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}
