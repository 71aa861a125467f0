//! WebSocket through the proxy (RFC 6455): the upstream's handshake is `Upgrade` of HTTP/1.1; the client's is the same,
//! or extended CONNECT (RFC 8441; RFC 9220), where the proxy makes the key and checks the answer to it.
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
    /// The answer to the proxy's own key; `None` if the key is the client's.
    expected: Option<HeaderValue>,
}

/// The request for WebSocket in `request`, if it is one: over HTTP/1.1 it must be GET without content.
pub(super) fn asked<B>(request: &Request<B>) -> Option<UpgradeRequest> {
    let asked = request.extensions().get::<UpgradeRequest>()?;
    let is_handshake = asked.is_connect() || request.method() == Method::GET;
    (is_handshake && asked.asks_for(WEBSOCKET)).then(|| asked.clone())
}

impl Handshake {
    /// Makes `head`, the request for the upstream, one for WebSocket.
    pub(super) fn begin(asked: UpgradeRequest, head: &mut Outgoing) -> Result<Self, ProxyError> {
        let headers = &mut head.headers;
        // GET has no content here.
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        headers.remove(SEC_WEBSOCKET_ACCEPT);
        let mut expected = None;
        if asked.is_connect() {
            head.method = Method::GET;
            let key = new_key().ok_or(ProxyError::Tunnel)?;
            expected = Some(answer_to(key.as_bytes()).ok_or(ProxyError::Tunnel)?);
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
        Ok(Self { asked, expected })
    }

    /// Whether `response`, with the status 101, is the upstream's consent.
    pub(super) fn is_accepted<B>(&self, response: &Response<B>) -> bool {
        let headers = response.headers();
        let mut answers = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter();
        let (answer, other) = (answers.next(), answers.next());
        has_token(headers, &CONNECTION, "upgrade")
            && has_token(headers, &UPGRADE, WEBSOCKET)
            && other.is_none()
            && match &self.expected {
                Some(expected) => answer == Some(expected),
                None => answer.is_some(),
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
