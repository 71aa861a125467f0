//! Targets of UDP proxying: a host and a port, and the URIs that name them.

mod template;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use thiserror::Error;

pub use template::{Template, TemplateError};

/// The path of the default template up to its variables (RFC 9298, section 3.1).
pub const WELL_KNOWN: &str = "/.well-known/masque/udp/";

/// The longest DNS name in text form, bytes (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
/// The longest label of a DNS name, bytes.
const MAX_LABEL: usize = 63;

/// The host of a target.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Host {
    /// A DNS name, in lower case.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Where a tunnel leads: `example.net:443`, `192.0.2.1:53`, `[2001:db8::1]:443`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    host: Host,
    port: u16,
}

/// Text that names no target.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TargetError {
    /// The host is neither a DNS name nor an address.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Host(String),
    /// IPv6 zone identifiers have no meaning at another machine (RFC 9298, section 3).
    #[error("{0:?} has an IPv6 zone, which means nothing to a proxy")]
    Zone(String),
    /// The port is not a number of 1 to 65535.
    #[error("{0:?} is not a port of 1 to 65535")]
    Port(String),
    /// The text is not `host:port`.
    #[error("{0:?} is not HOST:PORT")]
    Form(String),
    /// The path does not fit the proxy's template.
    #[error("the path is not {WELL_KNOWN}{{target_host}}/{{target_port}}/")]
    Path,
}

impl Target {
    /// The target `host`, a DNS name or an address (IPv6 without brackets), at `port`.
    pub fn new(host: &str, port: u16) -> Result<Self, TargetError> {
        if port == 0 {
            return Err(TargetError::Port(port.to_string()));
        }
        let host = parse_host(host)?;
        Ok(Self { host, port })
    }

    /// The target that the path of a request of the default template names.
    pub fn from_path(path: &str) -> Result<Self, TargetError> {
        let variables = path.strip_prefix(WELL_KNOWN).ok_or(TargetError::Path)?;
        let variables = variables.strip_suffix('/').unwrap_or(variables);
        let (host, port) = variables.split_once('/').ok_or(TargetError::Path)?;
        if port.contains('/') {
            return Err(TargetError::Path);
        }
        let decoded = percent_decode_str(host).decode_utf8();
        let host = decoded.map_err(|_| TargetError::Host(host.to_owned()))?;
        Self::new(&host, parse_port(port)?)
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn parse_port(text: &str) -> Result<u16, TargetError> {
    let wrong = || TargetError::Port(text.to_owned());
    // Numbers also parse with a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(wrong()),
        Ok(port) => Ok(port),
    }
}

fn parse_host(text: &str) -> Result<Host, TargetError> {
    if text.contains(':') && text.contains('%') {
        return Err(TargetError::Zone(text.to_owned()));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(Host::Address(address.into()));
    }
    if is_name(text) {
        Ok(Host::Name(text.to_ascii_lowercase()))
    } else {
        Err(TargetError::Host(text.to_owned()))
    }
}

/// True for a DNS name in the letters, digits, hyphens and underscores that occur. One whose last label is a
/// number is an IPv4 address in a form that resolvers read differently.
fn is_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .or(last.strip_prefix("0X"))
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.len() <= MAX_NAME && name.split('.').all(is_label) && !is_number
}

impl FromStr for Target {
    type Err = TargetError;

    /// `host:port`, an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError::Form(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = parse_port(port)?;
        let bracketed = host.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
        match bracketed {
            Some(Some(address)) if address.contains(':') => Self::new(address, port),
            Some(_) => Err(wrong()),
            None if host.contains(':') => Err(wrong()),
            None => Self::new(host, port),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{port}"),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}:{port}"),
            Host::Name(name) => write!(f, "{name}:{port}"),
        }
    }
}

impl FromStr for Host {
    type Err = TargetError;

    /// A DNS name or an address, IPv6 without brackets.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        parse_host(text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}
