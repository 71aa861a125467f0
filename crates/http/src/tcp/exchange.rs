//! One request and its response, from the head of the request to the last byte that is written: how much of
//! the response is unread by the client, and since when.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::activity::Activity;

/// Bytes of content up to which a response may end while some of it is unwritten. The end of longer
/// ones is delayed until then, so that their stream can be reset.
const ENDS_AT_ONCE: usize = 16 * 1024;

#[derive(Debug)]
struct Progress {
    /// Bytes of content handed out and not written yet.
    outstanding: usize,
    /// A piece was handed out and the next was not polled yet.
    held: bool,
    /// The service has no data at present.
    idle: bool,
    /// When the response started to wait for the client, or the client last read something.
    since: Instant,
    /// Bytes written to the socket by then.
    sent: u64,
    /// The body waits until all content is written.
    flushed: Option<Waker>,
}

impl Progress {
    /// Records progress if bytes were written to the socket since the last record: moves between the buffers
    /// above the socket are not progress of the client. `sent` is the total written to the socket.
    fn moved(&mut self, sent: u64) {
        if sent != self.sent {
            self.sent = sent;
            self.since = Instant::now();
        }
    }
}

/// State of a response with respect to its client.
pub(super) enum Standing {
    /// The response does not wait for the client.
    Moving,
    /// It waits, and may until then.
    Waits(Instant),
    /// It has waited for too long.
    Stalled,
}

/// One request and its response. Dropped before it is complete, it counts as abandoned.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    number: u64,
    progress: Mutex<Progress>,
    complete: AtomicBool,
    /// A separate task writes the response: the stream can be reset.
    has_stream: AtomicBool,
    given_up: Notify,
    is_given_up: AtomicBool,
    /// Closed when the exchange is over.
    over: watch::Sender<()>,
}

impl Exchange {
    pub(super) fn new(activity: Arc<Activity>, number: u64) -> Self {
        Self {
            activity,
            number,
            progress: Mutex::new(Progress {
                outstanding: 0,
                held: false,
                idle: true,
                since: Instant::now(),
                sent: 0,
                flushed: None,
            }),
            complete: AtomicBool::new(false),
            has_stream: AtomicBool::new(false),
            given_up: Notify::new(),
            is_given_up: AtomicBool::new(false),
            over: watch::Sender::new(()),
        }
    }

    /// A future that completes when the exchange is over.
    pub(super) fn end(&self) -> watch::Receiver<()> {
        self.over.subscribe()
    }

    /// Runs the task of the stream of this exchange until it ends or is reset. Dropping it resets the
    /// stream.
    pub(super) async fn run(self: Arc<Self>, stream: impl Future<Output = ()>) {
        self.has_stream.store(true, Ordering::Relaxed);
        let mut stream = pin!(stream);
        // A stream that is given up must not end orderly, even if it could.
        let going_on = std::future::poll_fn(|cx| {
            if self.is_given_up.load(Ordering::Relaxed) {
                Poll::Pending
            } else {
                stream.as_mut().poll(cx)
            }
        });
        tokio::select! {
            biased;
            () = going_on => {}
            () = self.given_up.notified() => {
                tracing::debug!("resetting a response");
            }
        }
        self.has_stream.store(false, Ordering::Relaxed);
    }

    /// Resets the response alone; false if that is not possible.
    pub(super) fn give_up(&self) -> bool {
        let can = self.has_stream.load(Ordering::Relaxed);
        if can {
            // The server breaks it off, not the client.
            self.complete();
            self.is_given_up.store(true, Ordering::Relaxed);
            self.given_up.notify_one();
        }
        can
    }

    /// State of the response at `now`, if it may wait for `time_limit`.
    pub(super) fn standing(&self, now: Instant, time_limit: Duration) -> Standing {
        let progress = self.lock();
        if progress.outstanding == 0 && !progress.held {
            return Standing::Moving;
        }
        let deadline = progress.since + time_limit;
        if deadline <= now {
            Standing::Stalled
        } else {
            Standing::Waits(deadline)
        }
    }

