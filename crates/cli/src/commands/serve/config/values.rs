//! Types of configuration values that are validated when read, so that an error has its line.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use swiftwater::link::parse_duration;
use swiftwater::tls::pki_types::ServerName;
use swiftwater_http::web::host::host_name;
use swiftwater_http::web::proxy::Upstream;
use swiftwater_http::web::redirect::Redirect;
use swiftwater_http::web::response_fields::ResponseFields;

use crate::multipath::{parse_feedback, parse_scheduler};
use crate::transport::{parse_controller, parse_recovery};

/// Reads a string with `parse`, whose error states what was expected.
fn text<'de, D, T, E>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    let text = String::deserialize(deserializer)?;
    parse(&text).map_err(|error| D::Error::custom(format_args!("\"{text}\": {error}")))
}

/// An address with its port.
pub(super) fn address<'de, D>(deserializer: D) -> Result<SocketAddr, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, crate::listen_address::parse)
}

/// The same for an optional value.
pub(super) fn some_address<'de, D>(deserializer: D) -> Result<Option<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    address(deserializer).map(Some)
}

/// A duration, written `30s` or `1.5ms`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Period(pub Duration);

impl Period {
    /// Whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| parse_duration(text).map(Self))
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = if self.0.subsec_nanos() == 0 {
            format!("{}s", self.0.as_secs())
        } else {
            format!("{}ms", self.0.as_secs_f64() * 1e3)
        };
        serializer.serialize_str(&text)
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Count<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> Count<LEAST, MOST> {
    /// `value`, or the nearest permitted value.
    pub const fn clamped(value: u64) -> Self {
        if value < LEAST {
            Self(LEAST)
        } else if value > MOST {
            Self(MOST)
        } else {
            Self(value)
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const LEAST: u64, const MOST: u64> FromStr for Count<LEAST, MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(value) if (LEAST..=MOST).contains(&value) => Ok(Self(value)),
            _ => Err(format!("it must be a whole number from {LEAST} to {MOST}")),
        }
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Count<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        match u64::try_from(value) {
            Ok(value) if (LEAST..=MOST).contains(&value) => Ok(Self(value)),
            _ => Err(D::Error::invalid_value(
                Unexpected::Signed(value),
                &format!("a whole number from {LEAST} to {MOST}").as_str(),
            )),
        }
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Count<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// Names of hosts: one, `example.org`, or all direct subdomains of one, `*.example.org`. In lower
/// case.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct HostPattern(String);

impl HostPattern {
    /// As written in the file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| {
            let lower = text.to_ascii_lowercase();
            let name = lower.strip_prefix("*.").unwrap_or(&lower);
            if !name.contains('*') && host_name(name).as_deref() == Some(name) {
                Ok(Self(lower))
            } else {
                Err("a host without a port was expected, such as example.org or *.example.org")
            }
        })
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A path prefix: `/` for all, `/api` for itself and the paths below.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RoutePath(String);

impl RoutePath {
    /// All paths.
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// As written, without a slash at its end unless it is `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for RoutePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| {
            let is_plain = |segment: &str| {
                let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()+,;=:@".contains(c);
                !segment.is_empty()
                    && !segment.trim_matches('.').is_empty()
                    && segment.chars().all(allowed)
            };
            let trimmed = text.strip_suffix('/').unwrap_or(text);
            match trimmed.strip_prefix('/') {
                None if text == "/" => Ok(Self::root()),
                Some(rest) if rest.split('/').all(is_plain) => Ok(Self(trimmed.to_owned())),
                _ => Err("the beginning of a path was expected, such as / or /api"),
            }
        })
    }
}

impl Serialize for RoutePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// An upstream, such as `http://host[:port][/prefix]`, as written.
#[derive(Clone, Debug)]
pub struct UpstreamUrl {
    text: String,
    parsed: Upstream,
}

impl UpstreamUrl {
    /// As written in the file.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parsed value.
    pub fn upstream(&self) -> &Upstream {
        &self.parsed
    }
}

impl PartialEq for UpstreamUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl FromStr for UpstreamUrl {
    type Err = swiftwater_http::web::proxy::UpstreamError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.to_owned();
        Upstream::parse(&text).map(|parsed| Self { text, parsed })
    }
}

