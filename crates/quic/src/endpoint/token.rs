//! Address tokens (RFC 9000, sections 8.1.2 to 8.1.4).
//!
//! A token is a byte that tells its kind, then what [`EndpointKey::seal_token`] makes of its
//! content. The kind lies open because an unreadable token of a Retry ends the connection whereas
//! an unreadable one from an earlier connection is as good as none; it is repeated inside, where it
//! can't be changed.
//!
//! Times are those of the driver's clock. When its epoch starts anew, as in another process,
//! tokens that seem to come from the future are refused and others may look younger than they are;
//! an endpoint that cares changes its key with the epoch.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::Instant;
use swiftwater_wire::{ConnectionId, DecodeError, Reader, Writer};

use crate::crypto::EndpointKey;

/// Made by Retry; good for one connection attempt from the same address and port.
const KIND_RETRY: u8 = 0x52;
/// Made by `NEW_TOKEN`; good for later connections from the same IP address.
const KIND_ADDRESS: u8 = 0x41;

/// Longest token that is looked at; ours are shorter.
const MAX_LEN: usize = 256;
/// Longest content: kind, time, version, address, port and two connection IDs.
const MAX_CONTENT: usize = 1 + 8 + 4 + 16 + 2 + 2 * 21;

/// What a client's token says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// Nothing: there is none, or it isn't known, or no longer good.
    Nothing,
    /// The client was at this IP address in an earlier connection.
    Address,
    /// The client answered our Retry from this address.
    Retry {
        /// Destination of the client's first Initial, before the Retry.
        original_dst_cid: ConnectionId,
    },
    /// It is from a Retry but not good here and now.
    InvalidRetry,
}

/// The Initial that a token came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presented {
    pub(super) now: Instant,
    pub(super) remote: SocketAddr,
    pub(super) version: u32,
    pub(super) dst_cid: ConnectionId,
}

/// How long tokens are good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetimes {
    pub(super) retry: Duration,
    pub(super) address: Duration,
}

/// Makes the token of a Retry for a client at `remote`. `cids`: where its Initial went, and where its
/// next one, of the same `version`, will go.
pub(super) fn issue_retry_token(
    key: &dyn EndpointKey,
    rng: &mut impl Rng,
    now: Instant,
    version: u32,
    remote: SocketAddr,
    cids: [ConnectionId; 2],
) -> Vec<u8> {
    let made = Made { now, version };
    seal(key, rng, KIND_RETRY, made, remote.ip(), |w| {
        w.u16(remote.port());
        for cid in cids {
            w.u8(cid.len() as u8);
            w.bytes(cid.as_bytes());
        }
    })
}

/// Makes a token for later connections of the client at `ip` in the same `version`, to be sent in
/// `NEW_TOKEN`.
pub(crate) fn issue_address_token(
    key: &dyn EndpointKey,
    rng: &mut impl Rng,
    now: Instant,
    version: u32,
    ip: IpAddr,
) -> Vec<u8> {
    seal(key, rng, KIND_ADDRESS, Made { now, version }, ip, |_| {})
}

/// Judges the token of a client's Initial; an empty one says nothing.
pub(super) fn check(
    key: &dyn EndpointKey,
    token: &[u8],
    presented: &Presented,
    lifetimes: &Lifetimes,
) -> Verdict {
    let Some((&kind, sealed)) = token.split_first() else {
        return Verdict::Nothing;
    };
    let content = || {
        (token.len() <= MAX_LEN)
            .then(|| key.open_token(sealed))
            .flatten()
    };
    match kind {
        KIND_RETRY => content()
            .and_then(|content| read_retry(&content, presented, lifetimes.retry))
            .map_or(Verdict::InvalidRetry, |original_dst_cid| Verdict::Retry {
                original_dst_cid,
            }),
        KIND_ADDRESS => content()
            .and_then(|content| read_address(&content, presented, lifetimes.address))
            .map_or(Verdict::Nothing, |()| Verdict::Address),
        _ => Verdict::Nothing,
    }
}

/// When a token is made, and in a connection of which version.
#[derive(Clone, Copy)]
struct Made {
    now: Instant,
    version: u32,
}

/// Seals the fields that both kinds have and what `write` adds.
fn seal(
    key: &dyn EndpointKey,
    rng: &mut impl Rng,
    kind: u8,
    made: Made,
    ip: IpAddr,
    write: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let mut content = [0; MAX_CONTENT];
    let mut w = Writer::new(&mut content);
    w.u8(kind);
    w.bytes(&made.now.as_nanos().to_be_bytes());
    w.u32(made.version);
    w.bytes(&as_v6(ip).octets());
    write(&mut w);
    let len = w.written();
    let mut nonce = [0; 12];
    rng.fill_bytes(&mut nonce);
    let mut token = key.seal_token(nonce, &content[..len]);
    token.insert(0, kind);
    token
}

/// The original destination in the token of a Retry, if it is good.
fn read_retry(content: &[u8], presented: &Presented, lifetime: Duration) -> Option<ConnectionId> {
    let mut r = Reader::new(content);
    read_common(&mut r, KIND_RETRY, presented, lifetime)?;
    let port = r.u16().ok()?;
    let original_dst_cid = read_cid(&mut r)?;
    let retry_src_cid = read_cid(&mut r)?;
    let good =
        r.is_empty() && port == presented.remote.port() && retry_src_cid == presented.dst_cid;
    good.then_some(original_dst_cid)
}

/// `Some` if the token of an earlier connection is good.
fn read_address(content: &[u8], presented: &Presented, lifetime: Duration) -> Option<()> {
    let mut r = Reader::new(content);
    read_common(&mut r, KIND_ADDRESS, presented, lifetime)?;
    r.is_empty().then_some(())
}

/// `Some` if kind, age, version and IP address are right: tokens are good for the version of the
/// connection that gave them (RFC 9369, section 5).
fn read_common(
    r: &mut Reader<'_>,
    kind: u8,
    presented: &Presented,
    lifetime: Duration,
) -> Option<()> {
    let fields = |r: &mut Reader<'_>| -> Result<_, DecodeError> {
        Ok((
            r.u8()?,
            u64::from_be_bytes(r.array()?),
            r.u32()?,
            Ipv6Addr::from(r.array::<16>()?),
        ))
    };
    let (sealed_kind, issued, version, ip) = fields(r).ok()?;
    let age = presented.now.checked_since(Instant::from_nanos(issued))?;
    let same_place = version == presented.version && ip == as_v6(presented.remote.ip());
    let good = sealed_kind == kind && age <= lifetime && same_place;
    good.then_some(())
}

fn read_cid(r: &mut Reader<'_>) -> Option<ConnectionId> {
    let len = r.u8().ok()?;
    ConnectionId::new(r.bytes(usize::from(len)).ok()?)
}

/// One form for an address, however the socket shows it.
fn as_v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}
