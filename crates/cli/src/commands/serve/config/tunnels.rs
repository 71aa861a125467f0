//! Routes that proxy UDP, TCP and IP: their part of the configuration, and the tokens of their users.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use swiftwater::tls::ClientAuthorities;
use swiftwater::units::Bandwidth;
use swiftwater::units::text::parse_rate;
use swiftwater_tunnel::policy::{Ports, Prefix, TargetPolicy};
use swiftwater_tunnel::proxy::{
    Access, Limits, Origin, OriginError, ProxyConfig, Token, UserLimit, interface_addresses,
};
use swiftwater_tunnel::tecc::RepairLimits;

use super::values::{Count, Period};
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::proxies::ForwardingTransform;

/// The largest file of tokens or subjects that is read, bytes.
const MAX_USER_FILE: u64 = 16 << 20;

/// The TUN device of a proxy for IP, unless it has another name.
const DEVICE: &str = "swiftwater0";

/// A proxy for UDP (CONNECT-UDP, RFC 9298) and TCP (CONNECT), and for IP (CONNECT-IP, RFC 9484) if it has addresses for
/// that.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tunnels {
    /// File of the users' tokens, a line `NAME TOKEN` for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<PathBuf>,
    /// Whether clients with a certificate may use it ([`Tls::client_ca`](super::Tls::client_ca)), with tokens or without.
    /// Default: no.
    pub certificates: bool,
    /// File of the subjects that are users, a line for each, as `CN=bob, O=Example`. Default: all that have a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<PathBuf>,
    /// Whether whoever reaches the server may use it. Default: no.
    pub anyone: bool,
    /// Pages of the web that may use it. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_origins: Vec<PageOrigin>,
    /// Ports that may be reached. Default: 443.
    pub ports: Vec<PortRange>,
    /// Addresses that may be reached although they are not public.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<AddressPrefix>,
    /// Addresses that may not be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<AddressPrefix>,
    /// Tunnels at once. Default: 4096.
    pub most: Count<1, 1_000_000>,
    /// Tunnels of one user at once. Default: 128.
    pub most_per_user: Count<1, 1_000_000>,
    /// What the tunnels of one user may pass together, in each direction. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_bandwidth: Option<UserBandwidth>,
    /// UDP datagrams and IP packets of one user each second, in each direction. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_packets: Option<Count<1, 1_000_000_000>>,
    /// New tunnels for UDP and TCP to one address each second. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_per_target: Option<Count<1, 1_000_000>>,
    /// How long a tunnel for UDP lasts without a datagram. Default: 2 minutes.
    pub idle_timeout: Period,
    /// Whether losses on the way to clients are repaired for those that ask for it. Default: yes.
    pub repair: bool,
    /// The transforms with which packets of QUIC are forwarded beside the connections of clients that ask for it; none
    /// without forwarding. Default: both.
    pub forwarding: Vec<ForwardingTransform>,
    /// The addresses of tunnels for IP packets, one prefix of each version of IP. Default: none, no such tunnels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_pool: Vec<AddressPrefix>,
    /// The name of the TUN device that those lead into. Default: `swiftwater0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tun: Option<String>,
}

impl Default for Tunnels {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            tokens: None,
            certificates: false,
            subjects: None,
            anyone: false,
            allow_origins: Vec::new(),
            ports: vec![PortRange(443..=443)],
            allow: Vec::new(),
            deny: Vec::new(),
            most: Count::clamped(limits.tunnels as u64),
            most_per_user: Count::clamped(limits.tunnels_per_user as u64),
            user_bandwidth: None,
            user_packets: None,
            new_per_target: None,
            idle_timeout: Period(limits.idle_timeout),
            repair: true,
            forwarding: vec![ForwardingTransform::Scramble, ForwardingTransform::Identity],
            ip_pool: Vec::new(),
            tun: None,
        }
    }
}

impl Tunnels {
    /// What is wrong, if something is.
    pub(super) fn problem(&self) -> Option<String> {
        let is_for_some = self.tokens.is_some() || self.certificates;
        match (is_for_some, self.anyone) {
            (false, false) => {
                let text = "a proxy needs tokens, certificates = true, or anyone = true";
                return Some(text.to_owned());
            }
            (true, true) => {
                let text = "anyone = true excludes tokens and certificates";
                return Some(text.to_owned());
            }
            _ => {}
        }
        if self.subjects.is_some() && !self.certificates {
            return Some("subjects need certificates = true".to_owned());
        }
        if self.ip_pool.is_empty() {
            return self.tun.as_ref().map(|_| "tun needs an ip_pool".to_owned());
        }
        if !is_interface_name(self.device()) {
            return Some(format!(
                "{:?} is not the name of a network interface",
                self.device()
            ));
        }
        let wrong = interface_addresses(&self.pools()).err()?;
        Some(format!("ip_pool: {wrong}"))
    }

    /// The prefixes for tunnels for IP packets; none if there are no such tunnels.
    pub(in crate::commands::serve) fn pools(&self) -> Vec<Prefix> {
        self.ip_pool.iter().map(|it| it.0).collect()
    }

    /// The name of the TUN device.
    pub(in crate::commands::serve) fn device(&self) -> &str {
        self.tun.as_deref().unwrap_or(DEVICE)
    }

