//! Handling of request bodies that the service has not read to the end.
//!
//! The response is complete, but the client is still sending. HTTP/2 would reset the stream at once (RFC
//! 9113, section 8.1), HTTP/1.1 close the connection: a client that is sending may receive the reset
//! before it has read the response, and lose it. So the rest is read and discarded for a limited time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

/// TcpLimits on discarding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linger {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// The body of a request. If dropped before its end, the rest is discarded once the response is
/// complete.
#[derive(Debug)]
pub(super) struct RequestBody {
    /// `None`: the end was read, or the body failed.
    inner: Option<Incoming>,
    linger: Linger,
    /// Closes when the response is complete.
    response: watch::Receiver<()>,
}

impl RequestBody {
    pub(super) fn new(inner: Incoming, linger: Linger, response: watch::Receiver<()>) -> Self {
        Self {
            inner: Some(inner),
            linger,
            response,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(inner).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = &polled {
            self.inner = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.is_end_stream() || self.linger.time.is_zero() {
            return;
        }
        let (Some(body), Ok(runtime)) = (self.inner.take(), Handle::try_current()) else {
            return;
        };
        // Ends with the connection at the latest, when the body fails.
        runtime.spawn(discard(body, self.linger, self.response.clone()));
    }
}

/// Waits for the end of the response, then reads the rest of `body`.
async fn discard(mut body: Incoming, linger: Linger, mut response: watch::Receiver<()>) {
    while response.changed().await.is_ok() {}
    let deadline = Instant::now() + linger.time;
    let mut left = linger.bytes;
    while left > 0 {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        match timeout_at(deadline, next).await {
            Ok(Some(Ok(frame))) => {
                left = left.saturating_sub(frame.data_ref().map_or(0, Buf::remaining));
            }
            Ok(None | Some(Err(_))) | Err(_) => return,
        }
    }
    // Flow control stops the client.
    sleep_until(deadline).await;
}
