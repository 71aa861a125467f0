//! What a request for IP proxying asks for: a target and a protocol (RFC 9484, section 4.6), and its path in the default
//! template.

use std::fmt;

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

use crate::policy::Prefix;
use crate::target::{Host, Template, TemplateError};

/// The path of the default template up to its variables (RFC 9484, section 3).
pub const WELL_KNOWN: &str = "/.well-known/masque/ip/";

/// Stands for any target and any protocol.
const ANY: &str = "*";

/// What is encoded in a variable.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'*');

/// The packets that a tunnel is for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Scope {
    /// Where they go.
    pub target: ScopeTarget,
    /// Their protocol of IP; `None` for all. ICMP is always part of it.
    pub protocol: Option<u8>,
}

/// Where the packets of a tunnel go.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ScopeTarget {
    /// Anywhere.
    Any,
    /// To the addresses of a prefix.
    Prefix(Prefix),
    /// To the addresses of a DNS name, in lower case.
    Name(String),
}

/// A path or text that names no scope.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ScopeError {
    /// The target is not `*`, an address, a prefix or a DNS name.
    #[error("{0:?} is not *, an address, a prefix or a DNS name")]
    Target(String),
    /// The protocol is not `*` or a number of 0 to 255.
    #[error("{0:?} is not * or a protocol of 0 to 255")]
    Protocol(String),
    /// The path does not fit the default template.
    #[error("the path is not {WELL_KNOWN}{{target}}/{{ipproto}}/")]
    Path,
}

impl Scope {
    /// All packets.
    pub const ANY: Self = Self {
        target: ScopeTarget::Any,
        protocol: None,
    };

    /// The scope of these values of the template's variables `target` and `ipproto`.
    pub fn new(target: &str, protocol: &str) -> Result<Self, ScopeError> {
        Ok(Self {
            target: parse_target(target)?,
            protocol: parse_protocol(protocol)?,
        })
    }

    /// The scope in the path of a request of the default template.
    pub fn from_path(path: &str) -> Result<Self, ScopeError> {
        let variables = path.strip_prefix(WELL_KNOWN).ok_or(ScopeError::Path)?;
        let variables = variables.strip_suffix('/').unwrap_or(variables);
        let (target, protocol) = variables.split_once('/').ok_or(ScopeError::Path)?;
        if protocol.contains('/') {
            return Err(ScopeError::Path);
        }
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map(String::from).map_err(|_| ScopeError::Path)
        };
        Self::new(&decode(target)?, &decode(protocol)?)
    }

    /// The URI of a request for it to the proxy of `template`, in the default template of IP proxying.
    pub fn uri(&self, template: &Template) -> Result<Uri, TemplateError> {
        let authority = template.authority()?;
        let target = self.target.to_string();
        let target = utf8_percent_encode(&target, ENCODED);
        let protocol = self.protocol_text();
        let text = format!("https://{authority}{WELL_KNOWN}{target}/{protocol}/");
        text.parse().map_err(|_| TemplateError::Uri(text))
    }

    fn protocol_text(&self) -> String {
        self.protocol
            .map_or_else(|| ANY.to_owned(), |number| number.to_string())
    }
}

fn parse_target(text: &str) -> Result<ScopeTarget, ScopeError> {
    let wrong = || ScopeError::Target(text.to_owned());
    if text == ANY {
        return Ok(ScopeTarget::Any);
    }
    if text.contains('/') {
        let prefix: Prefix = text.parse().map_err(|_| wrong())?;
        let is_canonical = prefix.first() == prefix.address();
        return is_canonical
            .then_some(ScopeTarget::Prefix(prefix))
            .ok_or_else(wrong);
    }
    match text.parse().map_err(|_| wrong())? {
        Host::Address(address) => Ok(ScopeTarget::Prefix(Prefix::single(address))),
        Host::Name(name) => Ok(ScopeTarget::Name(name)),
    }
}

fn parse_protocol(text: &str) -> Result<Option<u8>, ScopeError> {
    let wrong = || ScopeError::Protocol(text.to_owned());
    if text == ANY {
        return Ok(None);
    }
    // Numbers also parse with a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    text.parse().map(Some).map_err(|_| wrong())
}

impl fmt::Display for ScopeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str(ANY),
            Self::Prefix(prefix) if *prefix == Prefix::single(prefix.address()) => {
                prefix.address().fmt(f)
            }
            Self::Prefix(prefix) => prefix.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} protocol {}", self.target, self.protocol_text())
    }
}
