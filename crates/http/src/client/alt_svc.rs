//! Alternative services (RFC 7838) for HTTP/3: the parser of the field value and the cache of
//! advertised alternatives. `persist` is not supported: no alternative is kept on purpose across
//! networks, and the record of QUIC failures covers alternatives that don't work.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AGE, ALT_SVC};
use http::{HeaderMap, HeaderValue};
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::origin::Origin;

/// Freshness without `ma` (RFC 7838, section 3.1).
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest freshness that is accepted; longer ones are cut to it.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Capacity of the cache, origins; the entry that expires first is evicted.
const ORIGINS: usize = 1024;
/// Longest field value that is parsed, bytes.
const MAX_VALUE: usize = 4096;

/// Where the origin offers HTTP/3.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Alternative {
    /// `None` for the origin's own host.
    pub(super) host: Option<Arc<str>>,
    pub(super) port: u16,
}

impl Alternative {
    /// Host of the alternative.
    pub(super) fn host_of<'a>(&'a self, origin: &'a Origin) -> &'a str {
        self.host.as_deref().unwrap_or(origin.host())
    }

    /// The value of Alt-Used for it (section 5).
    pub(super) fn used(&self, origin: &Origin) -> Option<HeaderValue> {
        let (host, port) = (self.host_of(origin), self.port);
        let value = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        HeaderValue::from_str(&value).ok()
    }
}

/// Effect of a field value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Advert {
    /// Clear all alternatives (`clear`).
    Clear,
    /// The value replaces all earlier alternatives: the first one for HTTP/3 and its freshness;
    /// `None` if it lists none.
    Http3(Option<(Alternative, Duration)>),
}

/// Parses a field value. `None` if it is malformed; the cache then stays as it is.
pub(super) fn parse(value: &str) -> Option<Advert> {
    let value = value.trim_matches([' ', '\t']);
    if value.len() > MAX_VALUE {
        return None;
    }
    if value == "clear" {
        return Some(Advert::Clear);
    }
    let mut found = None;
    for part in split(value, ',') {
        let mut pieces = split(part, ';').into_iter();
        let (protocol, authority) = pieces.next()?.split_once('=')?;
        let authority = unquote(authority.trim())?;
        let mut age = DEFAULT_MAX_AGE;
        for parameter in pieces {
            let (name, value) = parameter.split_once('=')?;
            if name.trim().eq_ignore_ascii_case("ma") {
                let value = value.trim();
                let seconds = unquote(value).unwrap_or_else(|| value.to_owned());
                age = Duration::from_secs(seconds.parse().ok()?).min(LONGEST);
            }
        }
        if protocol.trim() == "h3" && found.is_none() {
            found = Some((alternative(&authority)?, age));
        }
    }
    Some(Advert::Http3(found))
}

fn alternative(authority: &str) -> Option<Alternative> {
    let (host, port) = authority.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let host = (!host.is_empty()).then(|| Arc::from(host.to_ascii_lowercase()));
    Some(Alternative { host, port })
}

/// Splits at `separator` outside quoted strings; empty parts are left out.
fn split(value: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = value.split(|c: char| {
        let ends = c == separator && !quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        ends
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// The content of a quoted string (RFC 9110, section 5.6.4).
fn unquote(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next()? } else { c });
    }
    Some(out)
}

/// Cache of alternatives by origin, while they are fresh.
#[derive(Debug, Default)]
pub(super) struct AltSvcCache {
    origins: FxHashMap<Origin, (Alternative, Instant)>,
}

impl AltSvcCache {
    /// Records the Alt-Svc field of a response of `origin`, which must have come over TLS or QUIC.
    pub(super) fn update(&mut self, origin: &Origin, headers: &HeaderMap, now: Instant) {
        let values: Vec<&str> = headers
            .get_all(ALT_SVC)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        if values.is_empty() {
            return;
        }
        let age = headers
            .get(AGE)
            .and_then(|age| age.to_str().ok()?.parse().ok());
        let age = Duration::from_secs(age.unwrap_or(0));
        match parse(&values.join(",")) {
            None => {}
            Some(Advert::Http3(Some((alternative, max_age)))) if max_age > age => {
                self.make_room(origin);
                let until = now + max_age.saturating_sub(age);
                self.origins.insert(origin.clone(), (alternative, until));
            }
            Some(_) => {
                self.origins.remove(origin);
            }
        }
    }

    /// The HTTP/3 alternative of `origin`, if there is one that is fresh at the time `now`, which is only asked for then.
    pub(super) fn get(
        &self,
        origin: &Origin,
        now: impl FnOnce() -> Instant,
    ) -> Option<Alternative> {
        let (alternative, until) = self.origins.get(origin)?;
        (now() < *until).then(|| alternative.clone())
    }

    /// Removes the alternative of `origin`.
    pub(super) fn discard(&mut self, origin: &Origin) {
        self.origins.remove(origin);
    }

    fn make_room(&mut self, origin: &Origin) {
        if self.origins.len() < ORIGINS || self.origins.contains_key(origin) {
            return;
        }
        let first = self.origins.iter().min_by_key(|(_, (_, until))| *until);
        if let Some(first) = first.map(|(origin, _)| origin.clone()) {
            self.origins.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests;
