//! Refusals of the proxy in the terms of SOCKS (RFC 1928, section 6).

use http::StatusCode;

use super::message::{MessageError, Reply};
use crate::client::error::OpenError;
use crate::proxy_status::ProxyError;

/// The reply for a tunnel that was not opened.
pub(super) fn of_refusal(error: &OpenError) -> Reply {
    if let Some(named) = error.proxy_error() {
        return match named {
            ProxyError::DestinationIpProhibited | ProxyError::HttpRequestDenied => {
                Reply::NotAllowed
            }
            ProxyError::ConnectionRefused => Reply::ConnectionRefused,
            ProxyError::DestinationIpUnroutable => Reply::NetworkUnreachable,
            ProxyError::DnsError
            | ProxyError::DnsTimeout
            | ProxyError::DestinationNotFound
            | ProxyError::DestinationUnavailable
            | ProxyError::ConnectionTimeout => Reply::HostUnreachable,
            _ => Reply::GeneralFailure,
        };
    }
    let OpenError::Refused { status, .. } = error else {
        return Reply::GeneralFailure;
    };
    match *status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Reply::NotAllowed,
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Reply::HostUnreachable,
        _ => Reply::GeneralFailure,
    }
}

/// The reply for a request that can't be carried out; `None` if it is not of SOCKS 5 at all.
pub(super) fn of_fault(error: &MessageError) -> Option<Reply> {
    match error {
        MessageError::AddressType(_) => Some(Reply::AddressTypeNotSupported),
        MessageError::Name | MessageError::Target(_) => Some(Reply::GeneralFailure),
        _ => None,
    }
}