    /// The configuration of the proxy, with tokens and subjects as they are in the files now; `clients` checks the certificates of
    /// users.
    pub(in crate::commands::serve) fn proxy(
        &self,
        clients: Option<&Arc<ClientAuthorities>>,
    ) -> Result<ProxyConfig, Failure> {
        let tokens = self.tokens.as_deref().map(tokens).transpose()?;
        let subjects = self.subjects.as_deref().map(subjects).transpose()?;
        let access = match (clients.filter(|_| self.certificates), tokens) {
            (Some(authorities), tokens) => Access::Certificates {
                authorities: Arc::clone(authorities) as _,
                subjects: subjects.map(Arc::new),
                tokens: tokens.unwrap_or_default(),
            },
            (None, Some(tokens)) => Access::Tokens(tokens),
            (None, None) if self.anyone => Access::Anyone,
            // Certificates that the server asks for only after a restart.
            (None, None) => Access::Tokens(Arc::default()),
        };
        let prefixes = |prefixes: &[AddressPrefix]| prefixes.iter().map(|it| it.0).collect();
        Ok(ProxyConfig {
            allowed_origins: self.allow_origins.iter().map(|it| it.0.clone()).collect(),
            policy: TargetPolicy {
                ports: Ports::new(self.ports.iter().map(|range| range.0.clone())),
                allowed: prefixes(&self.allow),
                denied: prefixes(&self.deny),
            },
            limits: Limits {
                tunnels: self.most.get() as usize,
                tunnels_per_user: self.most_per_user.get() as usize,
                user: UserLimit {
                    bytes: self.user_bandwidth.and_then(UserBandwidth::bytes),
                    packets: self.user_packets.and_then(|it| NonZeroU64::new(it.get())),
                },
                new_per_target: self.new_per_target.and_then(|it| NonZeroU64::new(it.get())),
                idle_timeout: self.idle_timeout.0,
                ..Limits::default()
            },
            repair: self.repair.then(RepairLimits::default),
            forwarding: self.forwarding.iter().map(|it| it.get()).collect(),
            ..ProxyConfig::new(access)
        })
    }
}

/// Whether Linux takes `name` for a network interface.
pub(crate) fn is_interface_name(name: &str) -> bool {
    let is_printable = |byte: u8| byte.is_ascii_graphic() && !b"/:%".contains(&byte);
    (1..=15).contains(&name.len()) && name.bytes().all(is_printable) && !matches!(name, "." | "..")
}

/// A file with a line for each user, which has a name in messages.
struct UserFile<'a> {
    kind: &'static str,
    path: &'a Path,
}

impl UserFile<'_> {
    fn failure(&self, why: &dyn fmt::Display) -> Failure {
        let (kind, path) = (self.kind, self.path.display());
        Failure::new(Exit::LocalFile, format_args!("{kind} {path}: {why}"))
    }

    /// What `parse` makes of the lines; those that are empty or begin with `#` are left out.
    fn read<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Failure> {
        let bytes = read_limited(self.path, MAX_USER_FILE);
        let bytes = bytes.map_err(|error| self.failure(&plain_io_error(&error)))?;
        let text = String::from_utf8(bytes).map_err(|_| self.failure(&"it is not UTF-8"))?;
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let users = lines.map(|(number, line)| {
            // The line itself may be a secret.
            parse(line).map_err(|why| self.failure(&format_args!("line {}: {why}", number + 1)))
        });
        let users: Vec<T> = users.collect::<Result<_, _>>()?;
        if users.is_empty() {
            return Err(self.failure(&format_args!("it has no {}", self.kind)));
        }
        Ok(users)
    }
}

/// The tokens of a file.
fn tokens(path: &Path) -> Result<Arc<[Token]>, Failure> {
    let file = UserFile {
        kind: "tokens",
        path,
    };
    let tokens = file.read(|line| {
        let (user, secret) = line
            .split_once(char::is_whitespace)
            .ok_or("NAME TOKEN was expected")?;
        Token::new(user, secret.trim_start()).map_err(|error| error.to_string())
    });
    Ok(tokens?.into())
}

/// The subjects of a file.
fn subjects(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let file = UserFile {
        kind: "subjects",
        path,
    };
    let subjects = file.read(|line| Ok(line.to_owned()))?;
    Ok(subjects.into_iter().collect())
}

/// A rate, `100mbit`: bits each second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UserBandwidth(Bandwidth);

impl UserBandwidth {
    /// Bytes each second, at least one.
    fn bytes(self) -> Option<NonZeroU64> {
        NonZeroU64::new((self.0.as_bps() / 8).max(1))
    }
}

impl FromStr for UserBandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_rate(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl Serialize for UserBandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}bit", self.0.as_bps()))
    }
}

impl<'de> Deserialize<'de> for UserBandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The origin of pages of the web, `https://app.example`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageOrigin(Origin);

impl FromStr for PageOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let origin = text.parse();
        origin
            .map(Self)
            .map_err(|error: OriginError| error.to_string())
    }
}

impl Serialize for PageOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PageOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A port, `443`, or a range of ports, `8000-8999`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a port or a range of ports such as 8000-8999");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse().ok().filter(|&port: &u16| port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last {
            write!(f, "{first}")
        } else {
            write!(f, "{first}-{last}")
        }
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u16),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(port) => port.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(D::Error::custom)
    }
}

/// Addresses with a common prefix: `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AddressPrefix(pub Prefix);

impl FromStr for AddressPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let prefix = text.parse();
        prefix
            .map(Self)
            .map_err(|error: swiftwater_tunnel::policy::PrefixError| error.to_string())
    }
}

impl Serialize for AddressPrefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AddressPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
