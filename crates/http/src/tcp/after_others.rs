//! A future that lets the tasks that are ready run first.
//!
//! A connection of HTTP/2 carries many responses, which other tasks make, such as those of a proxy's connections to its
//! upstream. A runtime with several threads runs a task that another one wakes right after that one, before all that
//! were ready: the connection, with all that is polled in it, would run for each response. A task that wakes itself
//! comes after those tasks, and takes in together what they have made.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

pin_project! {
    /// Polls its future once the tasks that were ready when it was woken have run.
    pub(super) struct AfterOthers<F> {
        #[pin]
        inner: F,
        // Has let others run: it is the future's turn.
        yielded: bool,
    }
}

impl<F> AfterOthers<F> {
    pub(super) fn new(inner: F) -> Self {
        Self {
            inner,
            yielded: false,
        }
    }
}

impl<F: Future> Future for AfterOthers<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if !*this.yielded {
            *this.yielded = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        *this.yielded = false;
        this.inner.poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::*;

    /// The runtime would run it right after the first of the tasks that wake it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_woken_task_comes_after_those_that_were_ready() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let record = |name| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(name)
        };
        let (last, one, two) = (record("last"), record("one"), record("two"));
        // All in the worker's thread.
        let tasks = tokio::spawn(async move {
            let woken = Arc::new(Notify::new());
            let wakes = Arc::clone(&woken);
            let last = tokio::spawn(AfterOthers::new(async move {
                wakes.notified().await;
                last();
            }));
            for _ in 0..4 {
                yield_now().await;
            }
            let wakes = Arc::clone(&woken);
            tokio::spawn(async move {
                one();
                wakes.notify_one();
            });
            tokio::spawn(async move {
                two();
                woken.notify_one();
            });
            last.await
        });
        tasks.await.unwrap().unwrap();
        let order = order.lock().unwrap();
        assert_eq!(order.len(), 3);
        assert_eq!(order.last(), Some(&"last"));
    }
}
