//! ADDRESS_ASSIGN, ADDRESS_REQUEST and ROUTE_ADVERTISEMENT capsules (RFC 9484, section 4.7).
//!
//! A malformed one makes the content of the stream malformed; the stream is aborted (RFC 9297, section 3.3).

use std::net::IpAddr;

use bytes::Bytes;
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_wire::{Reader, VarInt, Writer};
use thiserror::Error;

use super::address_range::AddressRange;
use super::routes::{Route, RouteOrder, Routes};
use crate::policy::Prefix;

/// The longest of these capsules that is read, bytes: about 1900 ranges of IPv6 addresses.
pub const MAX_IP_CAPSULE: usize = 1 << 16;

const ADDRESS_ASSIGN: u64 = 0x01;
const ADDRESS_REQUEST: u64 = 0x02;
const ROUTE_ADVERTISEMENT: u64 = 0x03;

/// Addresses or routes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum IpCapsule {
    /// All addresses that the receiver may send from; they replace those before.
    AddressAssign(Vec<AssignedAddress>),
    /// A wish for addresses: at least one.
    AddressRequest(Vec<RequestedAddress>),
    /// All destinations that the receiver may send to; they replace those before.
    RouteAdvertisement(Routes),
}

/// A prefix whose addresses the receiver may send from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AssignedAddress {
    /// The request that it answers; 0 for none.
    pub request_id: VarInt,
    /// The prefix. All zeros, as long as an address, refuses the request.
    pub prefix: Prefix,
}

impl AssignedAddress {
    /// Whether it refuses the request.
    pub fn is_refusal(&self) -> bool {
        let address = self.prefix.address();
        address.is_unspecified() && self.prefix == Prefix::single(address)
    }
}

/// A prefix that the sender wants.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RequestedAddress {
    /// Identifies the request: not 0, and different from those before.
    pub request_id: VarInt,
    /// The prefix that is preferred; all zeros if only its length matters.
    pub prefix: Prefix,
}

/// A capsule that is malformed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CapsuleError {
    /// The capsule ends within an address or a range.
    #[error("a capsule ends within an address")]
    Truncated,
    /// The version of IP is neither 4 nor 6.
    #[error("{0} is no version of IP")]
    Version(u8),
    /// The prefix is longer than the address.
    #[error("a prefix is longer than an address: {0} bits")]
    PrefixLength(u8),
    /// Bits of the address beyond the prefix are set.
    #[error("bits of an address beyond its prefix are set")]
    HostBits,
    /// A request without addresses.
    #[error("a request for no address")]
    NoRequest,
    /// A request with the identifier 0.
    #[error("a request for an address has the identifier 0")]
    RequestIdZero,
    /// Two requests with the same identifier.
    #[error("two requests for addresses have the identifier {0}")]
    RequestIdTwice(u64),
    /// A range ends before its start.
    #[error("a range of addresses ends before its start")]
    Range,
    /// Ranges are out of order, or overlap.
    #[error(transparent)]
    Order(#[from] RouteOrder),
}

/// Whether capsules of this type are those of IP proxying.
pub fn is_ip_capsule(capsule_type: u64) -> bool {
    (ADDRESS_ASSIGN..=ROUTE_ADVERTISEMENT).contains(&capsule_type)
}

impl IpCapsule {
    /// Reads a capsule; `None` if it is of another type.
    pub fn decode(capsule: &Capsule) -> Result<Option<Self>, CapsuleError> {
        let mut reader = Reader::new(&capsule.value);
        Ok(Some(match capsule.capsule_type {
            ADDRESS_ASSIGN => Self::AddressAssign(assigned(&mut reader)?),
            ADDRESS_REQUEST => Self::AddressRequest(requested(&mut reader)?),
            ROUTE_ADVERTISEMENT => Self::RouteAdvertisement(routes(&mut reader)?),
            _ => return Ok(None),
        }))
    }

    /// The capsule. What it says is not checked: prefixes without set bits beyond their length, and requests with
    /// different identifiers, are the caller's concern.
    pub fn encode(&self) -> Capsule {
        let mut out = Vec::new();
        let capsule_type = match self {
            Self::AddressAssign(addresses) => {
                for address in addresses {
                    put_address(&mut out, address.request_id, address.prefix);
                }
                ADDRESS_ASSIGN
            }
            Self::AddressRequest(addresses) => {
                for address in addresses {
                    put_address(&mut out, address.request_id, address.prefix);
                }
                ADDRESS_REQUEST
            }
            Self::RouteAdvertisement(routes) => {
                for route in routes.as_slice() {
                    put_route(&mut out, route);
                }
                ROUTE_ADVERTISEMENT
            }
        };
        Capsule {
            capsule_type,
            value: out.into(),
        }
    }

