//! A reverse proxy to one upstream, as a tower service (RFC 9110, sections 3.7 and 7.6).
//!
//! Bodies stream both ways at once; trailers pass. Connections to the upstream (HTTP/1.1, or HTTP/2) are pooled and
//! reused. A request is sent twice only if it has no body, its method is
//! idempotent and the connection had been used before: then the upstream most likely had closed it
//! while it was idle (RFC 9110, section 9.2.2).
//!
//! - `options`: configuration.
//! - `rewrite`, `fields`, `location`: heads of requests and responses; no I/O.
//! - `failures`: log lines about upstream failures.
//! - `upload`: request bodies, and waiting for 100 (Continue).
//! - `websocket`, `tunnel`: handshakes of WebSocket, and the bytes after them.
//! - `upstream`: what an upstream is. `sender`, `http2`, `connector`, `link`: connections to it.

mod connector;
mod error;
mod failures;
mod fields;
mod http2;
mod link;
mod location;
mod options;
mod rewrite;
mod sender;
mod tunnel;
mod upload;
mod upstream;
mod websocket;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{EXPECT, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use tokio::time::sleep_until;
use tower::Service;

pub use error::ProxyError;
pub use options::ProxyOptions;
pub use upstream::{Upstream, UpstreamError, UpstreamTls};

use failures::Failures;
use http2::{OpenStream, was_not_processed};
use link::Proven;
use location::Public;
use rewrite::Outgoing;
use sender::Sender;
use tunnel::{Tunnel, TunnelError};
use upload::{Breakage, Progress, Upload, await_continue};
use websocket::Handshake;

use super::body::{Body, BoxError, text_response};
use super::connection_info::ConnectionInfo;
use super::shared_limit::{SharedLimit, SharedPermit};
use super::timed_body::{Pace, TimedBody};

/// Forwards requests to an upstream. Cheap to clone; clones share their connections.
///
/// Failures become responses, as [`ProxyError::status`] says: the service itself never fails.
#[derive(Debug, Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    options: ProxyOptions,
    sender: Sender,
    slots: SharedLimit,
    failures: Failures,
}

impl Proxy {
    /// Forwards to `upstream`.
    pub fn new(upstream: Upstream, options: ProxyOptions) -> Self {
        let sender = Sender::new(&upstream, &options);
        Self {
            shared: Arc::new(Shared {
                upstream,
                sender,
                slots: SharedLimit::new(options.in_flight.max(1)),
                failures: Failures::default(),
                options,
            }),
        }
    }
}

impl Proxy {
    /// Forwards a request, or says why it can't.
    pub(super) async fn forward(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Body>, ProxyError> {
        Arc::clone(&self.shared).forward(request).await
    }

    /// The response in the place of one that `error` prevents; failures of the upstream are logged.
    pub(super) fn answer(&self, error: &ProxyError) -> Response<Body> {
        self.shared.answer(error)
    }

    /// Logs a failure of the upstream with its effect.
    pub(super) fn report(&self, error: &ProxyError, what: &str) {
        let shared = &self.shared;
        shared.failures.report(&shared.upstream, what, error);
    }
}

impl Shared {
    async fn forward(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<Body>, ProxyError> {
        let client = self.client_of(&request);
        let permit = self.slots.try_acquire(client, 1);
        let permit = permit.map_err(|_| ProxyError::Busy)?;
        let asked = websocket::asked(&request).filter(|_| self.options.websocket);
        let (parts, body) = request.into_parts();
        let mut head = Outgoing::new(parts, &self.upstream, &self.options, asked.is_some())?;
        let over_http2 = self.sender.upgrades_over_http2();
        let handshake = asked.map(|asked| Handshake::begin(asked, &mut head, over_http2));
        let handshake = handshake.transpose()?;
        let public = head.public.clone();
        let mut response = self.exchange(head, body, handshake.is_some()).await?;
        let stream = response.extensions_mut().remove();
        match handshake {
            Some(handshake) if handshake.ends_http(response.status()) => {
                let held = (permit, stream);
                return self.tunnel(handshake, response, &public, held).await;
            }
            Some(handshake) if handshake.is_misleading(response.status()) => {
                return Err(ProxyError::NotWebSocket);
            }
            _ if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(ProxyError::Tunnel);
            }
            _ => {}
        }
        rewrite::response(&mut response, &self.upstream, &self.options, &public);
        let pace = Pace::gap(self.options.body_gap);
        Ok(response.map(|body| {
            Body::new(Download {
                inner: TimedBody::new(body, pace),
                shared: self,
                is_of_upstream: |_| true,
                _stream: stream,
                _permit: permit,
            })
        }))
    }

