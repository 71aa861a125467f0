//! Several upstreams that serve the same content: each request goes to the one with the fewest requests in progress.
//!
//! An upstream that fails is left out for a while (`health`), and on request looked at regularly (`check`). A request
//! that failed is sent to another upstream if it may be: it has no content, and its method is idempotent or no
//! connection was established (RFC 9110, section 9.2.2).

mod check;
mod health;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use tokio::time::Instant;
use tower::Service;

pub use check::HealthCheck;

use self::health::Health;
use super::body::{Body, BoxError};
use super::observed_body::ObservedBody;
use super::proxy::{Proxy, ProxyError, ProxyOptions, Upstream};

/// Most upstreams that one request is sent to.
const MAX_ATTEMPTS: usize = 3;

/// Forwards each request to one of several upstreams. Cheap to clone; clones share connections and what is known of
/// the upstreams.
///
/// Failures become responses, as [`ProxyError::status`] says: the service itself never fails.
#[derive(Clone, Debug)]
pub struct Balancer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    members: Vec<Arc<Member>>,
    /// Where the search for the next upstream begins, so that equals take turns.
    next: AtomicUsize,
}

#[derive(Debug)]
struct Member {
    proxy: Proxy,
    health: Health,
    in_progress: AtomicUsize,
}

impl Balancer {
    /// Forwards to `upstreams`, of which there is at least one, with the same options.
    pub fn new(first: Upstream, others: Vec<Upstream>, options: &ProxyOptions) -> Self {
        let member = |upstream| {
            Arc::new(Member {
                proxy: Proxy::new(upstream, options.clone()),
                health: Health::default(),
                in_progress: AtomicUsize::new(0),
            })
        };
        let upstreams = std::iter::once(first).chain(others);
        Self {
            shared: Arc::new(Shared {
                members: upstreams.map(member).collect(),
                next: AtomicUsize::new(0),
            }),
        }
    }

    /// Looks at each upstream regularly, until the last clone of the balancer is dropped. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn with_check(self, check: &HealthCheck) -> Self {
        for member in &self.shared.members {
            check.start(Arc::downgrade(member));
        }
        self
    }
}

impl Shared {
    /// The upstreams in the order in which a request tries them: the healthy ones first, of these the least busy. If none
    /// is healthy, all are tried.
    fn order(&self, now: Instant) -> Vec<&Arc<Member>> {
        let count = self.members.len();
        let first = self.next.fetch_add(1, Ordering::Relaxed) % count.max(1);
        let turns = (0..count).map(|nth| &self.members[(first + nth) % count]);
        let mut order: Vec<&Arc<Member>> = turns.collect();
        // Stable: equals stay in their turns.
        order.sort_by_key(|member| {
            let busy = member.in_progress.load(Ordering::Relaxed);
            (!member.health.is_good(now), busy)
        });
        order
    }

    async fn forward(&self, request: Request<Body>) -> Response<Body> {
        let order = self.order(Instant::now());
        let (head, body) = request.into_parts();
        let is_empty = body.is_end_stream();
        let is_idempotent = head.method.is_idempotent();
        let mut request = Some(Request::from_parts(head, body));
        let mut attempts = order.iter().take(MAX_ATTEMPTS).peekable();
        while let (Some(member), Some(now)) = (attempts.next(), request.take()) {
            // Kept for another attempt.
            if is_empty && attempts.peek().is_some() {
                request = Some(empty_like(&now));
            }
            match member.send(now).await {
                Ok(response) => return response,
                Err(error) => {
                    let may_repeat = (is_idempotent || error.is_before_request())
                        && error.is_of_upstream()
                        && request.is_some();
                    if !may_repeat {
                        return member.proxy.answer(&error);
                    }
                    member.proxy.report(&error, "another upstream is tried");
                }
            }
        }
        // There is at least one upstream, and the last attempt returns.
        self.members[0].proxy.answer(&ProxyError::Busy)
    }
}

/// A request with the same head and no content.
fn empty_like(request: &Request<Body>) -> Request<Body> {
    let mut again = Request::new(Body::empty());
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.version_mut() = request.version();
    *again.headers_mut() = request.headers().clone();
    *again.extensions_mut() = request.extensions().clone();
    again
}

impl Member {
    async fn send(self: &Arc<Self>, request: Request<Body>) -> Result<Response<Body>, ProxyError> {
        let in_progress = InProgress::begin(self);
        match self.proxy.forward(request).await {
            Ok(response) => {
                self.health.on_answer();
                let end = move |_, _| drop(in_progress);
                Ok(response.map(|body| Body::new(ObservedBody::new(body, end))))
            }
            Err(error) => {
                if error.is_of_upstream() {
                    self.health.on_failure(Instant::now());
                }
                Err(error)
            }
        }
    }
}

/// A request in progress, until it is dropped.
#[derive(Debug)]
struct InProgress(Arc<Member>);

impl InProgress {
    fn begin(member: &Arc<Member>) -> Self {
        member.in_progress.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(member))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<B> Service<Request<B>> for Balancer
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
        let request = request.map(Body::new);
        Box::pin(async move { Ok(shared.forward(request).await) })
    }
}