    /// The bytes of the capsule, with its type and length.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode().encode(&mut out);
        out.into()
    }
}

fn assigned(reader: &mut Reader<'_>) -> Result<Vec<AssignedAddress>, CapsuleError> {
    let mut addresses = Vec::new();
    while !reader.is_empty() {
        let (request_id, prefix) = take_address(reader)?;
        addresses.push(AssignedAddress { request_id, prefix });
    }
    Ok(addresses)
}

fn requested(reader: &mut Reader<'_>) -> Result<Vec<RequestedAddress>, CapsuleError> {
    let mut addresses = Vec::new();
    while !reader.is_empty() {
        let (request_id, prefix) = take_address(reader)?;
        if request_id.get() == 0 {
            return Err(CapsuleError::RequestIdZero);
        }
        addresses.push(RequestedAddress { request_id, prefix });
    }
    if addresses.is_empty() {
        return Err(CapsuleError::NoRequest);
    }
    let mut ids: Vec<VarInt> = addresses.iter().map(|address| address.request_id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(CapsuleError::RequestIdTwice(pair[0].get())),
        None => Ok(addresses),
    }
}

fn routes(reader: &mut Reader<'_>) -> Result<Routes, CapsuleError> {
    let mut routes = Vec::new();
    while !reader.is_empty() {
        let version = take_version(reader)?;
        let first = take_ip(reader, version)?;
        let last = take_ip(reader, version)?;
        let protocol = reader.u8().map_err(|_| CapsuleError::Truncated)?;
        let addresses = AddressRange::new(first, last).ok_or(CapsuleError::Range)?;
        routes.push(Route {
            addresses,
            protocol,
        });
    }
    Ok(Routes::new(routes)?)
}

#[derive(Clone, Copy)]
enum Version {
    V4,
    V6,
}

fn take_version(reader: &mut Reader<'_>) -> Result<Version, CapsuleError> {
    match reader.u8().map_err(|_| CapsuleError::Truncated)? {
        4 => Ok(Version::V4),
        6 => Ok(Version::V6),
        other => Err(CapsuleError::Version(other)),
    }
}

fn take_ip(reader: &mut Reader<'_>, version: Version) -> Result<IpAddr, CapsuleError> {
    let address = match version {
        Version::V4 => reader.array::<4>().map(IpAddr::from),
        Version::V6 => reader.array::<16>().map(IpAddr::from),
    };
    address.map_err(|_| CapsuleError::Truncated)
}

fn take_address(reader: &mut Reader<'_>) -> Result<(VarInt, Prefix), CapsuleError> {
    let number = reader.varint().map_err(|_| CapsuleError::Truncated)?;
    let request_id = VarInt::new(number).map_err(|_| CapsuleError::Truncated)?;
    let version = take_version(reader)?;
    let address = take_ip(reader, version)?;
    let length = reader.u8().map_err(|_| CapsuleError::Truncated)?;
    let prefix = Prefix::new(address, length).ok_or(CapsuleError::PrefixLength(length))?;
    if prefix.first() != address {
        return Err(CapsuleError::HostBits);
    }
    Ok((request_id, prefix))
}

fn put_address(out: &mut Vec<u8>, request_id: VarInt, prefix: Prefix) {
    let mut id = [0; 8];
    let mut writer = Writer::new(&mut id);
    writer.varint(request_id.get());
    let size = writer.written();
    out.extend_from_slice(&id[..size]);
    put_version(out, prefix.address());
    put_ip(out, prefix.address());
    out.push(prefix.length());
}

fn put_route(out: &mut Vec<u8>, route: &Route) {
    put_version(out, route.addresses.first());
    put_ip(out, route.addresses.first());
    put_ip(out, route.addresses.last());
    out.push(route.protocol);
}

fn put_version(out: &mut Vec<u8>, address: IpAddr) {
    out.push(if address.is_ipv4() { 4 } else { 6 });
}

fn put_ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
        IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
    }
}
