//! Pages of the web that may use a proxy (RFC 6454). A browser sends what it knows of a user with the requests of any page,
//! certificates of clients among it, so a page could use the proxy in the name of its visitor.

use std::fmt;
use std::str::FromStr;

use http::header::ORIGIN;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Uri};
use thiserror::Error;

use super::refusal::Refusal;

/// The origin of pages, as in the field `Origin`: `https://app.example` or `https://app.example:8443`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Origin(Box<str>);

/// A text is no origin.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "an origin is a scheme and a host, with a port that is not the scheme's own: https://app.example"
)]
pub struct OriginError;

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let text = text.to_ascii_lowercase();
        let uri: Uri = text.parse().map_err(|_| OriginError)?;
        let scheme = uri.scheme().map(Scheme::as_str).unwrap_or_default();
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        let own_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => ":",
        };
        // Neither path nor query, and nothing that browsers leave out.
        let is_whole = format!("{scheme}://{authority}") == text;
        if !is_whole || authority.contains('@') || authority.ends_with(own_port) {
            return Err(OriginError);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses requests of pages that are not `allowed`. `null` stands for pages that browsers do not name.
pub(super) fn check(headers: &HeaderMap, allowed: &[Origin]) -> Result<(), Refusal> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let is_allowed = origins.all(|origin| {
        let mut allowed = allowed.iter();
        allowed.any(|it| it.0.as_bytes() == origin.as_bytes())
    });
    is_allowed.then_some(()).ok_or(Refusal::Origin)
}
