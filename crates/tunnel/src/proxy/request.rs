//! The form of requests for tunnels: for UDP (RFC 9298, sections 3.2 and 3.4) and for TCP.

use http::uri::Authority;
use http::{Method, request};
use swiftwater_http::web::upgrade::UpgradeRequest;

use super::refusal::Refusal;
use crate::CONNECT_UDP;
use crate::target::{Target, WELL_KNOWN};

/// What a request asks for.
pub(super) enum Asked {
    /// A tunnel for UDP.
    Udp(UpgradeRequest, Target),
    /// A tunnel for TCP.
    Tcp(UpgradeRequest, Target),
}

/// Reads what a request asks for.
pub(super) fn read(head: &request::Parts) -> Result<Asked, Refusal> {
    let Some(asked) = head.extensions.get::<UpgradeRequest>() else {
        return Err(if head.uri.path().starts_with(WELL_KNOWN) {
            Refusal::Malformed("this resource is for requests to connect-udp")
        } else {
            Refusal::NotFound
        });
    };
    if asked.is_connect() && asked.protocol().is_none() {
        let authority = head.uri.authority().map(Authority::as_str);
        let target = authority.unwrap_or_default().parse()?;
        return Ok(Asked::Tcp(asked.clone(), target));
    }
    if !asked.asks_for(CONNECT_UDP) {
        return Err(Refusal::OtherProtocol);
    }
    if asked.is_connect() {
        if head.uri.authority().is_none() || head.uri.scheme().is_none() {
            return Err(Refusal::Malformed("no :authority or :scheme"));
        }
    } else if head.method != Method::GET {
        return Err(Refusal::Malformed("the method is not GET"));
    }
    Ok(Asked::Udp(
        asked.clone(),
        Target::from_path(head.uri.path())?,
    ))
}