    fn complete(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }

    /// The next piece is polled.
    fn asked(&self) {
        let sent = self.activity.sent();
        let mut progress = self.lock();
        if std::mem::take(&mut progress.held) {
            progress.moved(sent);
        }
    }

    /// The service has no piece at present.
    fn idle(&self) {
        self.lock().idle = true;
    }

    /// A piece of `bytes` is handed out.
    fn handed_out(&self, bytes: usize) {
        let sent = self.activity.sent();
        let mut progress = self.lock();
        if std::mem::take(&mut progress.idle) && progress.outstanding == 0 {
            progress.since = Instant::now();
            progress.sent = sent;
        } else {
            progress.moved(sent);
        }
        progress.held = true;
        progress.outstanding += bytes;
    }

    /// `bytes` are written, or dropped.
    fn written(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let sent = self.activity.sent();
        let mut progress = self.lock();
        progress.outstanding -= bytes;
        progress.moved(sent);
        let flushed = if progress.outstanding == 0 {
            progress.flushed.take()
        } else {
            None
        };
        drop(progress);
        if let Some(waker) = flushed {
            waker.wake();
        }
    }

    /// Ready when everything handed out is written.
    fn poll_flushed(&self, cx: &Context<'_>) -> Poll<()> {
        let mut progress = self.lock();
        if progress.outstanding == 0 {
            return Poll::Ready(());
        }
        progress.flushed = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let complete = self.complete.load(Ordering::Relaxed);
        self.activity.end(self.number, complete);
    }
}

/// A piece of content that reports when it is written or dropped.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    exchange: Arc<Exchange>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.exchange.written(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.exchange.written(self.bytes.len());
    }
}

pin_project! {
    /// The body of a response that reports its progress.
    #[derive(Debug)]
    pub(super) struct TrackedBody<B> {
        #[pin]
        inner: B,
        exchange: Arc<Exchange>,
        bytes: usize,
        // The end, or trailers, delayed until everything before it is written.
        ending: Option<Option<Frame<Piece>>>,
    }
}

impl<B: Body> TrackedBody<B> {
    pub(super) fn new(inner: B, exchange: Arc<Exchange>) -> Self {
        if inner.is_end_stream() {
            exchange.complete();
        }
        Self {
            inner,
            exchange,
            bytes: 0,
            ending: None,
        }
    }

    /// Whether the end must be delayed until everything is written.
    fn ends_late(&self) -> bool {
        self.bytes > ENDS_AT_ONCE && self.exchange.has_stream.load(Ordering::Relaxed)
    }
}

impl<B: Body<Data = Bytes>> Body for TrackedBody<B> {
    type Data = Piece;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, B::Error>>> {
        let ends_late = self.ends_late();
        let this = self.as_mut().project();
        this.exchange.asked();
        if this.ending.is_none() {
            let polled = if this.inner.is_end_stream() {
                None
            } else {
                match this.inner.poll_frame(cx) {
                    Poll::Ready(polled) => polled,
                    Poll::Pending => {
                        this.exchange.idle();
                        return Poll::Pending;
                    }
                }
            };
            match polled {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        *this.bytes += bytes.len();
                        this.exchange.handed_out(bytes.len());
                        let exchange = Arc::clone(this.exchange);
                        if self.inner.is_end_stream() {
                            self.exchange.complete();
                        }
                        return Poll::Ready(Some(Ok(Frame::data(Piece { bytes, exchange }))));
                    }
                    Err(frame) => {
                        *this.ending = Some(frame.into_trailers().ok().map(Frame::trailers));
                    }
                },
                // The service failed, not the client.
                Some(Err(error)) => {
                    this.exchange.complete();
                    return Poll::Ready(Some(Err(error)));
                }
                None => *this.ending = Some(None),
            }
            this.exchange.complete();
        }
        if ends_late {
            ready!(this.exchange.poll_flushed(cx));
        }
        Poll::Ready(this.ending.take().flatten().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.ending.is_none() && self.inner.is_end_stream() && !self.ends_late()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
