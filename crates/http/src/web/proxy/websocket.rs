//! WebSocket through the proxy (RFC 6455): each side's handshake is `Upgrade` of HTTP/1.1, with a key and the answer to it,
//! or extended CONNECT (RFC 8441; RFC 9220), without. Where only the upstream's has a key, the proxy makes it and checks
//! the answer; where only the client's has one, the proxy answers.
//!
//! A handshake without the upstream's consent makes no tunnel: what a client sends after it never reaches the
//! upstream, which would read it as further requests.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::ext::Protocol;

use super::error::ProxyError;
use super::fields::has_token;
use super::rewrite::Outgoing;
use crate::web::upgrade::UpgradeRequest;

/// The name of the protocol in `Upgrade` and `:protocol`.
const WEBSOCKET: &str = "websocket";

/// What servers append to the key (RFC 6455, section 1.3).
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Bytes of the key (RFC 6455, section 4.1).
const KEY_BYTES: usize = 16;

/// A handshake that is forwarded.
#[derive(Debug)]
pub(super) struct Handshake {
    asked: UpgradeRequest,
    upstream: UpstreamForm,
}

/// The upstream's handshake.
#[derive(Debug)]
enum UpstreamForm {
    /// `Upgrade` with the client's key.
    ClientKey,
    /// `Upgrade` with a key of the proxy, and the answer to it.
    OwnKey(HeaderValue),
    /// Extended CONNECT, and the answer to the client's key if that has one.
    Connect(Option<HeaderValue>),
}

/// The request for WebSocket in `request`, if it is one: over HTTP/1.1 it must be GET without content.
pub(super) fn asked<B>(request: &Request<B>) -> Option<UpgradeRequest> {
    let asked = request.extensions().get::<UpgradeRequest>()?;
    let is_handshake = asked.is_connect() || request.method() == Method::GET;
    (is_handshake && asked.asks_for(WEBSOCKET)).then(|| asked.clone())
}

impl Handshake {
    /// Makes `head`, the request for the upstream, one for WebSocket: extended CONNECT if that goes `over_http2`.
    pub(super) fn begin(
        asked: UpgradeRequest,
        head: &mut Outgoing,
        over_http2: bool,
    ) -> Result<Self, ProxyError> {
        let headers = &mut head.headers;
        // There is no content here.
        headers.remove(CONTENT_LENGTH);
        headers.remove(SEC_WEBSOCKET_ACCEPT);
        if over_http2 {
            head.method = Method::CONNECT;
            head.protocol = Some(Protocol::from_static(WEBSOCKET));
            let key = headers.remove(SEC_WEBSOCKET_KEY);
            let answer = match key.filter(|_| !asked.is_connect()) {
                Some(key) => Some(answer_to(key.as_bytes()).ok_or(ProxyError::Tunnel)?),
                None if asked.is_connect() => None,
                // A client of HTTP/1.1 that sends no key gets no answer that it could check.
                None => return Err(ProxyError::Tunnel),
            };
            let upstream = UpstreamForm::Connect(answer);
            return Ok(Self { asked, upstream });
        }
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        let mut upstream = UpstreamForm::ClientKey;
        if asked.is_connect() {
            head.method = Method::GET;
            let key = new_key().ok_or(ProxyError::Tunnel)?;
            let answer = answer_to(key.as_bytes()).ok_or(ProxyError::Tunnel)?;
            upstream = UpstreamForm::OwnKey(answer);
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
        Ok(Self { asked, upstream })
    }

    /// Whether a response with `status` ends HTTP, if it is the upstream's consent.
    pub(super) fn ends_http(&self, status: StatusCode) -> bool {
        match self.upstream {
            UpstreamForm::Connect(_) => status.is_success(),
            _ => status == StatusCode::SWITCHING_PROTOCOLS,
        }
    }

    /// Whether `response`, whose status [ends HTTP](Self::ends_http), is the upstream's consent.
    pub(super) fn is_accepted<B>(&self, response: &Response<B>) -> bool {
        if matches!(self.upstream, UpstreamForm::Connect(_)) {
            return true;
        }
        let headers = response.headers();
        let mut answers = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        let (answer, other) = (answers.next(), answers.next());
        has_token(headers, &CONNECTION, "upgrade")
            && has_token(headers, &UPGRADE, WEBSOCKET)
            && other.is_none()
            && match &self.upstream {
                UpstreamForm::OwnKey(expected) => answer == Some(expected),
                _ => answer.is_some(),
            }
    }

    /// Whether a response with `status` that is no consent would be taken for one by the client.
    pub(super) fn is_misleading(&self, status: StatusCode) -> bool {
        self.asked.is_connect() && status.is_success()
    }

    /// The client's request.
    pub(super) fn asked(&self) -> &UpgradeRequest {
        &self.asked
    }

    /// The response for the client, with the fields of the upstream's.
    pub(super) fn response<B>(&self, upstream: HeaderMap, outgoing: B) -> Response<B> {
        let accepting = self
            .asked
            .accepting(WEBSOCKET, crate::web::body::Body::empty());
        let (mut head, _) = accepting.into_parts();
        let own = std::mem::replace(&mut head.headers, upstream);
        let headers = &mut head.headers;
        headers.extend(own);
        // What follows is no content.
        for field in [CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING] {
            headers.remove(field);
        }
        if self.asked.is_connect() {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
        }
        if let UpstreamForm::Connect(Some(answer)) = &self.upstream {
            headers.insert(SEC_WEBSOCKET_ACCEPT, answer.clone());
        }
        Response::from_parts(head, outgoing)
    }
}

/// A new key; `None` if there is no randomness.
fn new_key() -> Option<HeaderValue> {
    let mut bytes = [0; KEY_BYTES];
    rand::fill(&mut bytes).ok()?;
    HeaderValue::from_str(&STANDARD.encode(bytes)).ok()
}

/// The answer to `key` (RFC 6455, section 4.2.2).
fn answer_to(key: &[u8]) -> Option<HeaderValue> {
    let hashed = digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        &[key, KEY_SUFFIX.as_bytes()].concat(),
    );
    HeaderValue::from_str(&STANDARD.encode(hashed)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, section 1.3.
    #[test]
    fn a_key_has_its_answer() {
        let answer = answer_to(b"dGhlIHNhbXBsZSBub25jZQ==").unwrap();
        assert_eq!(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
