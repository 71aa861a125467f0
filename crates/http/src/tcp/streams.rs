//! The tasks of HTTP/2 streams: each writes one response and can be aborted separately.
//!
//! They run in the task of their connection, not on other threads: head and content of a response that are
//! ready together are sent together. A client that stops sending as soon as it sees the head of an early
//! answer, as curl does, thereby makes its request malformed (RFC 9113, section 8.1.1), which resets the
//! stream: content sent later would be lost.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{CatchUnwind, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::activity::Activity;
use super::exchange::Exchange;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Receives the tasks of one connection's streams. hyper submits the task of a request right after it has
/// called the service with it.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    activity: Arc<Activity>,
    /// At most as many as the connection has streams.
    begun: UnboundedSender<Task>,
}

/// The tasks of one connection's streams.
pub(super) struct StreamTasks {
    begun: UnboundedReceiver<Task>,
    /// A service that panics ends its stream only.
    running: FuturesUnordered<CatchUnwind<AssertUnwindSafe<Task>>>,
}

/// An executor, and the runner of its tasks.
pub(super) fn stream_tasks(activity: &Arc<Activity>) -> (StreamExecutor, StreamTasks) {
    let (sender, begun) = unbounded_channel();
    let executor = StreamExecutor {
        activity: Arc::clone(activity),
        begun: sender,
    };
    let tasks = StreamTasks {
        begun,
        running: FuturesUnordered::new(),
    };
    (executor, tasks)
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let task: Task = match self.activity.take_begun() {
            Some(exchange) => Box::pin(exchange.run(future)),
            None => Box::pin(future),
        };
        // Fails once the connection has ended.
        let _ = self.begun.send(task);
    }
}

impl StreamExecutor {
    /// Runs the task of a byte stream in the place of messages: of the whole connection if it `leaves_http`,
    /// otherwise of one stream, for which hyper submits a task of its own next.
    pub(super) fn run_tunnel(
        &self,
        exchange: &Arc<Exchange>,
        leaves_http: bool,
        tunnel: impl Future<Output = ()> + Send + 'static,
    ) {
        if leaves_http {
            self.activity.leave_http();
        } else {
            self.activity.continues(exchange);
        }
        let _ = self.begun.send(Box::pin(tunnel));
    }
}

impl StreamTasks {
    /// Runs the tasks until all have ended.
    pub(super) async fn finish(&mut self) {
        loop {
            while let Ok(task) = self.begun.try_recv() {
                self.running.push(AssertUnwindSafe(task).catch_unwind());
            }
            match self.running.next().await {
                Some(Ok(())) => {}
                Some(Err(_)) => tracing::error!("a service panicked"),
                None => return,
            }
        }
    }

    /// Runs the tasks as long as it is polled.
    pub(super) async fn run(&mut self) -> Infallible {
        loop {
            tokio::select! {
                biased;
                Some(task) = self.begun.recv() => {
                    self.running.push(AssertUnwindSafe(task).catch_unwind());
                }
                Some(ended) = self.running.next() => {
                    if ended.is_err() {
                        tracing::error!("a service panicked");
                    }
                }
                else => pending::<()>().await,
            }
        }
    }
}