impl<'de> Deserialize<'de> for UpstreamUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, str::parse)
    }
}

impl Serialize for UpstreamUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// One upstream, or a list of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstreams(Vec<UpstreamUrl>);

impl Upstreams {
    /// The first, and the others.
    pub fn split(&self) -> Option<(&UpstreamUrl, &[UpstreamUrl])> {
        self.0.split_first()
    }
}

impl From<UpstreamUrl> for Upstreams {
    fn from(only: UpstreamUrl) -> Self {
        Self(vec![only])
    }
}

impl<'de> Deserialize<'de> for Upstreams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Vec<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an upstream or a list of upstreams")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
                Ok(vec![text.to_owned()])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
                let mut all = Vec::new();
                while let Some(text) = list.next_element()? {
                    all.push(text);
                }
                Ok(all)
            }
        }
        let texts = deserializer.deserialize_any(OneOrMore)?;
        let parse = |text: &String| {
            UpstreamUrl::from_str(text)
                .map_err(|error| D::Error::custom(format_args!("\"{text}\": {error}")))
        };
        let all: Vec<_> = texts.iter().map(parse).collect::<Result<_, _>>()?;
        if all.is_empty() {
            return Err(D::Error::custom("the list of upstreams is empty"));
        }
        Ok(Self(all))
    }
}

impl Serialize for Upstreams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [only] => only.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

/// An address to redirect to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedirectTarget(String);

impl RedirectTarget {
    /// As written in the file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for RedirectTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| {
            Redirect::new(text, 308).map(|_| Self(text.to_owned()))
        })
    }
}

impl Serialize for RedirectTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The status of a redirection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct RedirectStatus(u16);

impl RedirectStatus {
    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl<'de> Deserialize<'de> for RedirectStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let status = u16::deserialize(deserializer)?;
        Redirect::new("/", status).map_err(D::Error::custom)?;
        Ok(Self(status))
    }
}

/// Fields to set in responses; an empty value removes a field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fields(BTreeMap<String, String>);

impl Fields {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (self.0.iter()).map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Self(BTreeMap::deserialize(deserializer)?);
        ResponseFields::new(fields.iter()).map_err(D::Error::custom)?;
        Ok(fields)
    }
}

/// Path and query of a health check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CheckPath(PathAndQuery);

impl CheckPath {
    /// The value.
    pub fn get(&self) -> &PathAndQuery {
        &self.0
    }
}

impl<'de> Deserialize<'de> for CheckPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, |text| match text.parse() {
            Ok(path) if text.starts_with('/') => Ok(Self(path)),
            _ => Err("a path was expected, such as /health"),
        })
    }
}

impl Serialize for CheckPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

/// The name of a congestion controller.
pub(super) fn controller<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, parse_controller).map(Some)
}

/// The name of a recovery policy.
pub(super) fn recovery<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, parse_recovery).map(Some)
}

/// The name of a scheduler.
pub(super) fn scheduler<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, parse_scheduler).map(Some)
}

/// The name of a feedback policy.
pub(super) fn feedback<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, parse_feedback).map(Some)
}

/// The name of a profile.
pub(super) fn profile<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, |name| {
        name.parse()
            .map(|profile: swiftwater::Profile| profile.name().to_owned())
    })
    .map(Some)
}

/// A host with an optional port, such as `app.internal`.
pub(super) fn upstream_host<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, |host| {
        let is_host = host_name(host).is_some() && host.parse::<http::uri::Authority>().is_ok();
        is_host
            .then(|| host.to_owned())
            .ok_or("a host was expected, such as app.example.org")
    })
    .map(Some)
}

/// A name in TLS, or an address.
pub(super) fn upstream_name<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, |name| {
        ServerName::try_from(name)
            .map(|_| name.to_owned())
            .map_err(|_| "the name or address of a server was expected")
    })
    .map(Some)
}

/// A field value, such as `max-age=3600`.
pub(super) fn field_value<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    text(deserializer, |value| {
        http::HeaderValue::from_str(value)
            .map(|_| value.to_owned())
            .map_err(|_| "a valid HTTP field value was expected")
    })
    .map(Some)
}
