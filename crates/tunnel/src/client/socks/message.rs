//! Messages of SOCKS version 5 (RFC 1928): what a client sends, decoded; what it is answered, encoded.
//!
//! Decoding works on the bytes received so far. It needs more of them ([`MessageError::Incomplete`]) or consumes one
//! message; the longest one has 262 bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf, BufMut};
use thiserror::Error;

use crate::target::{Target, TargetError};

/// The version of the protocol.
const VERSION: u8 = 5;

/// The method without authentication.
const NO_AUTHENTICATION: u8 = 0;
/// No offered method is acceptable.
const NO_METHOD: u8 = 0xff;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// What is wrong with a message.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum MessageError {
    /// More bytes are needed.
    #[error("the message is incomplete")]
    Incomplete,
    /// It is of another protocol, such as SOCKS 4 or HTTP.
    #[error("the message is not of SOCKS 5, but begins with {0:#04x}")]
    Version(u8),
    /// The type of address is unknown.
    #[error("there is no type {0} of addresses")]
    AddressType(u8),
    /// A name has bytes that names don't have.
    #[error("the name of the target is not ASCII")]
    Name,
    /// The address names no target.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// A TCP connection.
    Connect,
    /// A TCP connection from the target.
    Bind,
    /// UDP, until the TCP connection of the request ends.
    UdpAssociate,
    /// Another command.
    Other(u8),
}

/// An address in a message: any host and port, which need not be a target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// An IP address and a port.
    Ip(SocketAddr),
    /// A name, 0 to 255 bytes, and a port.
    Name(Vec<u8>, u16),
}

impl Address {
    /// The target of this address.
    pub fn target(&self) -> Result<Target, MessageError> {
        Ok(match self {
            Self::Ip(address) => Target::new(&address.ip().to_string(), address.port())?,
            Self::Name(name, port) => {
                let name = std::str::from_utf8(name)
                    .ok()
                    .filter(|name| name.is_ascii());
                Target::new(name.ok_or(MessageError::Name)?, *port)?
            }
        })
    }

    /// Takes an address from the front of `bytes`: its type, itself, and the port.
    fn decode(bytes: &mut &[u8]) -> Result<Self, MessageError> {
        let incomplete = |_| MessageError::Incomplete;
        let kind = bytes.try_get_u8().map_err(incomplete)?;
        let ip: IpAddr = match kind {
            IPV4 => Ipv4Addr::from_bits(bytes.try_get_u32().map_err(incomplete)?).into(),
            IPV6 => Ipv6Addr::from_bits(bytes.try_get_u128().map_err(incomplete)?).into(),
            NAME => {
                let len = usize::from(bytes.try_get_u8().map_err(incomplete)?);
                let (name, rest) = bytes
                    .split_at_checked(len)
                    .ok_or(MessageError::Incomplete)?;
                *bytes = rest;
                let port = bytes.try_get_u16().map_err(incomplete)?;
                return Ok(Self::Name(name.to_vec(), port));
            }
            other => return Err(MessageError::AddressType(other)),
        };
        let port = bytes.try_get_u16().map_err(incomplete)?;
        Ok(Self::Ip((ip, port).into()))
    }

    /// Appends the encoded address; bytes of a name past the 255th are left out.
    fn encode(&self, out: &mut Vec<u8>) {
        let port = match self {
            Self::Ip(address) => {
                match address.ip() {
                    IpAddr::V4(ip) => {
                        out.put_u8(IPV4);
                        out.extend_from_slice(&ip.octets());
                    }
                    IpAddr::V6(ip) => {
                        out.put_u8(IPV6);
                        out.extend_from_slice(&ip.octets());
                    }
                }
                address.port()
            }
            Self::Name(name, port) => {
                let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
                out.extend_from_slice(&[NAME, len]);
                out.extend_from_slice(&name[..usize::from(len)]);
                *port
            }
        };
        out.put_u16(port);
    }
}

/// A client's first message: the methods of authentication that it offers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Greeting {
    /// Whether one of them is to do without.
    pub without_authentication: bool,
}

impl Greeting {
    /// Takes a greeting from the front of `bytes`.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, MessageError> {
        let mut rest = *bytes;
        version(&mut rest)?;
        let len = rest.try_get_u8().map_err(|_| MessageError::Incomplete)?;
        let (methods, rest) = rest
            .split_at_checked(usize::from(len))
            .ok_or(MessageError::Incomplete)?;
        *bytes = rest;
        Ok(Self {
            without_authentication: methods.contains(&NO_AUTHENTICATION),
        })
    }

    /// The answer to it.
    pub fn answer(self) -> [u8; 2] {
        let method = if self.without_authentication {
            NO_AUTHENTICATION
        } else {
            NO_METHOD
        };
        [VERSION, method]
    }
}

/// A client's second message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocksRequest {
    /// What it asks for.
    pub command: Command,
    /// The target, or for [`Command::UdpAssociate`] from where datagrams will come.
    pub address: Address,
}

impl SocksRequest {
    /// Takes a request from the front of `bytes`.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, MessageError> {
        let mut rest = *bytes;
        version(&mut rest)?;
        let incomplete = |_| MessageError::Incomplete;
        let command = match rest.try_get_u8().map_err(incomplete)? {
            1 => Command::Connect,
            2 => Command::Bind,
            3 => Command::UdpAssociate,
            other => Command::Other(other),
        };
        // Reserved.
        rest.try_get_u8().map_err(incomplete)?;
        let address = Address::decode(&mut rest)?;
        *bytes = rest;
        Ok(Self { command, address })
    }
}

fn version(bytes: &mut &[u8]) -> Result<(), MessageError> {
    match bytes.try_get_u8() {
        Ok(VERSION) => Ok(()),
        Ok(other) => Err(MessageError::Version(other)),
        Err(_) => Err(MessageError::Incomplete),
    }
}

/// How a request is answered (RFC 1928, section 6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Agreed.
    Succeeded = 0,
    /// Any other failure.
    GeneralFailure = 1,
    /// The proxy does not permit it.
    NotAllowed = 2,
    /// There is no route to the target.
    NetworkUnreachable = 3,
    /// The target can't be reached, or its name has no address.
    HostUnreachable = 4,
    /// The target refused the connection.
    ConnectionRefused = 5,
    /// The command is not supported.
    CommandNotSupported = 7,
    /// The type of address is not supported.
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The message: with the local address of what was agreed on.
    pub fn encode(self, bound: SocketAddr) -> Vec<u8> {
        let mut out = vec![VERSION, self as u8, 0];
        Address::Ip(bound).encode(&mut out);
        out
    }
}

/// A datagram between a client and a UDP association (RFC 1928, section 7).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UdpMessage<'a> {
    /// 0, or the place in a sequence of fragments.
    pub fragment: u8,
    /// Where it goes to, or comes from.
    pub address: Address,
    /// The UDP payload.
    pub payload: &'a [u8],
}

impl<'a> UdpMessage<'a> {
    /// The message in a datagram.
    pub fn decode(mut bytes: &'a [u8]) -> Result<Self, MessageError> {
        let incomplete = |_| MessageError::Incomplete;
        // Reserved.
        bytes.try_get_u16().map_err(incomplete)?;
        let fragment = bytes.try_get_u8().map_err(incomplete)?;
        let address = Address::decode(&mut bytes)?;
        Ok(Self {
            fragment,
            address,
            payload: bytes,
        })
    }

    /// The datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 22);
        out.extend_from_slice(&[0, 0, self.fragment]);
        self.address.encode(&mut out);
        out.extend_from_slice(self.payload);
        out
    }
}
