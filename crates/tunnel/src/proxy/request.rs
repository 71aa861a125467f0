//! The form of a request for UDP proxying (RFC 9298, sections 3.2 and 3.4).

use http::{Method, request};
use swiftwater_http::web::upgrade::UpgradeRequest;

use super::refusal::Refusal;
use crate::CONNECT_UDP;
use crate::target::{Target, WELL_KNOWN};

/// The request as one for another protocol, and its target.
pub(super) fn read(head: &request::Parts) -> Result<(UpgradeRequest, Target), Refusal> {
    let Some(asked) = head.extensions.get::<UpgradeRequest>() else {
        return Err(if head.uri.path().starts_with(WELL_KNOWN) {
            Refusal::Malformed("this resource is for requests to connect-udp")
        } else {
            Refusal::NotFound
        });
    };
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
    Ok((asked.clone(), Target::from_path(head.uri.path())?))
}
