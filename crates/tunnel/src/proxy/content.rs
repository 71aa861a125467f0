//! The content of a request, from the client: capsules.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use swiftwater_http::web::body::Body;

/// Content that is asked only once it has something: asking takes the lock of the connection, and tasks that forward
/// datagrams are woken for those, nearly always.
pub(super) struct Content {
    body: Body,
    signal: Arc<Signal>,
    /// Wakes `signal`.
    waker: Waker,
}

/// Whether the content has something, and the task that waits for it.
struct Signal {
    is_ready: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_ready.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = &*task {
            task.wake_by_ref();
        }
    }
}

impl Signal {
    /// True once for each time that the content has something; else wakes the task then.
    fn poll_ready(&self, cx: &Context<'_>) -> bool {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *task {
            Some(task) => task.clone_from(cx.waker()),
            None => *task = Some(cx.waker().clone()),
        }
        drop(task);
        self.is_ready.swap(false, Ordering::AcqRel)
    }
}

impl Content {
    pub(super) fn new(body: Body) -> Self {
        let signal = Arc::new(Signal {
            is_ready: AtomicBool::new(true),
            task: Mutex::new(None),
        });
        Self {
            body,
            waker: Waker::from(Arc::clone(&signal)),
            signal,
        }
    }

    /// The next piece; `None` at the end, `Err` if it breaks off. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, ()>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, ()>>> {
        if !self.signal.poll_ready(cx) {
            return Poll::Pending;
        }
        loop {
            let mut own = Context::from_waker(&self.waker);
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(&mut own) else {
                return Poll::Pending;
            };
            // There may be more.
            self.signal.is_ready.store(true, Ordering::Release);
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => return Poll::Ready(None),
                Some(Ok(Ok(piece))) => return Poll::Ready(Some(Ok(piece))),
                // Trailers have no meaning here.
                Some(Ok(Err(_))) => {}
                Some(Err(_)) => return Poll::Ready(Some(Err(()))),
            }
        }
    }
}