    /// The upstream agreed to WebSocket: connects it and the client.
    async fn tunnel(
        self: Arc<Self>,
        handshake: Handshake,
        mut response: Response<Incoming>,
        public: &Public,
        (permit, stream): (SharedPermit, Option<OpenStream>),
    ) -> Result<Response<Body>, ProxyError> {
        if !handshake.is_accepted(&response) {
            return Err(ProxyError::NotWebSocket);
        }
        let upgraded = hyper::upgrade::on(&mut response).await;
        let upgraded = upgraded.map_err(|_| ProxyError::NotWebSocket)?;
        let incoming = handshake.asked().incoming().ok_or(ProxyError::Tunnel)?;
        rewrite::response(&mut response, &self.upstream, &self.options, public);
        let (head, _) = response.into_parts();
        let tunnel = Tunnel::new(upgraded, incoming, self.options.websocket_timeout);
        let outgoing = Body::new(Download {
            inner: tunnel,
            shared: self,
            is_of_upstream: |error| matches!(error, TunnelError::Upstream(_)),
            _stream: stream,
            _permit: permit,
        });
        Ok(handshake.response(head.headers, outgoing))
    }

    /// The client whose share of the slots a request uses.
    fn client_of(&self, request: &Request<Body>) -> IpAddr {
        let forwarded = || fields::forwarded_for(request.headers());
        let forwarded = self.options.trust_forwarded.then(forwarded).flatten();
        let peer = || {
            let connection = request.extensions().get::<ConnectionInfo>();
            connection.map(|connection| connection.peer.ip())
        };
        // Without connection information all requests count as one client's.
        forwarded
            .or_else(peer)
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    fn answer(&self, error: &ProxyError) -> Response<Body> {
        let status = error.status();
        if error.is_of_upstream() {
            let what = format!("answered with {}", status.as_u16());
            self.failures.report(&self.upstream, &what, error);
        }
        let mut response = text_response(status, &error.to_string());
        if matches!(error, ProxyError::Busy) {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, soon);
        }
        response
    }

    /// Sends the request, which may be an `upgrade`; a second time if it may be retried.
    async fn exchange(
        &self,
        head: Outgoing,
        body: Body,
        upgrade: bool,
    ) -> Result<Response<Incoming>, ProxyError> {
        let progress = Progress::new();
        let empty = body.is_end_stream();
        let again = (empty && head.method.is_idempotent()).then(|| head.clone());
        // Over HTTP/2 an early response ends the request without it.
        let waits = head.expects_continue && !empty && self.sender.is_http1();
        let mut request = head.with_body(Upload::new(body, progress.clone()));
        if waits {
            let expectation = HeaderValue::from_static("100-continue");
            request.headers_mut().insert(EXPECT, expectation);
            await_continue(&mut request, self.options.continue_timeout);
        }
        match (self.send(request, &progress, upgrade).await, again) {
            (Err(ProxyError::Upstream(error)), Some(head)) if was_stale(&error) => {
                let progress = Progress::new();
                let request = head.with_body(Upload::new(Body::empty(), progress.clone()));
                self.send(request, &progress, upgrade).await
            }
            (sent, _) => sent,
        }
    }

    async fn send(
        &self,
        request: Request<Upload>,
        progress: &Progress,
        upgrade: bool,
    ) -> Result<Response<Incoming>, ProxyError> {
        let sent = tokio::select! {
            sent = self.sender.send(request, upgrade) => sent,
            () = self.head_is_late(progress) => return Err(ProxyError::HeadTimeout),
        };
        match sent {
            Ok(response) => {
                if let Some(proven) = response.extensions().get::<Proven>() {
                    proven.set();
                }
                Ok(response)
            }
            Err(error) => Err(match progress.breakage() {
                Some(Breakage::Slow) => ProxyError::SlowBody,
                Some(Breakage::Broken) => ProxyError::Body,
                None => error,
            }),
        }
    }

    /// Waits until the upstream's time for the head of the response is over.
    async fn head_is_late(&self, progress: &Progress) {
        loop {
            let last = progress.last();
            sleep_until(last + self.options.head_timeout).await;
            if progress.last() == last {
                return;
            }
        }
    }
}

/// Whether a request failed because its connection had been closed while it was idle, or the upstream ended it.
fn was_stale(error: &BoxError) -> bool {
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return was_not_processed(error);
    }
    let Some(error) = error.downcast_ref::<legacy::Error>() else {
        return false;
    };
    let mut extensions = http::Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extensions);
    }
    extensions.get::<Proven>().is_some_and(Proven::get) && error::ended_early(error)
}

impl<B> Service<Request<B>> for Proxy
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let forwarded = Arc::clone(&shared).forward(request.map(Body::new));
        Box::pin(async move {
            Ok(forwarded
                .await
                .unwrap_or_else(|error| shared.answer(&error)))
        })
    }
}

/// The body of a response; the request counts as in progress until it is dropped.
#[derive(Debug)]
struct Download<B: HttpBody> {
    inner: B,
    shared: Arc<Shared>,
    /// Whether an error is a failure of the upstream.
    is_of_upstream: fn(&B::Error) -> bool,
    /// Over HTTP/2.
    _stream: Option<OpenStream>,
    _permit: SharedPermit,
}

impl<B> HttpBody for Download<B>
where
    B: HttpBody<Data = Bytes, Error: Error + 'static> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Err(error))) = &polled
            && (self.is_of_upstream)(error)
        {
            let shared = &self.shared;
            let what = "a response broke off";
            shared.failures.report(&shared.upstream, what, error);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
