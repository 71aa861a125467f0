//! The requests of a server's connection: run at once as far as they get without waiting, then as tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, yield_now};
use tokio_util::sync::ReusableBoxFuture;

/// A request that computes for longer delays those behind it: the next ones become tasks, which run in parallel
/// if the runtime has several threads.
const SLOW: Duration = Duration::from_micros(50);

/// Requests that become tasks at once after one that was slow or had to wait. Services mostly treat the requests of a
/// connection alike, and what waits costs less as a task from the start.
const TASKS: u8 = 15;

/// Time of requests that run at once, after which the connection sends what it has. The client then works on these responses
/// while the next requests run. Each turn costs a system call: with 10 µs there are fewer responses a second than with 25 to 100.
const TURN: Duration = Duration::from_micros(50);

/// Requests in progress. When dropped, they end.
#[derive(Default)]
pub(super) struct RequestTasks {
    tasks: JoinSet<()>,
    /// How many of the next requests become tasks at once.
    as_tasks: u8,
    /// Time that requests have run since the last yield.
    spent: Duration,
    /// Memory of the last request that completed at once, for the next one.
    spare: Option<ReusableBoxFuture<'static, ()>>,
}

impl RequestTasks {
    /// Begins `request`. If it panics, only that request is lost.
    pub(super) fn begin(&mut self, request: impl Future<Output = ()> + Send + 'static) {
        if let Some(left) = self.as_tasks.checked_sub(1) {
            self.as_tasks = left;
            // In memory of its own: tokio copies the future of a task when it begins, ends and is joined, and this one is large.
            self.tasks.spawn(Box::pin(request));
            return;
        }
        let mut request = match self.spare.take() {
            Some(mut spare) => {
                spare.set(request);
                spare
            }
            None => ReusableBoxFuture::new(request),
        };
        let start = Instant::now();
        // Its task polls it again, and is what it then wakes.
        let mut no_task = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| request.poll(&mut no_task)));
        let elapsed = start.elapsed();
        self.spent += elapsed;
        if elapsed > SLOW {
            self.as_tasks = TASKS;
        }
        match polled {
            Ok(Poll::Ready(())) => self.spare = Some(request),
            Ok(Poll::Pending) => {
                self.as_tasks = TASKS;
                self.tasks.spawn(request);
            }
            Err(_) => report_panic(),
        }
    }

    /// Before another request: lets other tasks run, above all the one that sends, if requests have run for long.
    pub(super) async fn pause(&mut self) {
        if self.spent > TURN {
            self.spent = Duration::ZERO;
            yield_now().await;
        }
    }

    /// Waits for the end of a request that became a task; for ever if there is none.
    pub(super) async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => report_panic(),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// True if no request is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Ends all, and waits until they have.
    pub(super) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}

fn report_panic() {
    tracing::error!("a service panicked");
}
