//! The form of a request for UDP proxying (RFC 9298, sections 3.2 and 3.4).

use http::{Method, request};
use swiftwater_http::h3::ConnectProtocol;

use super::refusal::Refusal;
use crate::CONNECT_UDP;
use crate::target::{Target, WELL_KNOWN};

/// The target of a request.
pub(super) fn target(head: &request::Parts) -> Result<Target, Refusal> {
    let protocol = head.extensions.get::<ConnectProtocol>();
    match protocol {
        Some(protocol) if protocol.as_str() == CONNECT_UDP => {}
        Some(_) => return Err(Refusal::OtherProtocol),
        None if head.uri.path().starts_with(WELL_KNOWN) && head.method != Method::CONNECT => {
            return Err(Refusal::Malformed(
                "this resource is for extended CONNECT with connect-udp",
            ));
        }
        None => return Err(Refusal::NotFound),
    }
    if head.uri.authority().is_none() || head.uri.scheme().is_none() {
        return Err(Refusal::Malformed("no :authority or :scheme"));
    }
    Ok(Target::from_path(head.uri.path())?)
}
