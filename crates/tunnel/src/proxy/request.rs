//! The form of requests for tunnels: for UDP (RFC 9298, sections 3.2 and 3.4), for IP (RFC 9484, sections 4.1 to 4.4)
//! and for TCP.

use http::uri::Authority;
use http::{Method, request};
use swiftwater_http::web::upgrade::UpgradeRequest;

use super::refusal::Refusal;
use crate::ip::{self, Scope};
use crate::target::{Target, WELL_KNOWN};
use crate::{CONNECT_IP, CONNECT_UDP};

/// What a request asks for.
pub(super) enum TunnelRequest {
    /// A tunnel for UDP.
    Udp(UpgradeRequest, Target),
    /// A tunnel for IP.
    Ip(UpgradeRequest, Scope),
    /// A tunnel for TCP.
    Tcp(UpgradeRequest, Target),
}

/// Reads what a request asks for; `has_network` if IP is proxied.
pub(super) fn read(head: &request::Parts, has_network: bool) -> Result<TunnelRequest, Refusal> {
    let Some(asked) = head.extensions.get::<UpgradeRequest>() else {
        let path = head.uri.path();
        return Err(if path.starts_with(WELL_KNOWN) {
            Refusal::Malformed("this resource is for requests to connect-udp")
        } else if path.starts_with(ip::WELL_KNOWN) {
            Refusal::Malformed("this resource is for requests to connect-ip")
        } else {
            Refusal::NotFound
        });
    };
    if asked.is_connect() && asked.protocol().is_none() {
        let authority = head.uri.authority().map(Authority::as_str);
        let target = authority.unwrap_or_default().parse()?;
        return Ok(TunnelRequest::Tcp(asked.clone(), target));
    }
    let is_udp = asked.asks_for(CONNECT_UDP);
    let is_ip = has_network && asked.asks_for(CONNECT_IP);
    if !is_udp && !is_ip {
        return Err(Refusal::OtherProtocol);
    }
    if asked.is_connect() {
        if head.uri.authority().is_none() || head.uri.scheme().is_none() {
            return Err(Refusal::Malformed("no :authority or :scheme"));
        }
    } else if head.method != Method::GET {
        return Err(Refusal::Malformed("the method is not GET"));
    }
    if !is_udp {
        let scope = Scope::from_path(head.uri.path())?;
        return Ok(TunnelRequest::Ip(asked.clone(), scope));
    }
    Ok(TunnelRequest::Udp(
        asked.clone(),
        Target::from_path(head.uri.path())?,
    ))
}
