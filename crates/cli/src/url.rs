//! The addresses that `get` accepts, references to others, and percent-encoding (RFC 3986, the parts
//! needed here).

use std::fmt::{self, Write as _};
use std::net::Ipv6Addr;
use std::str::FromStr;

use thiserror::Error;

/// Longest address accepted, bytes.
const MAX_LENGTH: usize = 8_000;

/// The scheme of an address.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scheme {
    /// `https`: over TLS or QUIC.
    Https,
    /// `http`: an attacker on the path can read and change everything.
    Http,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// `https://host[:port]/path`, or with `http`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Url {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// True if scheme, host and port are the same (RFC 9110, section 4.3.1).
    pub fn has_origin_of(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Resolves `reference` against this address (RFC 3986, section 5.2).
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let Self {
            host, port, path, ..
        } = self;
        let base = path.split('?').next().unwrap_or_default();
        let reference = reference.trim();
        let has_scheme = reference.split(['/', '?', '#']).next();
        let has_scheme = has_scheme.is_some_and(|first| first.contains(':'));
        let joined = if has_scheme {
            return reference.parse();
        } else if let Some(rest) = reference.strip_prefix("//") {
            return format!("{}://{rest}", self.scheme.name()).parse();
        } else if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') {
            format!("{base}{reference}")
        } else if reference.is_empty() || reference.starts_with('#') {
            path.clone()
        } else {
            let directory = base.rfind('/').map_or("/", |end| &base[..=end]);
            format!("{directory}{reference}")
        };
        let joined = joined.split('#').next().unwrap_or_default();
        let (path, query) = match joined.find('?') {
            Some(begin) => joined.split_at(begin),
            None => (joined, ""),
        };
        if path.len() + query.len() > MAX_LENGTH {
            return Err(UrlError::new(reference, "it is too long"));
        }
        Ok(Self {
            scheme: self.scheme,
            host: host.clone(),
            port: *port,
            path: percent_encode(&format!("{}{query}", without_dots(path))),
        })
    }

    /// The host: a name, an IPv4 address, or an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path with its query, percent-encoded, as it goes into a request. It begins with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A name for the file in the local directory: the last segment of the path, decoded. It is
    /// never a path itself, neither hidden nor empty.
    pub fn file_name(&self) -> Result<String, UrlError> {
        let path = self.path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let name = percent_decode(last)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| UrlError::new(&self.to_string(), "its path is badly encoded"))?;
        let harmless = !name.starts_with('.')
            && !name
                .chars()
                .any(|c| matches!(c, '/' | '\\' | ':') || c.is_control());
        if name.is_empty() || !harmless || name.len() > 255 {
            return Err(UrlError::new(
                &self.to_string(),
                "its path ends in no usable file name",
            ));
        }
        Ok(name)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(input: &str) -> Result<Self, UrlError> {
        let fail = |reason| UrlError::new(input, reason);
        if input.len() > MAX_LENGTH {
            return Err(fail("it is too long"));
        }
        let Some((scheme, rest)) = input.split_once("://") else {
            return Err(fail("write https://host:port/path"));
        };
        let known = [Scheme::Https, Scheme::Http];
        let mut known = known.into_iter();
        let scheme = known.find(|known| known.name().eq_ignore_ascii_case(scheme));
        let scheme = scheme.ok_or_else(|| fail("only https:// and http:// are supported"))?;
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let (host, port) = split_authority(authority, scheme).map_err(fail)?;
        let path = path.split('#').next().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            scheme,
            host,
            port,
            path: format!("{slash}{}", percent_encode(path)),
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scheme,
            host,
            port,
            path,
        } = self;
        let scheme = scheme.name();
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}{path}")
        } else {
            write!(f, "{scheme}://{host}:{port}{path}")
        }
    }
}

/// An invalid address.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("'{url}' is not a usable address: {reason}")]
pub struct UrlError {
    url: String,
    reason: &'static str,
}

impl UrlError {
    fn new(url: &str, reason: &'static str) -> Self {
        Self {
            url: url.chars().take(200).collect(),
            reason,
        }
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_authority(authority: &str, scheme: Scheme) -> Result<(String, u16), &'static str> {
    if authority.contains('@') {
        return Err("user names and passwords are not supported");
    }
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest
            .split_once(']')
            .ok_or("an IPv6 address lacks its ']'")?;
        if host.parse::<Ipv6Addr>().is_err() {
            return Err("the text in brackets is not an IPv6 address");
        }
        (host, after)
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        authority.split_at(end)
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if host.is_empty() {
        return Err("it has no host");
    }
    if host.len() > 253 || !host.chars().all(valid) {
        return Err("the host is neither a name nor an IP address");
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => scheme.default_port(),
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or("the port is not a number from 1 to 65535")?,
        None => return Err("the text after the host is not a port"),
    };
    Ok((host.to_ascii_lowercase(), port))
}

/// A path starting with `/` with its `.` and `..` removed (RFC 3986, section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments = path.strip_prefix('/').unwrap_or(path).split('/');
    let mut is_directory = false;
    for segment in segments {
        is_directory = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let end = if is_directory && !kept.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{end}", kept.join("/"))
}

/// Encodes characters that are not permitted in a request line. Encoded ones stay unchanged.
pub fn percent_encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_graphic() {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Decodes `%XX`; `None` if a `%` is not followed by two hexadecimal digits.
pub fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push((high * 16 + low) as u8);
    }
    Some(decoded)
}
