//! The server's resources: `/bytes/N` is N bytes, and the content of a POST is discarded.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use swiftwater_http::web::body::{Body, BoxError};
use tower::{Service, service_fn};

use crate::perf::server::Totals;
use crate::perf::zeroes::Zeroes;

/// A service that counts in `totals`.
pub(super) fn service(
    totals: Arc<Totals>,
) -> impl Service<
    Request<Body>,
    Response = Response<Counted>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ Sync
+ 'static {
    service_fn(move |request| answer(request, Arc::clone(&totals)))
}

async fn answer(
    request: Request<Body>,
    totals: Arc<Totals>,
) -> Result<Response<Counted>, Infallible> {
    let wanted = request.uri().path().strip_prefix("/bytes/");
    let wanted = wanted.and_then(|number| number.parse().ok());
    let known = [Method::GET, Method::HEAD, Method::POST].contains(request.method());
    let (status, length) = match (known, wanted) {
        (false, _) => (StatusCode::METHOD_NOT_ALLOWED, 0),
        (true, None) => (StatusCode::NOT_FOUND, 0),
        (true, Some(length)) => match discard(request.into_body(), &totals).await {
            Ok(()) => (StatusCode::OK, length),
            Err(error) => {
                tracing::debug!(%error, "the content of a request was incomplete");
                (StatusCode::BAD_REQUEST, 0)
            }
        },
    };
    totals.requests.fetch_add(1, Ordering::Relaxed);
    let zeroes = Zeroes::new(length);
    let mut response = Response::new(Counted { zeroes, totals });
    *response.status_mut() = status;
    let octets = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, octets);
    Ok(response)
}

async fn discard(mut body: Body, totals: &Totals) -> Result<(), BoxError> {
    if body.is_end_stream() {
        return Ok(());
    }
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let length = frame?.data_ref().map_or(0, Bytes::len);
        totals.up.fetch_add(length as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Zeroes that are counted when they are handed out.
pub(super) struct Counted {
    zeroes: Zeroes,
    totals: Arc<Totals>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let block = self.zeroes.next_block();
        let length = block.as_ref().map_or(0, Bytes::len);
        self.totals.down.fetch_add(length as u64, Ordering::Relaxed);
        Poll::Ready(block.map(|block| Ok(Frame::data(block))))
    }

    fn is_end_stream(&self) -> bool {
        self.zeroes.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.zeroes.size_hint()
    }
}
